# SPDX-License-Identifier: Apache-2.0
"""Offsets committed and deleted by requests, as several tests ask for it."""

from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def commit(desk, wanted, version=9):
    """Answers by topic, in order. `wanted` names topics, or ids from version 10 on."""
    topics = [
        OffsetCommitRequestTopic(
            name="" if version >= 10 else topic,
            topic_id=topic if version >= 10 else bytes(16),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=1, committed_metadata=""
                )
                for index in indexes
            ],
        )
        for topic, indexes in wanted
    ]
    answer = desk.ask(OffsetCommitRequest(group_id="g", member_id="", topics=topics), version)
    return [
        (
            topic.topic_id if version >= 10 else topic.name,
            [(one.partition_index, one.error_code) for one in topic.partitions],
        )
        for topic in answer.topics
    ]


def delete(desk, wanted, group_id="g"):
    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for topic, indexes in wanted
    ]
    answer = desk.ask(OffsetDeleteRequest(group_id=group_id, topics=topics), 0)
    return answer.error_code, [
        (topic.name, [(one.partition_index, one.error_code) for one in topic.partitions])
        for topic in answer.topics
    ]
