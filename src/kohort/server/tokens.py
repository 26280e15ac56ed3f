"""Where an answer goes. A token is answered once, or fails once; its holder need not know more.

An error while an answer is made (a merge, an encoding) ends the connection that asked, and no
other.
"""

from collections.abc import Callable
from typing import Any, Protocol


class Token(Protocol):
    """A request that waits for its answer."""

    def answer(self, response: Any) -> None: ...
    def fail(self, error: Exception) -> None:
        """There will be no answer. This should not happen, and ends the connection."""


class Mapped:
    """A token that changes the answer on its way: its shape, or a part that is put back."""

    __slots__ = ("_change", "_token")

    def __init__(self, token: Token, change: Callable[[Any], Any]) -> None:
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


class Then:
    """A token that goes on with a request once the answer of another part of the broker is there.
    What goes on answers the request by itself.
    """

    __slots__ = ("_go_on", "_token")

    def __init__(self, token: Token, go_on: Callable[[Any], None]) -> None:
        self._token = token
        self._go_on = go_on

    def answer(self, response: Any) -> None:
        try:
            self._go_on(response)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self._token.fail(error)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


class Gather:
    """A request that several shards answer: the last part releases the whole."""

    __slots__ = ("_merge", "_missing", "_parts", "_token")

    def __init__(self, token: Token, parts: int, merge: Callable[[list[Any]], Any]) -> None:
        self._token = token
        self._merge = merge
        self._missing = parts
        self._parts: list[Any] = [None] * parts

    def part(self, index: int) -> "Part":
        return Part(self, index)

    def put(self, index: int, response: Any) -> None:
        self._parts[index] = response
        self._missing -= 1
        if self._missing == 0:
            Mapped(self._token, self._merge).answer(self._parts)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


class Part:
    """One part of a gathered answer."""

    __slots__ = ("_gather", "_index")

    def __init__(self, gather: Gather, index: int) -> None:
        self._gather = gather
        self._index = index

    def answer(self, response: Any) -> None:
        self._gather.put(self._index, response)

    def fail(self, error: Exception) -> None:
        self._gather.fail(error)


class _Next:
    """Takes one part of an answer, and has the next one asked for."""

    __slots__ = ("_rest", "_token")

    def __init__(self, token: Token, rest: Callable[[Any], None]) -> None:
        self._token = token
        self._rest = rest

    def answer(self, response: Any) -> None:
        try:
            self._rest(response)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self._token.fail(error)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


def one_after_the_other(
    token: Token,
    count: int,
    ask: Callable[[Token, int], None],
    merge: Callable[[list[Any]], Any],
) -> None:
    """Call `ask` for each of `count` parts of an answer, each time when the part before has been
    answered, so that other requests come in between.
    """
    parts: list[Any] = []
    asked = 0
    asking = False

    def go_on() -> None:
        # A part may be answered at once. A loop, since very many of those would nest too deep.
        nonlocal asked, asking
        asking = True
        while asked == len(parts) < count:
            asked += 1
            ask(_Next(token, take), asked - 1)
        asking = False
        if len(parts) == count:
            token.answer(merge(parts))

    def take(response: Any) -> None:
        parts.append(response)
        if not asking:
            go_on()

    go_on()
