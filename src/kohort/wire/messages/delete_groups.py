# SPDX-License-Identifier: Apache-2.0
"""DeleteGroups (42): delete empty groups and their offsets (KIP-229).

v1 answers before throttling.
v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, request, response, struct


@request(42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: list[String]

    def refused(self, error: ApiError) -> "DeleteGroupsResponse":
        results = [
            DeletableGroupResult(group_id=group_id, error_code=error.code)
            for group_id in self.groups_names
        ]
        return DeleteGroupsResponse(results=results)


@struct
class DeletableGroupResult:
    group_id: String = ""
    error_code: Int16 = 0


@response(42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
