# SPDX-License-Identifier: Apache-2.0
"""DeleteRecords (21): move the start of partitions forward (KIP-107).

v1 answers before throttling.
v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, request, response, struct


@struct
class DeleteRecordsPartition:
    partition_index: Int32
    offset: Int64


@struct
class DeleteRecordsTopic:
    name: String
    partitions: list[DeleteRecordsPartition]


@request(21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32

    def refused(self, error: ApiError) -> "DeleteRecordsResponse":
        topics = [
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index,
                        low_watermark=-1,
                        error_code=error.code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return DeleteRecordsResponse(topics=topics)


@struct
class DeleteRecordsPartitionResult:
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


@struct
class DeleteRecordsTopicResult:
    name: String = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@response(21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
