# SPDX-License-Identifier: Apache-2.0
"""LeaveGroup (13): members leave a classic group, or are removed from it.

v1 adds the throttle time, v2 answers before throttling.
v3 takes many members, by id or by instance id (KIP-345).
v4 is flexible.
v5 adds a reason (KIP-800).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, at, request, response, struct


@struct
class MemberIdentity:
    member_id: String = at("3+", default="")
    group_instance_id: String | None = at("3+", default=None)
    reason: String | None = at("5+", default=None)


@request(13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: String
    member_id: String = at("0-2", default="")
    members: list[MemberIdentity] = at("3+", default=[])

    def refused(self, error: ApiError) -> "LeaveGroupResponse":
        return LeaveGroupResponse(error_code=error.code)


@struct
class MemberResponse:
    member_id: String = at("3+", default="")
    group_instance_id: String | None = at("3+", default="")
    error_code: Int16 = at("3+", default=0)


@response(13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: Int32 = at("1+", default=0)
    error_code: Int16 = 0
    members: list[MemberResponse] = at("3+", default=[])
