# SPDX-License-Identifier: Apache-2.0
"""OffsetForLeaderEpoch (23): where an epoch of a partition leader ended (KIP-320).

v2 is the oldest that is served: fencing by the current epoch.
v3 adds the replica id.
v4 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, at, request, response, struct


@struct
class OffsetForLeaderPartition:
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@struct
class OffsetForLeaderTopic:
    topic: String
    partitions: list[OffsetForLeaderPartition]


@request(23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    replica_id: Int32 = at("3+", default=-2)
    topics: list[OffsetForLeaderTopic]

    def refused(self, error: ApiError) -> "OffsetForLeaderEpochResponse":
        topics = [
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=partition.partition, error_code=error.code)
                    for partition in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return OffsetForLeaderEpochResponse(topics=topics)


@struct
class EpochEndOffset:
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class OffsetForLeaderTopicResult:
    topic: String = ""
    partitions: list[EpochEndOffset] = []


@response(23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
