# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit (8): store how far a group has read.

v2 is the oldest that is served; v2 to v4 carry a retention time.
v3 adds the throttle time, v4 answers before throttling.
v6 adds the leader epoch of the record.
v7 adds static members (KIP-345).
v8 is flexible.
v9 is open to members of KIP-848 groups.
v10 names topics by id.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, Uuid, at, request, response, struct


@struct
class OffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = at("6+", default=-1)
    committed_metadata: String | None


@struct
class OffsetCommitRequestTopic:
    name: String = at("0-9", default="")
    topic_id: Uuid = at("10+", default=bytes(16))
    partitions: list[OffsetCommitRequestPartition]


@request(8, versions="2-10", flexible="8+")
class OffsetCommitRequest:
    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: String | None = at("7+", default=None)
    retention_time_ms: Int64 = at("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic]

    def refused(self, error: ApiError) -> "OffsetCommitResponse":
        topics = [
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return OffsetCommitResponse(topics=topics)


@struct
class OffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetCommitResponseTopic:
    name: String = at("0-9", default="")
    topic_id: Uuid = at("10+", default=bytes(16))
    partitions: list[OffsetCommitResponsePartition] = []


@response(8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: Int32 = at("3+", default=0)
    topics: list[OffsetCommitResponseTopic] = []
