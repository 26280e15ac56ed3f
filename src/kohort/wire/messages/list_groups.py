# SPDX-License-Identifier: Apache-2.0
"""ListGroups (16): the groups that a broker coordinates (KIP-40).

v1 adds the throttle time, v2 answers before throttling.
v3 is flexible.
v4 adds states, and a filter of states (KIP-518).
v5 adds types, and a filter of types (KIP-848).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, at, request, response, struct


@request(16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: list[String] = at("4+", default=[])
    types_filter: list[String] = at("5+", default=[])

    def refused(self, error: ApiError) -> "ListGroupsResponse":
        return ListGroupsResponse(error_code=error.code)


@struct
class ListedGroup:
    group_id: String = ""
    protocol_type: String = ""
    group_state: String = at("4+", default="")
    group_type: String = at("5+", default="")


@response(16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: Int32 = at("1+", default=0)
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
