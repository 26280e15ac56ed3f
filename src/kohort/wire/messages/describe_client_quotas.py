# SPDX-License-Identifier: Apache-2.0
"""DescribeClientQuotas (48): that there are no quotas of users, clients and addresses (KIP-546).

v1 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Float64, Int8, Int16, Int32, String, request, response, struct


@struct
class ComponentData:
    entity_type: String
    match_type: Int8
    match: String | None


@request(48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: list[ComponentData]
    strict: Bool

    def refused(self, error: ApiError) -> "DescribeClientQuotasResponse":
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message or None, entries=None
        )


@struct
class EntityData:
    entity_type: String = ""
    entity_name: String | None = ""


@struct
class ValueData:
    key: String = ""
    value: Float64 = 0.0


@struct
class EntryData:
    entity: list[EntityData] = []
    values: list[ValueData] = []


@response(48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: list[EntryData] | None = []
