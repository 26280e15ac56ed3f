# SPDX-License-Identifier: Apache-2.0
"""DeleteAcls (31): take away the rules that match filters (KIP-140).

v1 adds patterns of names (KIP-290).
v2 is flexible.
v3 adds users as resources (KIP-373).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, at, request, response, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = at("1+", default=3)
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


@request(31, versions="1-3", flexible="2+")
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter]

    def refused(self, error: ApiError) -> "DeleteAclsResponse":
        result = DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
        return DeleteAclsResponse(filter_results=[result for _ in self.filters])


@struct
class DeleteAclsMatchingAcl:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = at("1+", default=3)
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class DeleteAclsFilterResult:
    error_code: Int16 = 0
    error_message: String | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@response(31, versions="1-3", flexible="2+")
class DeleteAclsResponse:
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
