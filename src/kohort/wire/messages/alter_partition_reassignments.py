# SPDX-License-Identifier: Apache-2.0
"""AlterPartitionReassignments (45): give partitions other replicas (KIP-455).

v1 can forbid that their number changes (KIP-860).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, String, at, request, response, struct


@struct
class ReassignablePartition:
    partition_index: Int32
    replicas: list[Int32] | None = None


@struct
class ReassignableTopic:
    name: String
    partitions: list[ReassignablePartition]


@request(45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Bool = at("1+", default=True)
    topics: list[ReassignableTopic]

    def refused(self, error: ApiError) -> "AlterPartitionReassignmentsResponse":
        """All of it, and each partition."""
        return AlterPartitionReassignmentsResponse(
            error_code=error.code,
            error_message=error.message,
            responses=[
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=[
                        ReassignablePartitionResponse(
                            partition_index=partition.partition_index,
                            error_code=error.code,
                            error_message=error.message,
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in self.topics
            ],
        )


@struct
class ReassignablePartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@struct
class ReassignableTopicResponse:
    name: String = ""
    partitions: list[ReassignablePartitionResponse] = []


@response(45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = at("1+", default=True)
    error_code: Int16 = 0
    error_message: String | None = ""
    responses: list[ReassignableTopicResponse] = []
