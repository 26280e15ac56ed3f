# SPDX-License-Identifier: Apache-2.0
"""DescribeAcls, CreateAcls, DeleteAcls: rules are kept with the catalog (KIP-140, KIP-290).

Without `authorizer.class.name` there are no rules, and all three are refused, as upstream does.
With it a change counts when it is durable, which is before it is answered.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Call
from kohort.security.acls import AclOperation, AclPermission, PatternType, ResourceType
from kohort.server.access import ALTER, CLUSTER, CLUSTER_NAME, DESCRIBE, check
from kohort.server.apis.topic_changes import change_topics
from kohort.server.catalog import Acl, Draft
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kohort.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kohort.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

RULES_MAX = 100_000
BYTES_MAX = 1 << 25  # of the texts of all rules: the catalog is written whole at each change
LOOKED_AT_MAX = 2 * RULES_MAX  # by the filters of one DeleteAcls: a tenth of a second
_ANY = 1  # of all four: a filter takes each
_MATCH, _LITERAL, _PREFIXED = PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED
_WILDCARD = "*"
_KINDS = [one for one in ResourceType if one > _ANY]
_OPERATIONS = [one for one in AclOperation if one > _ANY]
_PERMISSIONS = [one for one in AclPermission if one > _ANY]

_Found = list[Acl] | ApiError
"""The rules that a filter has found, or why it was refused."""


def describe_acls(
    node: Node, call: Call[DescribeAclsRequest], _now: Millis
) -> DescribeAclsResponse:
    if _is_unknown(call.request):
        raise _unreadable(call)
    check(node.cluster.may, call.client, DESCRIBE, CLUSTER, CLUSTER_NAME)
    _check_configured(node, " on the broker")
    wanted = _of(call.request)
    by_pattern: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in wanted.matching(node.cluster.catalog.acls):
        by_pattern.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=acls
            )
            for (kind, name, pattern), acls in by_pattern.items()
        ],
    )


def create_acls(node: Node, call: Call[CreateAclsRequest], _now: Millis) -> None:
    """Add rules, or refuse each by itself. A rule that is there already stays, once. One with ANY
    in it is no rule at all: upstream fails at it, and makes none of the request.
    """
    if any(0 in _values(rule) for rule in call.request.creations):
        raise _unreadable(call)
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    _check_configured(node)
    if not all(map(_is_rule, call.request.creations)):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def judge(draft: Draft) -> dict[int, Acl | ApiError]:
        judged: dict[int, Acl | ApiError] = {}
        known = dict.fromkeys(draft.acls)
        for at, creation in enumerate(call.request.creations):
            try:
                judged[at] = acl = _checked(creation)
                known[acl] = None
            except ApiError as error:
                judged[at] = error.without_frames()
        size = sum(map(_size, known))
        if len(known) > RULES_MAX or size > BYTES_MAX:
            full = ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"there would be {len(known)} rules of {size} bytes, "
                f"at most {RULES_MAX} of {BYTES_MAX}",
            )
            return dict.fromkeys(judged, full)
        if len(known) > len(draft.acls):
            draft.set_acls(sorted(known))
        return judged

    def answer(judged: dict[int, Acl | ApiError]) -> CreateAclsResponse:
        return CreateAclsResponse(
            results=[
                AclCreationResult(error_code=outcome.code, error_message=outcome.message)
                if isinstance(outcome, ApiError)
                else AclCreationResult()
                for outcome in judged.values()
            ]
        )

    change_topics(node, call, judge, answer)


def delete_acls(node: Node, call: Call[DeleteAclsRequest], _now: Millis) -> None:
    """Take rules away. Each filter names the rules that it has found."""
    filters = call.request.filters
    if any(map(_is_unknown, filters)):
        raise _unreadable(call)
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    _check_configured(node)

    def judge(draft: Draft) -> dict[int, _Found]:
        judged: dict[int, _Found] = {}
        left = dict.fromkeys(draft.acls)
        rules = _Rules(draft.acls)
        for at, wanted in enumerate(filters):
            try:
                judged[at] = found = rules.matching(_deletion(wanted))
            except ApiError as error:
                judged[at] = error.without_frames()
                continue
            for acl in found:
                left.pop(acl, None)
        if len(left) < len(draft.acls):
            draft.set_acls(list(left))
        return judged

    def answer(judged: dict[int, _Found]) -> DeleteAclsResponse:
        return DeleteAclsResponse(filter_results=[_deleted(outcome) for outcome in judged.values()])

    change_topics(node, call, judge, answer)


class _Filter:
    """What rules are asked for; None and ANY match everything, and a number that upstream does not
    know nothing.
    """

    def __init__(
        self,
        kind: int,
        name: str | None,
        pattern: int,
        principal: str | None,
        host: str | None,
        operation: int,
        permission: int,
    ) -> None:
        self._kind, self._name, self._pattern = kind, name, pattern
        self._principal, self._host = principal, host
        self._operation, self._permission = operation, permission

    def check(self) -> None:
        """Raises ApiError where rules are not to be deleted by such a filter."""
        if self._kind not in (_ANY, *_KINDS) or not _ANY <= self._pattern <= _PREFIXED:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
        known = self._operation in (_ANY, *_OPERATIONS)
        if not known or self._permission not in (_ANY, *_PERMISSIONS):
            raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")

    @property
    def only_name(self) -> str | None:
        """The one resource whose rules can match; None where others can, too."""
        return None if self._pattern == _MATCH else self._name

    def matching(self, acls: Iterable[Acl]) -> list[Acl]:
        return [acl for acl in acls if self._matches(acl)]

    def _matches(self, acl: Acl) -> bool:
        return (
            self._kind in (_ANY, acl.resource_type)
            and self._principal in (None, acl.principal)
            and self._host in (None, acl.host)
            and self._operation in (_ANY, acl.operation)
            and self._permission in (_ANY, acl.permission_type)
            and self._names(acl)
        )

    def _names(self, acl: Acl) -> bool:
        """MATCH finds every rule that counts for a name: by its name, its prefix, or for all."""
        if self._pattern not in (_ANY, _MATCH, acl.pattern_type):
            return False
        if self._name is None or self._name == acl.resource_name:
            return True
        if self._pattern != _MATCH:
            return False
        if acl.pattern_type == _PREFIXED:
            return self._name.startswith(acl.resource_name)
        return acl.resource_name == _WILDCARD


class _Rules:
    """Rules that many filters look through: all of them only now and then."""

    def __init__(self, acls: Sequence[Acl]) -> None:
        self._all = acls
        self._by_name: dict[str, list[Acl]] = {}
        for acl in acls:
            self._by_name.setdefault(acl.resource_name, []).append(acl)
        self._looked_at = 0

    def matching(self, wanted: _Filter) -> list[Acl]:
        """What a filter finds. Raises ApiError once too many rules have been looked at."""
        name = wanted.only_name
        rules = self._all if name is None else self._by_name.get(name, ())
        if self._looked_at + len(rules) > LOOKED_AT_MAX:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"the filters of one request may look at {LOOKED_AT_MAX} rules, those before this "
                f"one have looked at {self._looked_at}, and it would look at {len(rules)}",
            )
        self._looked_at += len(rules)
        return wanted.matching(rules)


def _of(asked: DescribeAclsRequest | DeleteAclsFilter) -> _Filter:
    return _Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _deletion(wanted: DeleteAclsFilter) -> _Filter:
    """Raises ApiError for a filter with a number that upstream does not know."""
    found = _of(wanted)
    found.check()
    return found


def _deleted(found: _Found) -> DeleteAclsFilterResult:
    if isinstance(found, ApiError):
        return DeleteAclsFilterResult(error_code=found.code, error_message=found.message)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in found
        ],
    )


def _values(creation: AclCreation) -> tuple[int, int, int, int]:
    return (
        creation.resource_type,
        creation.resource_pattern_type,
        creation.operation,
        creation.permission_type,
    )


def _is_unknown(asked: DescribeAclsRequest | DeleteAclsFilter) -> bool:
    return 0 in (
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )


def _unreadable(call: Call[Any]) -> WireError:
    """What to raise for a value of 0 (UNKNOWN), at which upstream ends the connection."""
    call.token.skip()
    return WireError(f"{type(call.request).__name__} has a value of 0, which means unknown")


def _is_rule(creation: AclCreation) -> bool:
    """Whether none of its values is one that only filters may have."""
    kind, pattern, operation, permission = _values(creation)
    return _ANY not in (kind, pattern, operation, permission) and pattern != _MATCH


def _checked(creation: AclCreation) -> Acl:
    """The rule. Raises ApiError INVALID_REQUEST where it makes no sense. Upstream takes senseless
    hosts, empty names of principals, and any operation for any type of resource: rules that were
    made there must be taken here.
    """
    kind, pattern, operation, permission = _values(creation)
    reason = ""
    if kind == CLUSTER and creation.resource_name != CLUSTER_NAME:
        reason = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not creation.resource_name:
        reason = "Invalid empty resource name"
    elif kind not in _KINDS:
        reason = "Invalid resourceType UNKNOWN"
    elif pattern not in (_LITERAL, _PREFIXED):
        reason = "Invalid patternType UNKNOWN"
    elif operation not in _OPERATIONS:
        reason = "Invalid operation UNKNOWN"
    elif permission not in _PERMISSIONS:
        reason = "Invalid permissionType UNKNOWN"
    elif ":" not in creation.principal:
        reason = (
            f"Could not parse principal from `{creation.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )
    if reason:
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    return Acl(
        kind,
        creation.resource_name,
        pattern,
        creation.principal,
        creation.host,
        operation,
        permission,
    )


def _size(acl: Acl) -> int:
    """The bytes of its texts, at most."""
    return 4 * (len(acl.resource_name) + len(acl.principal) + len(acl.host))


def _check_configured(node: Node, where: str = "") -> None:
    if not node.cluster.config.authorizer_class_name:
        raise ApiError(ErrorCode.SECURITY_DISABLED, f"No Authorizer is configured{where or '.'}")
