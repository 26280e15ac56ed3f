# SPDX-License-Identifier: Apache-2.0
"""ListPartitionReassignments (46): which partitions are about to get other replicas (KIP-455)."""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, request, response, struct


@struct
class ListPartitionReassignmentsTopics:
    name: String
    partition_indexes: list[Int32]


@request(46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    timeout_ms: Int32 = 60_000
    topics: list[ListPartitionReassignmentsTopics] | None = None

    def refused(self, error: ApiError) -> "ListPartitionReassignmentsResponse":
        return ListPartitionReassignmentsResponse(
            error_code=error.code, error_message=error.message
        )


@struct
class OngoingPartitionReassignment:
    partition_index: Int32
    replicas: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]


@struct
class OngoingTopicReassignment:
    name: String
    partitions: list[OngoingPartitionReassignment]


@response(46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[OngoingTopicReassignment] = []
