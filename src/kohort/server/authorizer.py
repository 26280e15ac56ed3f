# SPDX-License-Identifier: Apache-2.0
"""Who may do what by the rules of the catalog, with the meaning of Kafka's StandardAuthorizer
(KIP-11, KIP-290, KIP-679).

A super user may do everything. For others the rules count that cover a thing and are about the
client: a DENY of the operation wins over every ALLOW, and without an ALLOW the answer is no. Where
no rule covers the thing at all, whoever it is about, a setting decides.

Rules are kept by whom they are about, so what an answer costs does not grow with the rules about
others. Answers are remembered until the rules change, in two generations: when the young one is
full, it becomes the old one, and what is asked for again comes back from there. So a crowd of names
takes the place of what nobody asks for, and never of all answers at once.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from kohort.config import BrokerConfig, super_users_of
from kohort.machines.effects import Client
from kohort.runtime.observers import Observer
from kohort.security.acls import AclOperation, AclPermission, PatternType, ResourceType
from kohort.server.access import (
    ALTER,
    ALTER_CONFIGS,
    ANY,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    TOPIC,
    WRITE,
)
from kohort.server.catalog import Acl

WILDCARD = "*"  # every principal's host, or every literal name
EVERY_PRINCIPAL = "User:*"
REMEMBERED_MAX = 1 << 16  # answers, of all clients together: each generation has half
LONGEST_REMEMBERED = 256  # characters of a name: clients choose them
_VIEW_COUNTS = 16  # what a client takes, in answers

_EVERYTHING = (1 << 16) - 1
_DESCRIBING = 1 << READ | 1 << WRITE | 1 << DELETE | 1 << ALTER
_DESCRIBING_CONFIGS = 1 << ALTER_CONFIGS
_PROBE = "hardcode"  # the name that upstream asks about first when any name would do


def authorizer_or_none(config: BrokerConfig) -> "Authorizer | None":
    """The authorizer that the settings ask for, without a rule yet."""
    if not config.authorizer_class_name:
        return None
    return Authorizer(
        super_users_of(config.super_users), allow_unruled=config.allow_everyone_if_no_acl_found
    )


def report_access(config: BrokerConfig, acls: Sequence[Acl], observe: Observer) -> None:
    """Say at the start who may do what. A broker on which nobody can make a rule needs other
    settings.
    """
    for principal in super_users_of(config.super_users):
        if ",User:" in principal:
            observe.warning(
                f"super.users has {principal!r}, which is one name, expected semicolons"
            )
    if not config.authorizer_class_name:
        users = ", whatever super.users says" if config.super_users else ""
        observe.info(f"authorizer.class.name is not set: every client may do everything{users}")
    elif not (acls or config.super_users or config.allow_everyone_if_no_acl_found):
        observe.warning(
            "authorizer.class.name is set, there are no rules, and super.users names nobody: "
            "no client may do anything, nor make the first rule"
        )


class _Bits:
    """The operations that rules about one client and one pattern allow and deny. Nothing that is
    implied by others is in them.
    """

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed = 0
        self.denied = 0

    def add(self, acl: Acl) -> None:
        bits = _EVERYTHING if acl.operation == AclOperation.ALL else 1 << acl.operation
        if acl.permission_type == AclPermission.DENY:
            self.denied |= bits
        else:
            self.allowed |= bits


class _Prefixes:
    """Finds those of many names that others begin with: by bisection, then from each to the longest
    name that it begins with itself.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Each name once."""
        self._names = sorted(names)
        self._shorter: list[int] = []  # the place of the longest other one that it begins with
        open_: list[int] = []
        for at, name in enumerate(self._names):
            while open_ and not name.startswith(self._names[open_[-1]]):
                open_.pop()
            self._shorter.append(open_[-1] if open_ else -1)
            open_.append(at)

    def of(self, name: str) -> Iterator[str]:
        """All that a name begins with, the longest first."""
        names = self._names
        at = bisect_right(names, name) - 1  # every prefix of the name is one of this one too
        while at >= 0:
            if name.startswith(names[at]):
                yield names[at]
            at = self._shorter[at]


class _Patterns:
    """The rules about one client and one kind of thing, by the names of their patterns."""

    def __init__(self) -> None:
        self.literals: dict[str, _Bits] = {}
        self.prefixed: dict[str, _Bits] = {}

    def add(self, acl: Acl) -> None:
        names = self.prefixed if acl.pattern_type == PatternType.PREFIXED else self.literals
        names.setdefault(acl.resource_name, _Bits()).add(acl)

    @cached_property
    def _prefixes(self) -> _Prefixes:
        return _Prefixes(self.prefixed)

    def covering(self, name: str) -> Iterator[_Bits]:
        """The rules that cover a resource of this name."""
        for literal in (name, WILDCARD):
            bits = self.literals.get(literal)
            if bits is not None:
                yield bits
        if self.prefixed:
            for prefix in self._prefixes.of(name):
                yield self.prefixed[prefix]


_Subject = tuple[str, str]
"""A principal and a host, as a rule names them."""

_Indexed = Mapping[int, _Patterns]
"""Rules by the kind of thing that they are about."""


def _indexed(acls: Iterable[Acl]) -> _Indexed:
    index: dict[int, _Patterns] = {}
    for acl in acls:
        index.setdefault(acl.resource_type, _Patterns()).add(acl)
    return index


class _View:
    """The rules about one client, and the answers that it was given. `may` has the operations that
    it may do, as bits, by name in a dict for each kind. `older` is the view of the old generation.
    """

    __slots__ = ("anywhere", "may", "older", "rules", "subjects")

    def __init__(
        self,
        subjects: Sequence[_Subject],
        rules: Sequence[_Indexed],
        older: "_View | None" = None,
    ) -> None:
        self.subjects = tuple(subjects)
        self.rules = rules
        self.older = older
        self.may: tuple[dict[str, int], ...] = tuple({} for _ in range(max(ResourceType) + 1))
        self.anywhere: dict[tuple[AclOperation, ResourceType], bool] = (
            {} if older is None else older.anywhere
        )


class Authorizer:
    """A `May` that obeys rules. Give it all of them with `adopt` whenever they have changed."""

    def __init__(self, super_users: Iterable[str] = (), *, allow_unruled: bool = False) -> None:
        """`allow_unruled` allows everybody everything with a thing that no rule covers."""
        self.number = 0  # of changes of the rules
        self._super_users = frozenset(super_users)
        self._allow_unruled = allow_unruled
        self._listeners: list[Callable[[], None]] = []
        self._adopt(())

    def when_changed(self, forget: Callable[[], None]) -> None:
        """Have somebody called at each change of the rules, who has to forget what was decided by
        the former ones.
        """
        self._listeners.append(forget)

    def adopt(self, acls: Sequence[Acl]) -> None:
        """From now on exactly these rules count. A sequence that is known already is no change."""
        if acls is not self._acls:
            self._adopt(acls)
            for forget in self._listeners:
                forget()

    def _adopt(self, acls: Sequence[Acl]) -> None:
        self.number += 1
        self._acls = acls
        self._by_subject: dict[_Subject, list[Acl]] = {}
        for acl in acls:
            self._by_subject.setdefault((acl.principal, acl.host), []).append(acl)
        self._indexes: dict[_Subject, _Indexed] = {}  # as far as somebody has asked
        self._every_index: _Indexed | None = None
        self._forget()

    def __call__(
        self, client: Client, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        """Whether a client may do something. See `May`."""
        view = self._views.get((client.principal, client.host)) or self._new_view(client)
        if view is None:
            return True
        if name is ANY:
            return self._anywhere(view, operation, kind)
        may = view.may[kind].get(name)
        if may is None:
            may = self._remembered(view, kind, name)
        return may >> operation & 1 == 1

    def alike(self, client: Client) -> Hashable:
        """Clients for which this is the same may do the same, until the rules change."""
        view = self._views.get((client.principal, client.host)) or self._new_view(client)
        return None if view is None else view.subjects

    def sees(self, client: Client, topic: str) -> bool:
        """Whether a client may know of a topic."""
        return self(client, DESCRIBE, TOPIC, topic)

    def _forget(self) -> None:
        self._views: dict[_Subject, _View] = {}
        self._old_views: dict[_Subject, _View] = {}
        self._count = 0  # of the young ones

    def _new_view(self, client: Client) -> _View | None:
        """None for a super user, who needs none."""
        if client.principal in self._super_users:
            return None
        self._make_room(_VIEW_COUNTS)
        place = client.principal, client.host
        older = self._old_views.get(place)
        if older is not None:
            view = _View(older.subjects, older.rules, older)
        else:
            subjects = self._subjects_of(client)
            view = _View(subjects, [self._index_of(subject) for subject in subjects])
        self._views[place] = view
        return view

    def _subjects_of(self, client: Client) -> list[_Subject]:
        host = client.host.removeprefix("/")
        return [
            (principal, rule_host)
            for principal in dict.fromkeys((client.principal, EVERY_PRINCIPAL))
            for rule_host in dict.fromkeys((host, WILDCARD))
            if (principal, rule_host) in self._by_subject
        ]

    def _index_of(self, subject: _Subject) -> _Indexed:
        index = self._indexes.get(subject)
        if index is None:
            index = self._indexes[subject] = _indexed(self._by_subject[subject])
        return index

    def _make_room(self, more: int) -> None:
        self._count += more
        if self._count > REMEMBERED_MAX // 2:
            for view in self._views.values():
                view.older = None
            self._old_views, self._views = self._views, {}
            self._count = more

    def _remembered(self, view: _View, kind: ResourceType, name: str) -> int:
        may = None if view.older is None else view.older.may[kind].get(name)
        if may is None:
            may = self._decided(view, kind, name)
        if len(name) <= LONGEST_REMEMBERED:
            self._make_room(1)
            view.may[kind][name] = may
        return may

    def _decided(self, view: _View, kind: ResourceType, name: str) -> int:
        """The operations that a client may do with a thing, as bits."""
        allowed = denied = 0
        for rules in view.rules:
            patterns = rules.get(kind)
            if patterns is not None:
                for bits in patterns.covering(name):
                    allowed |= bits.allowed
                    denied |= bits.denied
        if self._allow_unruled and not (allowed or denied) and not self._is_ruled(kind, name):
            return _EVERYTHING
        if allowed & _DESCRIBING:
            allowed |= 1 << DESCRIBE
        if allowed & _DESCRIBING_CONFIGS:
            allowed |= 1 << DESCRIBE_CONFIGS
        return allowed & ~denied

    def _is_ruled(self, kind: ResourceType, name: str) -> bool:
        """Whether any rule covers a thing, whoever it is about."""
        if self._every_index is None:
            self._every_index = _indexed(self._acls)
        patterns = self._every_index.get(kind)
        return patterns is not None and any(True for _ in patterns.covering(name))

    def _anywhere(self, view: _View, operation: AclOperation, kind: ResourceType) -> bool:
        known = view.anywhere.get((operation, kind))
        if known is None:
            known = bool(self._decided(view, kind, _PROBE) >> operation & 1) or _is_anywhere(
                [rules[kind] for rules in view.rules if kind in rules], 1 << operation
            )
            view.anywhere[operation, kind] = known
        return known


def _is_anywhere(rules: Sequence[_Patterns], bit: int) -> bool:
    """Whether an operation is allowed for some name, as upstream judges it: an ALLOW counts unless
    a DENY names the same literal, or a prefix of its name.
    """
    literals = [entry for patterns in rules for entry in patterns.literals.items()]
    prefixed = [entry for patterns in rules for entry in patterns.prefixed.items()]
    denied = {name for name, bits in literals if bits.denied & bit}
    allowed = {name for name, bits in literals if bits.allowed & bit}
    if WILDCARD in denied:
        return False
    if WILDCARD in allowed:
        return True
    barred = _Prefixes({name for name, bits in prefixed if bits.denied & bit})
    somewhere = (allowed - denied) | {name for name, bits in prefixed if bits.allowed & bit}
    return any(next(barred.of(name), None) is None for name in somewhere)
