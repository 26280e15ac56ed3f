# SPDX-License-Identifier: Apache-2.0
"""DescribeAcls (29): the rules that match a filter (KIP-140).

v1 adds patterns of names (KIP-290).
v2 is flexible.
v3 adds users as resources (KIP-373).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, at, request, response, struct


@request(29, versions="1-3", flexible="2+")
class DescribeAclsRequest:
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = at("1+", default=3)
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8

    def refused(self, error: ApiError) -> "DescribeAclsResponse":
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)


@struct
class AclDescription:
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@struct
class DescribeAclsResource:
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = at("1+", default=3)
    acls: list[AclDescription]


@response(29, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribeAclsResource] = []
