# SPDX-License-Identifier: Apache-2.0
"""Offsets that nobody has needed for long, and groups that have nothing left (KIP-211).

A pass over all groups begins at every check interval. It goes on a slice at a time, and calls are
answered between two slices. Each slice looks at the groups of that moment, but with the time of the
pass: whatever is committed meanwhile is younger.
"""

from collections.abc import Iterator
from itertools import islice

from kohort.coordinator import group_settings
from kohort.coordinator.group import Group
from kohort.coordinator.offsets.records import tombstone
from kohort.coordinator.offsets.store import NamedPartition
from kohort.coordinator.offsets.table import ABSENT
from kohort.coordinator.state import State
from kohort.machines.effects import Continuation, Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey
from kohort.terms import GroupId, GroupState, Millis

EXPIRY = "offset expiry"
_ASKED_FOR = "asked for"
SLICE_RECORDS = 2000
SLICE_OFFSETS = 10_000  # looked at
_COST_OF_A_GROUP = 20  # as many offsets could be looked at in its time
_COST_OF_A_GLANCE = 4


def await_next(state: State, now: Millis) -> None:
    """Let the next pass begin after the check interval."""
    state.deadlines.set((EXPIRY,), Millis(now + state.expiry_settings.check_interval_ms))


def begin_now(state: State, now: Millis) -> None:
    """Let a pass begin at once. It leaves groups alone that had no offsets before it: these wait
    for the check interval.
    """
    state.deadlines.set((EXPIRY,), now, _ASKED_FOR)


def begin(state: State, now: Millis, *asked_for: str) -> Effects:
    """The check interval is over, or somebody has asked for a pass."""
    await_next(state, now)
    return Effects(
        continuation=Continuation(long_task=_pass(state, now, ends_bare_groups=not asked_for))
    )


def _pass(state: State, now: Millis, *, ends_bare_groups: bool) -> Iterator[Effects]:
    """What has expired at `now`, in slices. Between two of them nothing is half written: a group
    ends in one step, behind its last offset.
    """
    records: list[Record] = []
    events: list[GroupEvent] = []
    looked_at = 0
    for group_id in dict.fromkeys([*state.groups.by_id, *state.offsets.committed]):
        more = _worth_looking(state, group_id, now)
        looked_at += _COST_OF_A_GLANCE
        while more:
            ended, more = _ended(state, group_id, now, ends_bare_groups=ends_bare_groups)
            records += ended
            looked_at += _COST_OF_A_GROUP + sum(
                table.count for table in state.offsets.of(group_id).values()
            )
            if ended:
                events.append(_expiry_event(group_id, ended))
            if more:
                yield Effects(records, events=events)
                records, events, looked_at = [], [], 0
        if len(records) >= SLICE_RECORDS or looked_at >= SLICE_OFFSETS:
            yield Effects(records, events=events)
            records, events, looked_at = [], [], 0
    if records:
        yield Effects(records, events=events)


def _worth_looking(state: State, group_id: GroupId, now: Millis) -> bool:
    """Whether a group may have something that has expired: of nearly all it is known at a glance
    that they have not.
    """
    tables = state.offsets.of(group_id)
    if not tables:
        return True
    until = Millis(now - state.expiry_settings.retention_ms)
    group = state.groups.get(group_id)
    since = None if group is None else group.idle_since
    if since is not None and since <= until:
        return True
    return any(table.may_have_expired(until) for table in tables.values())


def _ended(
    state: State, group_id: GroupId, now: Millis, *, ends_bare_groups: bool
) -> tuple[list[Record], bool]:
    """The tombstones of a group's offsets that have expired, and of the group when nothing else is
    left of it. True when there may be more.
    """
    group = state.groups.get(group_id)
    expired = [
        tombstone(group_id, *partition)
        for partition in islice(_expired(state, group_id, group, now), SLICE_RECORDS)
    ]
    if len(expired) == SLICE_RECORDS:
        return expired, True
    left = sum(table.count for table in state.offsets.of(group_id).values()) - len(expired)
    if (
        group is not None
        and group.lets_offsets_expire
        and group.state is GroupState.EMPTY
        and not left
        and (expired or ends_bare_groups)
        and not state.offsets.open_partitions(group_id)
    ):
        expired += [*group_settings.ended(state, group_id), *group.tombstones()]
    return expired, False


def _expired(
    state: State, group_id: GroupId, group: Group | None, now: Millis
) -> Iterator[NamedPartition]:
    """The partitions whose offset has expired. An open transaction holds the offsets that it
    changes, and a topic that is read all of its own.
    """
    until = Millis(now - state.expiry_settings.retention_ms)
    if group is not None:
        if not group.lets_offsets_expire:
            return
        if group.idle_since is not None:
            until = now if group.idle_since <= until else Millis(ABSENT)
    held = state.offsets.open_partitions(group_id)
    for topic, table in state.offsets.of(group_id).items():
        if group is None or not group.subscribes_to(topic):
            for partition in table.expired(until, now):
                if (topic, partition) not in held:
                    yield topic, partition


def _expiry_event(group_id: GroupId, ended: list[Record]) -> GroupEvent:
    offsets = sum(isinstance(record.key, OffsetCommitKey) for record in ended)
    return GroupEvent(group_id, f"expired offsets: {offsets}", Cause.EXPIRY)
