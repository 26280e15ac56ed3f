# SPDX-License-Identifier: Apache-2.0
"""An answer with a long array that is encoded while it is made: neither its messages nor the time
to encode them are there at once, and what it needs is about the bytes that it has.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kohort.machines.effects import Call
from kohort.server.metrics.meters import count_errors
from kohort.server.network.connection import EncodedResponse
from kohort.server.node import Node
from kohort.server.requests.steps import STEP_ELEMENTS, StepBudget, Steps, continue_in_steps
from kohort.wire.apis import APIS
from kohort.wire.codec import PiecewiseEncoder, piecewise_encoder


class PiecewiseAnswer:
    """The answer to a call, in the making. `array` is the field at its top that is made bit by bit.
    A short answer is encoded as any other.
    """

    __slots__ = ("_array", "_call", "_count", "_elements", "_meters", "_pieces", "_size")

    def __init__(self, node: Node, call: Call[Any], array: str) -> None:
        self._call = call
        self._array = array
        self._meters = node.cluster.meters
        self._elements: list[Any] = []  # that are not encoded yet
        self._size = 0  # of these
        self._pieces: list[bytes] = []
        self._count = 0  # of the elements in the pieces

    def add(self, element: Any, size: int = 1) -> None:
        """Append to the array something with this number of elements in it. It must not change any
        more.
        """
        self._elements.append(element)
        self._size += size
        if self._size >= STEP_ELEMENTS:
            self._encode()

    def extend(self, elements: Sequence[Any]) -> None:
        """Append several."""
        self._elements += elements
        self._size += len(elements)
        if self._size >= STEP_ELEMENTS:
            self._encode()

    def add_encoded(self, pieces: Sequence[bytes], count: int = 1) -> None:
        """Append an element that is itself too long to be encoded at once, or several of which the
        bytes are there already. They have no errors.
        """
        if self._elements:
            self._encode()
        self._pieces += pieces
        self._count += count

    def whole(self, rest: Any = None) -> Any:
        """What the token of the call is answered with. `rest` is the response without the array,
        where something in it differs from its default.
        """
        if not self._pieces:
            rest = rest or self._response()
            setattr(rest, self._array, self._elements)
            return rest
        if self._elements:
            self._encode()
        rest = rest or self._response()
        self._count_errors(rest)
        before, behind = self._encoder().around(rest, self._count)
        return EncodedResponse((before, *self._pieces, behind))

    def _encode(self) -> None:
        piece = self._response()
        setattr(piece, self._array, self._elements)
        self._count_errors(piece)
        self._pieces.append(self._encoder().elements(piece))
        self._count += len(self._elements)
        self._elements = []
        self._size = 0

    def _response(self) -> Any:
        api = APIS[self._call.request.api_key]
        return api.response()

    def _encoder(self) -> PiecewiseEncoder:
        response: Any = APIS[self._call.request.api_key].response
        return piecewise_encoder(response, self._call.version, self._array)

    def _count_errors(self, message: Any) -> None:
        count_errors(message, self._meters.of(self._call.request.api_key, self._call.version))


def answer_in_pieces(node: Node, call: Call[Any], array: str, elements: Iterator[Any]) -> None:
    """Answer a call that was parked. Each of the elements is made when it is its turn."""
    continue_in_steps(node, call, _made(node, call, array, elements))


def _made(node: Node, call: Call[Any], array: str, elements: Iterator[Any]) -> Steps[Any]:
    answer = PiecewiseAnswer(node, call, array)
    step_budget = StepBudget()
    for element in elements:
        answer.add(element)
        if step_budget.is_over():
            yield
    return answer.whole()
