# SPDX-License-Identifier: Apache-2.0
"""The deadlines of classic groups: sessions, and how long joins and syncs are awaited."""

from collections.abc import Iterable

from kohort.machines.deadlines import Deadlines, Key
from kohort.terms import GroupId, MemberId, Millis

JOIN, START, SYNC = "classic join", "classic start", "classic sync"
SESSION = "classic session"


def session_key(group_id: GroupId, member_id: MemberId) -> Key:
    return SESSION, group_id, member_id


def renew(
    deadlines: Deadlines, group_id: GroupId, member_id: MemberId, now: Millis, timeout_ms: int
) -> None:
    """Begin anew the session of a member, or of one who is expected to join."""
    deadlines.set((SESSION, group_id, member_id), Millis(now + timeout_ms))


def end_session(deadlines: Deadlines, group_id: GroupId, member_id: MemberId) -> None:
    deadlines.cancel((SESSION, group_id, member_id))


def await_joins(deadlines: Deadlines, group_id: GroupId, until: Millis) -> None:
    """Wait for everybody to join again."""
    deadlines.cancel((START, group_id))
    deadlines.set((JOIN, group_id), until)


def await_others(
    deadlines: Deadlines, group_id: GroupId, now: Millis, delay_ms: int, remaining_ms: int
) -> None:
    """Wait for more members to join a group that has just begun. After that, `remaining_ms` are
    left of the rebalance timeout.
    """
    deadlines.set((START, group_id), Millis(now + delay_ms), delay_ms, remaining_ms)


def end_joins(deadlines: Deadlines, group_id: GroupId) -> None:
    deadlines.cancel((START, group_id))
    deadlines.cancel((JOIN, group_id))


def await_syncs(deadlines: Deadlines, group_id: GroupId, until: Millis, generation: int) -> None:
    """Wait for everybody to ask for its assignment of this generation."""
    deadlines.set((SYNC, group_id), until, generation)


def end_syncs(deadlines: Deadlines, group_id: GroupId) -> None:
    deadlines.cancel((SYNC, group_id))


def end_all(deadlines: Deadlines, group_id: GroupId, members: Iterable[MemberId]) -> None:
    """The group is gone, and with it the sessions of these."""
    end_joins(deadlines, group_id)
    end_syncs(deadlines, group_id)
    for member_id in members:
        end_session(deadlines, group_id, member_id)
