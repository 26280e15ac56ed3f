# SPDX-License-Identifier: Apache-2.0
"""Fetches that wait for data: answered when enough has arrived, or when their time is over.

Nothing here knows a clock or a socket. `arrived` is told when a partition has grown, and `due` is
asked at `wake_at`; both return the fetches to answer now.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from kohort.server.requests.reply_tokens import ReplyToken
from kohort.server.scheduler import CLIENTS, NEW, Over
from kohort.terms import Millis

Answer = Callable[[], Any]
"""Makes what a fetch is answered with, from what can be read when it is asked."""

WatchKey = tuple[str, int]
"""A topic and the number of a partition."""

_STALE_MAX = 256  # deadlines of answered fetches that may be left before they are removed


class DelayedFetch:
    """One fetch that waits. It is worth an answer once `missing_bytes` more have arrived. Then it
    waits for a slice: a record may be waited for by thousands, of many partitions each.
    """

    __slots__ = ("answer", "deadline", "done", "had_ns", "keys", "missing_bytes", "token")
    line = CLIENTS

    def __init__(
        self,
        token: ReplyToken,
        answer: Answer,
        keys: list[WatchKey],
        missing_bytes: int,
        deadline: Millis,
    ) -> None:
        self.token: ReplyToken | None = (
            token  # both None once it is answered or cancelled: its place
        )
        self.answer: Answer | None = answer  # among the deadlines may stay for long
        self.had_ns = NEW
        self.keys = keys
        self.missing_bytes = missing_bytes
        self.deadline = deadline
        self.done = False

    def run(self, _over: Over) -> bool:
        """Answer it."""
        token, answer = self.token, self.answer
        self.drop()
        if token is not None and answer is not None and not getattr(token, "gone", False):
            try:
                response = answer()
            except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
                token.fail(error)
            else:
                token.answer(response)
        return False

    def drop(self) -> None:
        """Let go of its client and its request."""
        self.token = self.answer = None


class FetchPurgatory:
    """The parked fetches of a cluster, by the partitions they watch and by their deadlines."""

    def __init__(self) -> None:
        self._watching: dict[WatchKey, dict[DelayedFetch, None]] = {}
        self.fetches: dict[ReplyToken, DelayedFetch] = {}  # all of them, by their tokens
        self._deadlines: list[tuple[Millis, int, DelayedFetch]] = []
        self._parked = 0

    def __len__(self) -> int:
        return len(self.fetches)

    def __iter__(self) -> Iterator[DelayedFetch]:
        return iter(self.fetches.values())

    def park(
        self,
        token: ReplyToken,
        answer: Answer,
        keys: Iterable[WatchKey],
        *,
        missing_bytes: int,
        deadline: Millis,
    ) -> DelayedFetch:
        """Keep an answer until `missing_bytes` have arrived under `keys`, at most to `deadline`."""
        parked = DelayedFetch(token, answer, list(dict.fromkeys(keys)), missing_bytes, deadline)
        self.fetches[token] = parked
        for key in parked.keys:
            self._watching.setdefault(key, {})[parked] = None
        self._parked += 1  # keeps the order of equal deadlines
        heappush(self._deadlines, (deadline, self._parked, parked))
        return parked

    def arrived(self, key: WatchKey, size_bytes: int) -> list[DelayedFetch]:
        """The fetches that have now got enough, because a partition has grown."""
        watching = self._watching.get(key)
        if not watching:
            return []
        enough = []
        for parked in watching:
            parked.missing_bytes -= size_bytes
            if parked.missing_bytes <= 0:
                enough.append(parked)
        for parked in enough:
            self._forget(parked)
        return enough

    def places(self) -> list[WatchKey]:
        """The partitions that fetches watch."""
        return list(self._watching)

    def changed(self, key: WatchKey) -> list[DelayedFetch]:
        """The fetches that watch a partition that was deleted or has another leader."""
        found = list(self._watching.get(key, ()))
        for parked in found:
            self._forget(parked)
        return found

    def due(self, now: Millis) -> list[DelayedFetch]:
        """The fetches whose time is over, the earliest first."""
        over = []
        while self._deadlines and self._deadlines[0][0] <= now:
            parked = heappop(self._deadlines)[2]
            if not parked.done:
                self._forget(parked)
                over.append(parked)
        return over

    def clock_jumped(self, by_ms: int) -> None:
        """The wall clock has jumped: every fetch still waits for as long as it asked."""
        self._deadlines = [
            (Millis(at + by_ms), number, waiter) for at, number, waiter in self._deadlines
        ]

    def wake_at(self) -> Millis | None:
        """When the next fetch's time is over, or None when none waits."""
        while self._deadlines and self._deadlines[0][2].done:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def cancel(self, token: ReplyToken) -> None:
        """Forget a fetch whose client has gone."""
        parked = self.fetches.get(token)
        if parked is not None:
            self._forget(parked)
            parked.drop()

    def take(self, parked: DelayedFetch) -> None:
        """A fetch waits no longer."""
        if not parked.done:
            self._forget(parked)

    def _forget(self, parked: DelayedFetch) -> None:
        parked.done = True
        if parked.token is not None:
            del self.fetches[parked.token]
        if len(self._deadlines) > 2 * len(self.fetches) + _STALE_MAX:
            self._deadlines = [deadline for deadline in self._deadlines if not deadline[2].done]
            heapify(self._deadlines)
        for key in parked.keys:
            watching = self._watching[key]
            watching.pop(parked, None)
            if not watching:
                del self._watching[key]
