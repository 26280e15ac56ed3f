# SPDX-License-Identifier: Apache-2.0
"""DescribeConfigs (32): the configuration of topics and brokers.

v1 adds synonyms and the source of a value.
v2 answers before throttling.
v3 adds types and documentation (KIP-569).
v4 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int8, Int16, Int32, String, at, request, response, struct


@struct
class DescribeConfigsResource:
    resource_type: Int8
    resource_name: String
    configuration_keys: list[String] | None


@request(32, versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource]
    include_synonyms: Bool = False
    include_documentation: Bool = at("3+", default=False)

    def refused(self, error: ApiError) -> "DescribeConfigsResponse":
        results = [
            DescribeConfigsResult(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in self.resources
        ]
        return DescribeConfigsResponse(results=results)


@struct
class DescribeConfigsSynonym:
    name: String = ""
    value: String | None = ""
    source: Int8 = 0


@struct
class DescribeConfigsResourceResult:
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Int8 = at("3+", default=0)
    documentation: String | None = at("3+", default="")


@struct
class DescribeConfigsResult:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = []


@response(32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
