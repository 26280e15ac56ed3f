# SPDX-License-Identifier: Apache-2.0
"""What has been written, how much of it is on the disk, and the answers that wait for that.

An answer leaves when everything it tells about is durable. With `log.sync=none` that is at once.
With `log.sync=group` each log is synced by itself, with whatever has been written to it meanwhile,
on one of a few threads: a slow log holds up its own answers, and others only when the threads run
out. Some syncs are not made here but by the loop, and hold up everybody: of a segment that is
closed, of a file that was cleaned, and of one that gives way to another since too many are open. A
log whose sync fails ends the connections that wait for it, since its state on the disk is unknown.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from kohort.errors import Broken
from kohort.server.partitions.partition import Partition
from kohort.server.requests.reply_tokens import ReplyToken
from kohort.storage.log import Log
from kohort.terms import Offset


class SyncListener(Protocol):
    """A log that syncs make durable, and who must know how much of it is."""

    @property
    def log(self) -> Log:
        """What is synced."""

    @property
    def partition(self) -> Partition:
        """Whose log it is."""

    def durable(self, end: Offset) -> None:
        """The log is durable up to here. Must not raise."""

    def lost(self, error: Broken) -> None:
        """It is unknown how much of the log is durable, so it takes no more. Must not raise."""

    def after_sync(self) -> None:
        """A sync has ended, well or not, and its result is known to all. Must not raise."""


class _PendingReply:
    """An answer, and how many logs it still waits for."""

    __slots__ = ("missing", "response", "token")

    def __init__(self, token: ReplyToken, response: Any) -> None:
        self.token = token
        self.response = response
        self.missing = 0


class Durability:
    """The syncs of one cluster. `begin` hands out logs, which any threads may sync, and `end` takes
    the results; in between those threads touch nothing here.
    """

    def __init__(self, *, synced: bool) -> None:
        self.synced = synced
        self.dirty: dict[SyncListener, None] = {}  # these hold more than is durable
        self._in_sync: dict[SyncListener, None] = {}
        self._waiting_replies: dict[SyncListener, deque[tuple[Offset, _PendingReply]]] = {}
        self._leaving: dict[SyncListener, Callable[[], None]] = {}

    @property
    def busy(self) -> bool:
        """Whether a sync is under way, or must be begun."""
        return bool(self.dirty or self._in_sync)

    def wrote(self, listener: SyncListener) -> None:
        """Its log holds more than is durable."""
        if self.synced:
            self.dirty[listener] = None
        else:
            self._reached(listener, listener.log.end)

    def answer(self, token: ReplyToken, response: Any, behind: Iterable[SyncListener]) -> None:
        """Answer when what the logs of these hold now is durable."""
        reply = _PendingReply(token, response)
        for listener in behind:
            if listener in self.dirty or listener in self._in_sync:
                reply.missing += 1
                self._waiting_replies.setdefault(listener, deque()).append(
                    (listener.log.end, reply)
                )
        if not reply.missing:
            token.answer(response)

    def forget(self, listener: SyncListener, leave: Callable[[], None]) -> None:
        """Nothing waits for its log any longer. `leave` is called once no sync uses that."""
        self.dirty.pop(listener, None)
        self._release(listener, None)
        if listener in self._in_sync:
            self._leaving[listener] = leave
        else:
            leave()

    def begin(self) -> list[SyncListener]:
        """Those whose logs must be synced now, in the order in which they were written to. None of
        them is handed out again before its `end`.
        """
        if not self.dirty:
            return []
        ready = [listener for listener in self.dirty if listener not in self._in_sync]
        for listener in ready:
            del self.dirty[listener]
            self._in_sync[listener] = None
        return ready

    def end(self, listener: SyncListener, outcome: Offset | Broken) -> None:
        """A log that `begin` has handed out is durable up to an end, or its sync has failed."""
        del self._in_sync[listener]
        leave = self._leaving.pop(listener, None)
        if leave is not None:
            leave()
        elif isinstance(outcome, Broken):
            self.dirty.pop(listener, None)
            listener.lost(outcome)
            for _, reply in self._waiting_replies.pop(listener, ()):
                reply.token.fail(outcome)
        else:
            self._reached(listener, outcome)
        listener.after_sync()

    def _reached(self, listener: SyncListener, end: Offset) -> None:
        listener.durable(end)
        self._release(listener, end)

    def _release(self, listener: SyncListener, end: Offset | None) -> None:
        """Answer what has waited for a log up to `end`, or all of it when that is None."""
        waiting = self._waiting_replies.get(listener)
        if waiting is None:
            return
        while waiting and (end is None or waiting[0][0] <= end):
            reply = waiting.popleft()[1]
            reply.missing -= 1
            if not reply.missing:
                reply.token.answer(reply.response)
        if not waiting:
            self._waiting_replies.pop(listener, None)
