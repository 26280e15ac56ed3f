# SPDX-License-Identifier: Apache-2.0
"""ListConfigResources (74): the names of what has, or may have, settings (KIP-1142).

v0 lists the resources of client metrics only.
v1 adds types to ask for; none of them means all.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, at, request, response, struct


@request(74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: list[Int8] = at("1+", default=[])

    def refused(self, error: ApiError) -> "ListConfigResourcesResponse":
        return ListConfigResourcesResponse(error_code=error.code)


@struct
class ConfigResource:
    resource_name: String = ""
    resource_type: Int8 = at("1+", default=16)


@response(74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
