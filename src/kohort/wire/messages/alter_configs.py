# SPDX-License-Identifier: Apache-2.0
"""AlterConfigs (33): replace all settings of a resource by those that are named.

v1 answers before throttling.
v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int8, Int16, Int32, String, request, response, struct


@struct
class AlterableConfig:
    name: String
    value: String | None


@struct
class AlterConfigsResource:
    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


@request(33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    resources: list[AlterConfigsResource]
    validate_only: Bool

    def refused(self, error: ApiError) -> "AlterConfigsResponse":
        responses = [
            AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in self.resources
        ]
        return AlterConfigsResponse(responses=responses)


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@response(33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
