# SPDX-License-Identifier: Apache-2.0
"""DescribeGroups (15): classic groups and their members (KIP-40).

v1 adds the throttle time, v2 answers before throttling.
v3 adds authorised operations (KIP-430).
v4 adds static members (KIP-345).
v5 is flexible.
v6 answers GROUP_ID_NOT_FOUND with a message (KIP-1043).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Bytes, Int16, Int32, String, at, request, response, struct


@request(15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: list[String]
    include_authorized_operations: Bool = at("3+", default=False)

    def refused(self, error: ApiError) -> "DescribeGroupsResponse":
        groups = [
            DescribedGroup(
                error_code=error.code,
                error_message=error.message or None,
                group_id=group_id,
            )
            for group_id in self.groups
        ]
        return DescribeGroupsResponse(groups=groups)


@struct
class DescribedGroupMember:
    member_id: String = ""
    group_instance_id: String | None = at("4+", default=None)
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


@struct
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = at("6+", default=None)
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Int32 = at("3+", default=-2147483648)


@response(15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: Int32 = at("1+", default=0)
    groups: list[DescribedGroup] = []
