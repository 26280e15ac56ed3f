# SPDX-License-Identifier: Apache-2.0
"""AlterClientQuotas (49): refuse new quotas of users, clients and addresses (KIP-546).

v1 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Float64, Int16, Int32, String, request, response, struct


@struct
class EntityData:
    entity_type: String
    entity_name: String | None


@struct
class OpData:
    key: String
    value: Float64
    remove: Bool


@struct
class EntryData:
    entity: list[EntityData]
    ops: list[OpData]


@request(49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: list[EntryData]
    validate_only: Bool

    def refused(self, error: ApiError) -> "AlterClientQuotasResponse":
        entries = [
            AlteredEntryData(
                error_code=error.code, error_message=error.message, entity=entry.entity
            )
            for entry in self.entries
        ]
        return AlterClientQuotasResponse(entries=entries)


@struct
class AlteredEntryData:
    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[EntityData] = []


@response(49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: Int32 = 0
    entries: list[AlteredEntryData] = []
