# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete (47): forget committed offsets of a group (KIP-496)."""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, request, response, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: Int32


@struct
class OffsetDeleteRequestTopic:
    name: String
    partitions: list[OffsetDeleteRequestPartition]


@request(47, versions="0", flexible="none")
class OffsetDeleteRequest:
    group_id: String
    topics: list[OffsetDeleteRequestTopic]

    def refused(self, error: ApiError) -> "OffsetDeleteResponse":
        return OffsetDeleteResponse(error_code=error.code)


@struct
class OffsetDeleteResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetDeleteResponseTopic:
    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = []


@response(47, versions="0", flexible="none")
class OffsetDeleteResponse:
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
