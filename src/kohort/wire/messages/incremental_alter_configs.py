# SPDX-License-Identifier: Apache-2.0
"""IncrementalAlterConfigs (44): change single settings of topics (KIP-339).

v1 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int8, Int16, Int32, String, request, response, struct


@struct
class AlterableConfig:
    name: String
    config_operation: Int8
    value: String | None


@struct
class AlterConfigsResource:
    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


@request(44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    resources: list[AlterConfigsResource]
    validate_only: Bool

    def refused(self, error: ApiError) -> "IncrementalAlterConfigsResponse":
        responses = [
            AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in self.resources
        ]
        return IncrementalAlterConfigsResponse(responses=responses)


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@response(44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
