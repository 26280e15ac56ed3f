# SPDX-License-Identifier: Apache-2.0
"""CreateAcls (30): add rules (KIP-140).

v1 adds patterns of names (KIP-290).
v2 is flexible.
v3 adds users as resources (KIP-373).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, at, request, response, struct


@struct
class AclCreation:
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = at("1+", default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@request(30, versions="1-3", flexible="2+")
class CreateAclsRequest:
    creations: list[AclCreation]

    def refused(self, error: ApiError) -> "CreateAclsResponse":
        result = AclCreationResult(error_code=error.code, error_message=error.message or None)
        return CreateAclsResponse(results=[result for _ in self.creations])


@struct
class AclCreationResult:
    error_code: Int16 = 0
    error_message: String | None = ""


@response(30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
