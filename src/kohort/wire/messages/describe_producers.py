# SPDX-License-Identifier: Apache-2.0
"""DescribeProducers (61): who has written to partitions, and since when a transaction is open
(KIP-664).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, request, response, struct


@struct
class TopicRequest:
    name: String
    partition_indexes: list[Int32]


@request(61, versions="0", flexible="0+")
class DescribeProducersRequest:
    topics: list[TopicRequest]

    def refused(self, error: ApiError) -> "DescribeProducersResponse":
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[
                        PartitionResponse(partition_index=index, error_code=error.code)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in self.topics
            ]
        )


@struct
class ProducerState:
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


@struct
class PartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ProducerState] = []


@struct
class TopicResponse:
    name: String = ""
    partitions: list[PartitionResponse] = []


@response(61, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
