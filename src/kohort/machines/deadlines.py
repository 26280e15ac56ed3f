# SPDX-License-Identifier: Apache-2.0
"""Keyed deadlines, moved far more often than met.

A heartbeat moves its session deadline and nothing else, so moving is an assignment: the heap keeps
the older, earlier time and is corrected when that time comes. A deadline has one place in the heap.
Cancelling, or an earlier time, leaves places behind. They are dropped when they come up, or when
they are more than those in use: a time may be weeks away.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from kohort.machines.effects import Effects
from kohort.terms import GroupId, Millis

Key = tuple[Any, ...]
"""The kind of a deadline, its group, and whatever distinguishes it from others of its kind."""


class Session(NamedTuple):
    """The deadline that a sign of life of a member moves, and how far."""

    key: Key
    timeout_ms: int


class _Deadline:
    __slots__ = ("at", "details", "place")

    def __init__(self, at: Millis, details: tuple[Any, ...]) -> None:
        self.at = at
        self.place = 0  # the number of its entry in the heap
        self.details = details


class Deadlines:
    """The timers of one shard. Nothing here runs by itself: `pop_due` says what has been met, and
    the table of the shard says what a kind of deadline does.
    """

    def __init__(self) -> None:
        self._deadlines: dict[Key, _Deadline] = {}
        self._heap: list[tuple[Millis, int, Key]] = []
        self._pushed = 0
        self._met: tuple[Key, tuple[Any, ...]] | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Key) -> bool:
        return key in self._deadlines

    def set(self, key: Key, at: Millis, *details: Any) -> None:
        """Set a deadline to `at`, or move it there."""
        known = self._deadlines.get(key)
        if known is not None and known.at <= at:
            known.at, known.details = at, details
            return
        self._deadlines[key] = deadline = _Deadline(at, details)
        self._push(deadline, key)
        if known is not None:
            self._place_left()

    def renew(self, session: Session, now: Millis) -> None:
        """A member has shown that it is alive: begin its session anew."""
        key, timeout_ms = session
        at: Any = now + timeout_ms  # a call of Millis takes as long as the rest of this
        known = self._deadlines.get(key)
        if known is not None and known.at <= at:
            known.at = at  # as `set` does; nearly every heartbeat ends here
        else:
            self.set(key, at)

    def cancel(self, key: Key) -> None:
        if self._deadlines.pop(key, None) is not None:
            self._place_left()

    def at(self, key: Key) -> Millis | None:
        known = self._deadlines.get(key)
        return None if known is None else known.at

    def clock_jumped(self, by_ms: int) -> None:
        """The clock has jumped forward or back: every deadline moves with it."""
        for deadline in self._deadlines.values():
            deadline.at = Millis(deadline.at + by_ms)
        self._heap = [(Millis(at + by_ms), place, key) for at, place, key in self._heap]

    def wake_at(self) -> Millis | None:
        """When to look again: never later than the earliest deadline, sometimes earlier."""
        heap, deadlines = self._heap, self._deadlines
        while heap:
            at, place, key = heap[0]
            deadline = deadlines.get(key)
            if deadline is not None and deadline.place == place:
                return at
            heappop(heap)  # it has been left
        return None

    def pop_due(self, now: Millis) -> tuple[Key, tuple[Any, ...]] | None:
        """The key and the details of the next deadline that has been met, or None. It is forgotten
        before anybody acts on it.
        """
        heap = self._heap
        while heap and heap[0][0] <= now:
            entry = heappop(heap)
            deadline = self._in_place(entry)
            if deadline is None:
                continue
            key = entry[2]
            if deadline.at > now:
                self._push(deadline, key)
                continue
            del self._deadlines[key]
            self._met = key, deadline.details
            return self._met
        return None

    def put_off(self, until: Millis) -> None:
        """Set the deadline that was met last once more, with its details. Only once: nothing
        happens where that has been done already.
        """
        if self._met is not None:
            key, details = self._met
            self._met = None
            self.set(key, until, *details)

    def _push(self, deadline: _Deadline, key: Key) -> None:
        self._pushed += 1  # keeps the order of equal times and never compares keys
        deadline.place = self._pushed
        heappush(self._heap, (deadline.at, self._pushed, key))

    def _place_left(self) -> None:
        """Sweep the heap once more than half of it is left behind: each place left has paid for
        two to be looked at.
        """
        if len(self._heap) > 2 * len(self._deadlines):
            self._heap = [entry for entry in self._heap if self._in_place(entry) is not None]
            heapify(self._heap)

    def _in_place(self, entry: tuple[Millis, int, Key]) -> _Deadline | None:
        """The deadline that an entry of the heap stands for, or None when it has been left."""
        deadline = self._deadlines.get(entry[2])
        return None if deadline is None or deadline.place != entry[1] else deadline


def group_of(key: Key) -> GroupId:
    """The group that a deadline is about."""
    group_id: GroupId = key[1]
    return group_id


AGAIN_MS = 500  # from a deadline that could not be met to the next attempt; upstream waits as long


class DeadlineMixin:
    """A part of `machines.machine.Machine`. A subclass has the deadlines, and knows what to do."""

    deadlines: Deadlines

    def meet(self, kind: str, now: Millis, *about: Any) -> Effects:
        """Do what one deadline asks for."""
        raise NotImplementedError

    def tick(self, now: Millis) -> Iterator[Effects]:
        """Do what is due, one deadline at a time."""
        while (due := self.deadlines.pop_due(now)) is not None:
            (kind, *about), details = due
            yield self.meet(kind, now, *about, *details)

    def put_off(self, now: Millis) -> None:
        """The last step of tick() has failed or could not be written: its deadline comes again."""
        self.deadlines.put_off(Millis(now + AGAIN_MS))

    def wake_at(self) -> Millis | None:
        """When tick() has something to do; it may be asked too early, never too late."""
        return self.deadlines.wake_at()

    def clock_jumped(self, by_ms: int) -> None:
        """The clock of the broker has jumped forward or back by this much."""
        self.deadlines.clock_jumped(by_ms)
