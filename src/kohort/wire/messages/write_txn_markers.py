# SPDX-License-Identifier: Apache-2.0
"""WriteTxnMarkers (27): the end of a transaction, for the partitions that it has written to.

v1 is flexible.
v2 says which version of transactions the producer uses (KIP-1228).
"""

from kohort.errors import ApiError
from kohort.wire.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    at,
    request,
    response,
    struct,
)


@struct
class WritableTxnMarkerTopic:
    name: String
    partition_indexes: list[Int32]


@struct
class WritableTxnMarker:
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = at("2+", default=0)


@request(27, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker]

    def refused(self, error: ApiError) -> "WriteTxnMarkersResponse":
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=error.code
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in self.markers
            ]
        )


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class WritableTxnMarkerTopicResult:
    name: String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


@struct
class WritableTxnMarkerResult:
    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@response(27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = []
