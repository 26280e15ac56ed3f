"""Keyed deadlines, moved far more often than met.

A heartbeat moves its session deadline and nothing else, so moving is an assignment: the heap keeps
the older, earlier time and is corrected when that time comes. A deadline has one place in the heap;
places that cancelling or an earlier time have left behind are dropped when they are met.
"""

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Any

from kohort.terms import Millis

Action = Callable[..., Any]


class _Deadline:
    __slots__ = ("action", "arguments", "at", "place")

    def __init__(self, at: Millis, action: Action, arguments: tuple[Any, ...]) -> None:
        self.at = at
        self.place = 0  # the number of its entry in the heap
        self.action = action
        self.arguments = arguments


class Deadlines:
    """The timers of one shard. Nothing here runs by itself: `due` says what has been met."""

    def __init__(self) -> None:
        self._deadlines: dict[Hashable, _Deadline] = {}
        self._heap: list[tuple[Millis, int, Hashable]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._deadlines

    def set(self, key: Hashable, at: Millis, action: Action, *arguments: Any) -> None:
        """Run `action(shard, now, *arguments)` at `at`. A key that is set already is replaced."""
        known = self._deadlines.get(key)
        if known is not None and known.at <= at:
            known.at, known.action, known.arguments = at, action, arguments
            return
        self._deadlines[key] = deadline = _Deadline(at, action, arguments)
        self._push(deadline, key)

    def move(self, key: Hashable, at: Millis) -> None:
        """Move a deadline that is set to a later time. The cheapest call here, made by every
        heartbeat.
        """
        self._deadlines[key].at = at

    def cancel(self, key: Hashable) -> None:
        self._deadlines.pop(key, None)

    def at(self, key: Hashable) -> Millis | None:
        known = self._deadlines.get(key)
        return None if known is None else known.at

    def wake_at(self) -> Millis | None:
        """When to look again: never later than the earliest deadline, sometimes earlier."""
        heap = self._heap
        while heap and self._in_place(heap[0]) is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: Millis) -> tuple[Action, tuple[Any, ...]] | None:
        """The next deadline that has been met, or None. It is forgotten before its action runs."""
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
            return deadline.action, deadline.arguments
        return None

    def _push(self, deadline: _Deadline, key: Hashable) -> None:
        self._pushed += 1  # keeps the order of equal times and never compares keys
        deadline.place = self._pushed
        heappush(self._heap, (deadline.at, self._pushed, key))

    def _in_place(self, entry: tuple[Millis, int, Hashable]) -> _Deadline | None:
        """The deadline that an entry of the heap stands for, or None when it has been left."""
        deadline = self._deadlines.get(entry[2])
        return None if deadline is None or deadline.place != entry[1] else deadline
