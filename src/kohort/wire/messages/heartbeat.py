# SPDX-License-Identifier: Apache-2.0
"""Heartbeat (12): a member of a classic group is alive.

v1 adds the throttle time, v2 answers before throttling.
v3 adds static members (KIP-345).
v4 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, at, request, response


@request(12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = at("3+", default=None)

    def refused(self, error: ApiError) -> "HeartbeatResponse":
        return HeartbeatResponse(error_code=error.code)


@response(12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: Int32 = at("1+", default=0)
    error_code: Int16 = 0
