# SPDX-License-Identifier: Apache-2.0
"""FindCoordinator (10): which broker coordinates a group or a transactional id.

v1 adds the key type, the throttle time and an error message.
v2 answers before throttling.
v3 is flexible.
v4 asks for many keys at once (KIP-699).
v5 may answer TRANSACTION_ABORTABLE.
v6 knows share groups (KIP-932).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, at, request, response, struct


@request(10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: String = at("0-3", default="")
    key_type: Int8 = at("1+", default=0)
    coordinator_keys: list[String] = at("4+", default=[])

    def refused(self, error: ApiError) -> "FindCoordinatorResponse":
        nobody = [
            Coordinator(
                key=key, node_id=-1, port=-1, error_code=error.code, error_message=error.message
            )
            for key in self.coordinator_keys
        ]
        return FindCoordinatorResponse(
            error_code=error.code,
            error_message=error.message,
            node_id=-1,
            port=-1,
            coordinators=nobody,
        )


@struct
class Coordinator:
    key: String = at("4+", default="")
    node_id: Int32 = at("4+", default=0)
    host: String = at("4+", default="")
    port: Int32 = at("4+", default=0)
    error_code: Int16 = at("4+", default=0)
    error_message: String | None = at("4+", default="")


@response(10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: Int32 = at("1+", default=0)
    error_code: Int16 = at("0-3", default=0)
    error_message: String | None = at("1-3", default="")
    node_id: Int32 = at("0-3", default=0)
    host: String = at("0-3", default="")
    port: Int32 = at("0-3", default=0)
    coordinators: list[Coordinator] = at("4+", default=[])
