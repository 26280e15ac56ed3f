"""A request that is answered in steps, so that others come in between however much it asks for.

A step is short, a millisecond or two at most. What may change between two steps must not make the
answer wrong: whatever is gone when its step comes is answered as gone.
"""

from collections.abc import Callable, Generator
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
