# SPDX-License-Identifier: Apache-2.0
"""Where an answer goes. A token is answered once, or fails once; its holder need not know more.

An error while an answer is made (a merge, an encoding) ends the connection that asked, and no
other.
"""

from collections.abc import Callable
from typing import Any, Protocol

from kohort.server.scheduler import CLIENTS, NEW, Over, Scheduler, never


class ReplyToken(Protocol):
    """A request that waits for its answer."""

    def answer(self, response: Any) -> None: ...
    def fail(self, error: Exception) -> None:
        """There will be no answer. This should not happen, and ends the connection."""


class MappingToken:
    """A token that changes the answer on its way: its shape, or a part that is put back."""

    __slots__ = ("_change", "_token")

    def __init__(self, token: ReplyToken, change: Callable[[Any], Any]) -> None:
        self._token = token
        self._change = change

    def answer(self, response: Any) -> None:
        try:
            changed = self._change(response)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self._token.fail(error)
        else:
            self._token.answer(changed)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


class ContinuationToken:
    """A token that goes on with a request once the answer of another part of the broker is there.
    What goes on answers the request by itself.
    """

    __slots__ = ("_go_on", "_token")

    def __init__(self, token: ReplyToken, go_on: Callable[[Any], None]) -> None:
        self._token = token
        self._go_on = go_on

    def answer(self, response: Any) -> None:
        try:
            self._go_on(response)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self._token.fail(error)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


class GatherToken:
    """A request that several shards answer: the last part releases the whole."""

    __slots__ = ("_merge", "_missing", "_parts", "_token")

    def __init__(self, token: ReplyToken, parts: int, merge: Callable[[list[Any]], Any]) -> None:
        self._token = token
        self._merge = merge
        self._missing = parts
        self._parts: list[Any] = [None] * parts

    def part(self, index: int) -> "GatherPart":
        return GatherPart(self, index)

    def put(self, index: int, response: Any) -> None:
        self._parts[index] = response
        self._missing -= 1
        if self._missing == 0:
            MappingToken(self._token, self._merge).answer(self._parts)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


class GatherPart:
    """One part of a gathered answer."""

    __slots__ = ("_gather", "_index")

    def __init__(self, gather: GatherToken, index: int) -> None:
        self._gather = gather
        self._index = index

    def answer(self, response: Any) -> None:
        self._gather.put(self._index, response)

    def fail(self, error: Exception) -> None:
        self._gather.fail(error)


class _SequentialParts:
    """Parts of an answer, of which each is asked for when the one before is there. It is the token
    of each part. Nothing that it holds leads back to it for long: an answer that nobody needs any
    more would stay until Python looks for cycles.
    """

    __slots__ = (
        "_ask",
        "_asked",
        "_asking",
        "_count",
        "_gone",
        "_merge",
        "_parts",
        "_scheduler",
        "_token",
        "had_ns",
    )
    line = CLIENTS

    def __init__(
        self,
        scheduler: Scheduler,
        token: ReplyToken,
        count: int,
        ask: Callable[[ReplyToken, int], None],
        merge: Callable[[list[Any]], Any],
        gone: Callable[[], bool],
    ) -> None:
        self.had_ns = NEW
        self._scheduler = scheduler
        self._token = token
        self._count = count
        self._ask = ask
        self._merge = merge
        self._gone = gone
        self._parts: list[Any] = []
        self._asked = 0
        self._asking = False

    def answer(self, response: Any) -> None:
        self._parts.append(response)
        if self._asking:
            return
        if len(self._parts) == self._count:
            self.run(never)
        else:
            self._scheduler.enter(self)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)

    def run(self, over: Over) -> bool:
        if self._gone():
            return False
        try:
            return self.go_on(over)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self._token.fail(error)
            return False

    def go_on(self, over: Over) -> bool:
        """Ask for the next part, and for more of them while they are answered at once and the slice
        lasts. True while the next one can be asked for.
        """
        self._asking = True
        while self._asked == len(self._parts) < self._count:
            self._asked += 1
            self._ask(self, self._asked - 1)
            if self._asked < self._count and over():
                break
        self._asking = False
        if len(self._parts) == self._count:
            self._token.answer(self._merge(self._parts))
            return False
        return self._asked == len(self._parts)


def ask_in_sequence(
    scheduler: Scheduler,
    token: ReplyToken,
    count: int,
    ask: Callable[[ReplyToken, int], None],
    merge: Callable[[list[Any]], Any],
    gone: Callable[[], bool] = never,
) -> None:
    """Call `ask` for each of `count` parts of an answer, each time when the part before has been
    answered and in a slice of the request's own, so that others come in between. A request that
    only reads ends where its client has `gone`.
    """
    parts = _SequentialParts(scheduler, token, count, ask, merge, gone)
    if parts.go_on(scheduler.over):
        scheduler.enter(parts)
