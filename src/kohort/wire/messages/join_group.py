# SPDX-License-Identifier: Apache-2.0
"""JoinGroup (11): enter a classic group, or come back for its next generation.

v1 adds the rebalance timeout; v0 uses the session timeout for it.
v2 adds the throttle time, v3 answers before throttling.
v4 makes a new member come back with the id it was given (KIP-394).
v5 adds static members (KIP-345).
v6 is flexible.
v7 adds the protocol type (KIP-559).
v8 adds a reason (KIP-800).
v9 tells a returning leader not to assign (KIP-814).
"""

from kohort.errors import ApiError, ErrorCode
from kohort.wire.schema import Bool, Bytes, Int16, Int32, String, at, request, response, struct

# Refusals that name the member they are for; all others have an empty id.
_ECHOED = frozenset(
    {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    },
)


@struct
class JoinGroupRequestProtocol:
    name: String
    metadata: Bytes


@request(11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = at("1+", default=-1)
    member_id: String
    group_instance_id: String | None = at("5+", default=None)
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: String | None = at("8+", default=None)

    def refused(self, error: ApiError) -> "JoinGroupResponse":
        echoed = error.code in _ECHOED
        return JoinGroupResponse(
            error_code=error.code,
            generation_id=-1,
            protocol_type=None,
            protocol_name=None,
            leader="",
            member_id=self.member_id if echoed else "",
        )


@struct
class JoinGroupResponseMember:
    member_id: String = ""
    group_instance_id: String | None = at("5+", default=None)
    metadata: Bytes = b""


@response(11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: Int32 = at("2+", default=0)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: String | None = at("7+", default=None)
    protocol_name: String | None = at(nullable="7+", default="")
    leader: String = ""
    skip_assignment: Bool = at("9+", default=False)
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []
