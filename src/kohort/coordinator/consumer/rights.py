# SPDX-License-Identifier: Apache-2.0
"""Which topics of an expression a member may know of, where there are rules of access (KIP-848).

An expression is resolved for a group to the topics that any of its members may describe: the log
has these. A member reads those of them that it may describe itself. No record tells whose member it
is: that is known from heartbeats, and forgotten by a restart. A member that nobody has heard of
since then keeps what it was meant to have, until its next heartbeat.

Kafka resolves an expression by the rights of whoever's heartbeat comes first, for all members.
"""

from collections.abc import Generator, Hashable, Iterable, Mapping
from typing import NamedTuple

from kohort.coordinator.consumer.group import ConsumerGroup, View
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.state import State, TopicRights
from kohort.machines.effects import Client
from kohort.terms import GroupId, MemberId

AT_ONCE = 100  # questions about rights in a step: one takes 12 µs where no answer is remembered

Seen = dict[tuple[str, Hashable], frozenset[str]]
"""The topics of an expression that clients with the same rights may know of."""


def names_of(state: State, group: ConsumerGroup, member: Member) -> tuple[str, ...]:
    """The topics that a member reads, by name or by an expression that is resolved."""
    expression = member.subscribed_regex
    if not expression:
        return member.subscribed_names
    resolved = group.resolved.get(expression, ())
    if state.rights is not None:
        resolved = _visible(state, group, member, resolved)
    return (*member.subscribed_names, *resolved)


def _visible(
    state: State, group: ConsumerGroup, member: Member, resolved: tuple[str, ...]
) -> tuple[str, ...]:
    view = group.views.get(member.id)
    if view is not None and view.expression == member.subscribed_regex:
        return tuple(name for name in resolved if name in view.topics)
    if member.id in group.heard:
        return ()
    target = group.targets.get(member.id, NOTHING).partitions
    by_name = state.topics.by_name
    return tuple(name for name in resolved if name in by_name and by_name[name].id in target)


def is_known(state: State, group: ConsumerGroup, member: Member) -> bool:
    """Whether it is known what the expression of a member names for it, if it has one."""
    if state.rights is None or not member.subscribed_regex:
        return True
    view = group.views.get(member.id)
    return view is not None and view.is_current and view.expression == member.subscribed_regex


def hear(state: State, group: ConsumerGroup, member: Member, client: Client, *, says: bool) -> None:
    """A client has sent a heartbeat of a member, and `says` what the member subscribes to: from now
    on its rights count. One that joins has at once what others with the same rights have.
    """
    rights = state.rights
    if rights is None or not member.subscribed_regex:
        return
    before = group.heard.get(member.id)
    if before is not None and (not says or before == client):
        return
    if len(group.heard) > 2 * len(group.members):  # some have been refused
        group.heard = {known: who for known, who in group.heard.items() if known in group.members}
    view = group.views.get(member.id)
    if before is None and member.id in group.members:
        kept = frozenset(names_of(state, group, member))
        group.views[member.id] = View(member.subscribed_regex, kept, is_kept=True, is_current=False)
    elif before is None:
        shared = _view_of_others(rights, group, member.subscribed_regex, client)
        if shared is not None:
            group.views[member.id] = shared
    elif view is not None and rights.alike(before) != rights.alike(client):
        group.views[member.id] = view._replace(is_current=False)
    group.heard[member.id] = client


def hear_of_new(state: State, group: ConsumerGroup, member_id: MemberId, client: Client) -> None:
    """The client of a member that has made the group, which is another object since."""
    member = group.members.get(member_id)
    if state.rights is not None and member is not None and member.subscribed_regex:
        group.heard.setdefault(member_id, client)


def _view_of_others(
    rights: TopicRights, group: ConsumerGroup, expression: str, client: Client
) -> View | None:
    alike = rights.alike(client)
    for member_id, view in group.views.items():
        if view.expression == expression and view.is_current:
            other = group.heard.get(member_id)
            if other is not None and rights.alike(other) == alike:
                return view
    return None


def look(
    state: State, group_id: GroupId, found: Mapping[str, tuple[str, ...]]
) -> Generator[None, None, Seen]:
    """Ask which of these topics members may know of: once for all with the same rights, and some
    topics in a step. For who has joined meanwhile it goes on, and other rules let it begin anew: in
    the step in which it returns, it knows all that `resolve` asks.
    """
    seen: Seen = {}
    asked = 0
    rights = state.rights
    group = state.groups.consumer(group_id)
    while rights is not None and group is not None:
        unknown = _unknown(rights, group, found, seen)
        if not unknown:
            break
        number = rights.number
        for key, client in unknown.items():
            names, visible = found[key[0]], []
            for begin in range(0, len(names), AT_ONCE):
                some = names[begin : begin + AT_ONCE]
                asked += len(some)
                if asked > AT_ONCE:
                    yield
                    asked = len(some)
                visible += [name for name in some if rights.sees(client, name)]
            seen[key] = frozenset(visible)
            if rights.number != number:
                seen.clear()
                break
        group = state.groups.consumer(group_id)
    return seen


def _unknown(
    rights: TopicRights, group: ConsumerGroup, found: Mapping[str, Iterable[str]], seen: Seen
) -> dict[tuple[str, Hashable], Client]:
    """A client for each of the rights of which it is not known what they let one see."""
    unknown: dict[tuple[str, Hashable], Client] = {}
    for member_id, member in group.members.items():
        client = group.heard.get(member_id)
        if client is not None and member.subscribed_regex in found:
            key = member.subscribed_regex, rights.alike(client)
            if key not in seen:
                unknown.setdefault(key, client)
    return unknown


def resolve(
    rights: TopicRights,
    state: State,
    group: ConsumerGroup,
    found: Mapping[str, Iterable[str]],
    seen: Seen,
) -> tuple[dict[str, tuple[str, ...]], dict[MemberId, View]]:
    """Of the topics that expressions match, those that any member may describe; and the views of
    the members that have been heard of. `look` has found out what these see.
    """
    views: dict[MemberId, View] = {}
    counted: set[tuple[str, Hashable]] = set()
    known: dict[str, set[str]] = {expression: set() for expression in found}
    for member in group.members.values():
        expression = member.subscribed_regex
        if expression not in found:
            continue
        client = group.heard.get(member.id)
        if client is None:
            known[expression].update(names_of(state, group, member))
            continue
        key = expression, rights.alike(client)
        if key not in counted:
            counted.add(key)
            known[expression] |= seen[key]
        views[member.id] = View(expression, seen[key])
    topics = {
        expression: tuple(name for name in names if name in known[expression])
        for expression, names in found.items()
    }
    return topics, views


class ViewChange(NamedTuple):
    """Whether members read other topics by new views, and whether one of them has had a view."""

    changed: bool
    had_views: bool


def adopt(group: ConsumerGroup, views: Mapping[MemberId, View]) -> ViewChange:
    """Take these views. A member that is heard of for the first time since a restart reads other
    topics where it has what it may not have, or where a target was made before its rights were
    known.
    """
    changed = had_views = False
    for member_id, view in views.items():
        before = group.views.get(member_id)
        if before is None or before.expression != view.expression:
            changed = changed or bool(view.topics)
        elif before.is_kept:
            changed = changed or not view.topics.issuperset(before.topics)
        elif view.topics != before.topics:
            changed = had_views = True
        group.views[member_id] = view
    if group.planned_blindly and all(
        member.id in group.heard for member in group.members.values() if member.subscribed_regex
    ):
        group.planned_blindly = False
        changed = True
    return ViewChange(changed, had_views)


def give_up(state: State, group: ConsumerGroup) -> None:
    """The expressions cannot be resolved for now: every member goes on with what it has."""
    if state.rights is None:
        return
    for member in group.members.values():
        if member.id in group.heard and not is_known(state, group, member):
            had = frozenset(names_of(state, group, member))
            group.views[member.id] = View(member.subscribed_regex, had)
