# SPDX-License-Identifier: Apache-2.0
"""DescribeClientQuotas, AlterClientQuotas: there are no quotas here, and none can be set.

What is asked wrongly is refused as upstream refuses it (KIP-546).
"""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import ALTER_CONFIGS, CLUSTER, CLUSTER_NAME, DESCRIBE_CONFIGS, check
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntryData,
    EntryData,
)
from kohort.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_IP = "ip"
_TYPES = ("user", "client-id", _IP)
_EXACT = 0
_MATCHES = ("EXACT", "DEFAULT", "SPECIFIED")  # by the number of the kind of match


def describe_client_quotas(
    node: Node, call: Call[DescribeClientQuotasRequest], _now: Millis
) -> DescribeClientQuotasResponse:
    """None, whatever a valid filter asks for. Raises ApiError."""
    check(node.cluster.may, call.client, DESCRIBE_CONFIGS, CLUSTER, CLUSTER_NAME, with_text=False)
    seen: set[str] = set()
    for component in call.request.components:
        if component.entity_type in seen:
            raise _invalid(
                f"Entity type {component.entity_type} cannot appear more than once in the filter."
            )
        _check_component(component)
        seen.add(component.entity_type)
    if _IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return DescribeClientQuotasResponse()


def _check_component(component: ComponentData) -> None:
    kind = component.match_type
    if not component.entity_type:
        raise _invalid("Invalid empty entity type.")
    if component.entity_type not in _TYPES:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {component.entity_type}"
        )
    if not 0 <= kind < len(_MATCHES):
        raise _invalid(f"Unknown match type {kind}")
    if kind == _EXACT and component.match is None:
        raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if kind != _EXACT and component.match is not None:
        raise _invalid(
            f"Request specified MATCH_TYPE_{_MATCHES[kind]}, but also specified a match string."
        )


def alter_client_quotas(
    node: Node, call: Call[AlterClientQuotasRequest], _now: Millis
) -> AlterClientQuotasResponse:
    """Each entry by itself: what takes quotas away succeeds, what sets one is refused."""
    check(node.cluster.may, call.client, ALTER_CONFIGS, CLUSTER, CLUSTER_NAME)
    return AlterClientQuotasResponse(entries=[_altered(entry) for entry in call.request.entries])


def _altered(entry: EntryData) -> AlteredEntryData:
    try:
        _check_entry(entry)
    except ApiError as error:
        return AlteredEntryData(
            error_code=error.code, error_message=error.message, entity=entry.entity
        )
    return AlteredEntryData(error_message=None, entity=entry.entity)


def _check_entry(entry: EntryData) -> None:
    if not entry.entity:
        raise _invalid("Invalid empty client quota entity")
    for entity in entry.entity:
        if entity.entity_type not in _TYPES:
            raise _invalid(f"Unhandled client quota entity type: {entity.entity_type}")
        if entity.entity_name == "":
            raise _invalid(f"Empty {entity.entity_type} not supported")
    for op in entry.ops:
        if not op.remove:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"{op.key} is {op.value}, expected no quota: this broker has none",
            )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
