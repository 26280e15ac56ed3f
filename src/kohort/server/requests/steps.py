# SPDX-License-Identifier: Apache-2.0
"""A request that is answered in steps, so that others come in between however much it asks for.

A step is short, a millisecond or two at most, and `StepBudget` says where it ends. Whatever the
broker knows may change between two steps. What was looked up before is looked up again then, so
that a topic which was deleted meanwhile is answered as gone.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from kohort.errors import ApiError
from kohort.machines.effects import Call
from kohort.server.node import Node
from kohort.server.scheduler import CLIENTS, NEW, Over

Response = TypeVar("Response")

Steps = Generator[None, None, Response]
"""Yields between two steps and returns the response, or None where it has parked the call. Raises
ApiError to refuse the request.
"""


class ClientReplyToken(Protocol):
    """The token of a client's own request."""

    @property
    def gone(self) -> bool:
        """Whether nobody waits for the answer any more."""

    def answer(self, response: Any) -> None: ...
    def fail(self, error: Exception) -> None: ...


class StepwiseRequest:
    """One such request, as the scheduler runs it."""

    __slots__ = (
        "_call",
        "_ended",
        "_outlives_client",
        "_response",
        "_steps",
        "_token",
        "_yielded",
        "had_ns",
    )
    line = CLIENTS

    def __init__(
        self, call: Call[Any], steps: Steps[Any], *, outlives_client: bool = False
    ) -> None:
        """`outlives_client`: it goes to its end though the client has gone, as what it has sent
        has arrived.
        """
        self.had_ns = NEW
        self._outlives_client = outlives_client
        self._call = call
        self._token: ClientReplyToken = call.token
        self._steps = steps
        self._yielded = False
        self._ended = False
        self._response: Any = None

    def run(self, over: Over) -> bool:
        """Take steps. To encode an answer of many steps is one more."""
        if not self._outlives_client and self._token.gone:
            self._steps.close()
            return False
        try:
            while not self._ended:
                next(self._steps)
                self._yielded = True
                if over():
                    return True
        except StopIteration as end:
            self._ended, self._response = True, end.value
            if self._yielded and over():
                return True
        except ApiError as error:
            self._ended, self._response = True, self._call.request.refused(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self._token.fail(error)
            return False
        if self._response is not None:
            self._token.answer(self._response)
        return False


def has_gone(call: Call[Any]) -> Callable[[], bool]:
    """What tells whether the client of a request has gone: one that only reads need not go on. Its
    token is still the client's own.
    """
    token: ClientReplyToken = call.token
    return lambda: token.gone


def continue_in_steps(
    node: Node, call: Call[Any], steps: Steps[Any], *, outlives_client: bool = False
) -> None:
    """Answer a call that was parked: its steps begin in a slice to come."""
    node.cluster.scheduler.enter(StepwiseRequest(call, steps, outlives_client=outlives_client))


Item = TypeVar("Item")

STEP_ELEMENTS = 128
"""What one step does of a request or an answer, in elements: a millisecond or two."""


LONG_NAME = 256  # characters: nobody names a group so


class StepBudget:
    """Says where a step of a request ends."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = STEP_ELEMENTS

    def is_over(self, elements: int = 1) -> bool:
        """Whether the step ends with this element, or with this many of them: then yield."""
        self._left -= elements
        if self._left > 0:
            return False
        self._left = STEP_ELEMENTS
        return True


def slices(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """The items in groups of this size, for a request that asks machines a part at a time."""
    return [items[at : at + size] for at in range(0, len(items), size)]


def slices_of_names(names: Sequence[str], size: int) -> list[Sequence[str]]:
    """The same, where a name of 32 KB takes as long as a hundred short ones: it is hashed, and told
    again in the answer.
    """
    if sum(map(len, names)) <= LONG_NAME * len(names):
        return slices(names, size)
    found: list[Sequence[str]] = []
    begin = weight = 0
    for at, name in enumerate(names):
        own = 1 + len(name) // LONG_NAME
        if weight + own > size and at > begin:
            found.append(names[begin:at])
            begin, weight = at, 0
        weight += own
    return [*found, names[begin:]]
