"""OffsetDelete: topics that do not exist are the broker's to refuse."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
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

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def desk():
    return Desk()


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


def test_offsets_of_what_does_not_exist_are_not_deleted(desk):
    desk.create(partitions=2)
    commit(desk, [("orders", [0, 1])])

    assert delete(desk, [("orders", [1, 7]), ("none", [0]), ("orders", [])]) == (
        0,
        [("orders", [(7, UNKNOWN), (1, 0)]), ("none", [(0, UNKNOWN)])],
    )
    assert delete(desk, [("none", [0])]) == (0, [("none", [(0, UNKNOWN)])])


def test_an_error_of_the_group_is_told_first(desk):
    desk.create()

    assert delete(desk, [("none", [0])], "h") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
