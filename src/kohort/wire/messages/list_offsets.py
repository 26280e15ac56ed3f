# SPDX-License-Identifier: Apache-2.0
"""ListOffsets (2): the first offset at or after a time, or that of a special point.

v1 answers one offset per partition.
v2 adds the isolation level and the throttle time.
v4 fences by leader epoch.
v6 is flexible.
v7 knows the offset of the largest timestamp (-3, KIP-734).
v8 knows the local log start (-4), v9 the last tiered offset (-5).
v10 takes a time limit (KIP-1075); v11 knows -6.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, Int64, String, at, request, response, struct


@struct
class ListOffsetsPartition:
    partition_index: Int32
    current_leader_epoch: Int32 = at("4+", default=-1)
    timestamp: Int64


@struct
class ListOffsetsTopic:
    name: String
    partitions: list[ListOffsetsPartition]


@request(2, versions="1-11", flexible="6+")
class ListOffsetsRequest:
    replica_id: Int32
    isolation_level: Int8 = at("2+", default=0)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = at("10+", default=0)

    def refused(self, error: ApiError) -> "ListOffsetsResponse":
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return ListOffsetsResponse(topics=topics)


@struct
class ListOffsetsPartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = at("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: String = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@response(2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: Int32 = at("2+", default=0)
    topics: list[ListOffsetsTopicResponse] = []
