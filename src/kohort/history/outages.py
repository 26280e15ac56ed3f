# SPDX-License-Identifier: Apache-2.0
"""Times when the coordinator itself was away, or may have been.

When another broker takes over, or the same one starts again, members have the time of their
sessions to come back. If none of them does, the outage has removed them.

A broker that stands still and goes on may leave no trace but a rest: nothing is written about the
group. Then requests that have waited are handled all at once, and sessions end that nobody could
prolong. So what is written right behind a rest shows no sign of life of that moment.
"""

from kohort.history.events import Commits, Record
from kohort.history.rows import COORDINATOR_AWAY
from kohort.history.state import Rest, State
from kohort.history.story import Story

AT_ONCE_US = 5_000_000
"""How far apart members are removed whose sessions began anew together."""
LONGEST_OUTAGE_US = 1_800_000_000
"""How long ago the last sign of life may be of a member that an outage has removed."""
FEWEST = 2
"""A single member may as well have gone by itself."""
SHORTEST_REST_US = 1_000_000
"""A clock that goes back by more than this is another one."""
BEHIND_REST_US = 1_000_000
"""For how long after a rest requests are handled that have waited."""


def on_record(state: State, record: Record) -> None:
    """Note a change of the coordinator, and the members that were there before the record."""
    outage = state.outage
    before = outage.leader_epoch
    if not _changes(state, record.leader_epoch, record.at):
        return
    members = [*state.consumer.members, *state.classic.rows]
    outage.silent = members if before is not None else []
    outage.out = []


def on_commit(state: State, leader_epoch: int | None, at: int | None) -> None:
    """Somebody is at work, under a coordinator of this epoch."""
    if leader_epoch is not None:
        _changes(state, leader_epoch, at)
        state.outage.silent, state.outage.out = [], []


def _changes(state: State, leader_epoch: int | None, at: int | None) -> bool:
    """Whether the coordinator is another one, or the same one anew."""
    outage = state.outage
    before = outage.leader_epoch
    if leader_epoch is None or leader_epoch == before:
        return False
    outage.leader_epoch = leader_epoch
    if before is not None:
        outage.changed_at = at
    return True


def has_changed_since(state: State, at: int) -> bool:
    """Whether the coordinator has changed since a time. Then a member that was not heard of since
    may have been there all the while, and have found nobody who would hear it.
    """
    changed_at = state.outage.changed_at
    return changed_at is not None and changed_at >= at


def alive(state: State, member_id: str) -> None:
    """A member that is there shows a sign of life."""
    if member_id in state.outage.silent:
        state.outage.silent, state.outage.out = [], []


def gone(state: State, member_id: str, rebalance: int, number: int) -> None:
    """A member is removed. If it was the last of several, and none of them was heard of since the
    coordinator changed, the outage is the likely cause.
    """
    outage = state.outage
    if member_id not in outage.silent:
        return
    outage.silent.remove(member_id)
    outage.out.append((rebalance, number))
    if outage.silent:
        return
    removals = [state.rebalances[offset].removals[index] for offset, index in outage.out]
    times = [removal.removed_at for removal in removals if removal.removed_at is not None]
    if len(removals) >= FEWEST and len(times) == len(removals):
        lately = all(
            removal.seen_at is not None and at - removal.seen_at <= LONGEST_OUTAGE_US
            for removal, at in zip(removals, times, strict=True)
        )
        if lately and max(times) - min(times) <= AT_ONCE_US:
            for removal in removals:
                removal.likely = removal.likely._replace(likely=COORDINATOR_AWAY)
                removal.waits_for = None
    outage.out = []


def on_time(state: State, event: Record | Commits) -> None:
    """Note a rest that an event ends."""
    begins = event.first_at if isinstance(event, Commits) else event.at
    if begins is not None and state.now is not None and begins - state.now > SHORTEST_REST_US:
        state.rest = _later(state.rest, Rest(state.now, begins))


def take_rest(story: Story) -> None:
    """The commits up to here are all there: the latest rest that one of them brought is the last
    one.
    """
    story.state.rest = _later(story.state.rest, story.rest)


def _later(rest: Rest | None, other: Rest | None) -> Rest | None:
    if rest is None or other is None:
        return rest or other
    return other if other.until > rest.until else rest


def is_behind(state: State, at: int | None) -> bool:
    """Whether a time is that of a clock that is behind the one before: between the two of them no
    time has a meaning.
    """
    return at is not None and state.now is not None and state.now - at > SHORTEST_REST_US


def waited_us(story: Story, event: Commits) -> int:
    """How long the last of these commits may have waited until the coordinator handled it."""
    rest = story.state.rest
    if event.rest_since is not None and event.rest_until is not None:
        rest = Rest(event.rest_since, event.rest_until)
        story.rest = _later(story.rest, rest)
    if rest is None or event.at is None:
        return 0
    behind = rest.until <= event.at <= rest.until + BEHIND_REST_US
    return rest.until - rest.since if behind else 0
