"""What has been written, what of it is on the disk, and the answers that wait for that.

An answer leaves when everything it tells of is durable. With `log.sync=none` that is at once; with
`log.sync=group` one round of syncs makes durable what all requests of a turn have written.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from kohort.errors import Broken
from kohort.server.tokens import Token
from kohort.storage.log import Log
from kohort.terms import Offset


class Written(Protocol):
    """Something with a log, that wants to know what of it is durable."""

    log: Log

    def durable(self, end: Offset) -> None:
        """The log is durable up to here. Must not raise."""


class _Held:
    """An answer, and how many logs it still waits for."""

    __slots__ = ("missing", "response", "token")

    def __init__(self, token: Token, response: Any) -> None:
        self.token = token
        self.response = response
        self.missing = 0


class Durability:
    """The rounds of syncs of one cluster. `begin` hands out logs, any thread may sync them, `end`
    takes the result; between the two nothing here is touched by that thread.
    """

    def __init__(self, *, synced: bool) -> None:
        self._synced = synced
        self._dirty: dict[Written, None] = {}
        self._in_sync: list[Written] = []
        self._held: dict[Written, deque[tuple[Offset, _Held]]] = {}
        self._leaving: dict[Written, Callable[[], None]] = {}

    def wrote(self, one: Written) -> None:
        """Its log holds more than it has made durable."""
        if self._synced:
            self._dirty[one] = None
        else:
            self._reached(one, one.log.end)

    def answer(self, token: Token, response: Any, behind: Iterable[Written]) -> None:
        """Answer when what the logs of these hold now is durable."""
        held = _Held(token, response)
        for one in behind:
            if one in self._dirty or one in self._in_sync:
                held.missing += 1
                self._held.setdefault(one, deque()).append((one.log.end, held))
        if not held.missing:
            token.answer(response)

    def forget(self, one: Written, leave: Callable[[], None]) -> None:
        """It is gone: nobody waits for it any longer. `leave` is called when no sync has its log in
        hand any more.
        """
        self._dirty.pop(one, None)
        self._release(one, None)
        if one in self._in_sync:
            self._leaving[one] = leave
        else:
            leave()

    def begin(self) -> list[Log]:
        """The logs to sync now; empty when nothing is written, or a sync is under way."""
        if self._in_sync or not self._dirty:
            return []
        self._in_sync = list(self._dirty)
        self._dirty.clear()
        return [one.log for one in self._in_sync]

    def end(self, ends: list[Offset]) -> list[Written]:
        """What `begin` has handed out is durable up to these ends. The answer: whose they are."""
        done, self._in_sync = self._in_sync, []
        if len(ends) != len(done):
            raise Broken(f"{len(ends)} logs were synced, expected {len(done)}")
        for one, end in zip(done, ends, strict=True):
            leave = self._leaving.pop(one, None)
            if leave is None:
                self._reached(one, end)
            else:
                leave()
        return done

    def _reached(self, one: Written, end: Offset) -> None:
        one.durable(end)
        self._release(one, end)

    def _release(self, one: Written, end: Offset | None) -> None:
        """Answer what has waited for a log up to `end`; all of it when that is None."""
        waiting = self._held.get(one)
        if waiting is None:
            return
        while waiting and (end is None or waiting[0][0] <= end):
            held = waiting.popleft()[1]
            held.missing -= 1
            if not held.missing:
                held.token.answer(held.response)
        if not waiting:
            self._held.pop(one, None)
