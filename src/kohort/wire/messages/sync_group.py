# SPDX-License-Identifier: Apache-2.0
"""SyncGroup (14): hand out, and receive, the assignments of a generation.

v1 adds the throttle time, v2 answers before throttling.
v3 adds static members (KIP-345).
v4 is flexible.
v5 names the protocol (KIP-559).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int16, Int32, String, at, request, response, struct


@struct
class SyncGroupRequestAssignment:
    member_id: String
    assignment: Bytes


@request(14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = at("3+", default=None)
    protocol_type: String | None = at("5+", default=None)
    protocol_name: String | None = at("5+", default=None)
    assignments: list[SyncGroupRequestAssignment]

    def refused(self, error: ApiError) -> "SyncGroupResponse":
        return SyncGroupResponse(error_code=error.code, protocol_type=None, protocol_name=None)


@response(14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: Int32 = at("1+", default=0)
    error_code: Int16 = 0
    protocol_type: String | None = at("5+", default=None)
    protocol_name: String | None = at("5+", default=None)
    assignment: Bytes = b""
