# SPDX-License-Identifier: Apache-2.0
"""What of a request is refused before it is handled: more elements than a broker should do for one
client, and texts that are longer than a record can keep.

A request at the limit is looked at here as a whole. Messages of one class are therefore looked at
together, a field at a time, and none of them costs a call of Python.
"""

from collections.abc import Iterable
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from kohort.errors import ApiError, ErrorCode, WireError
from kohort.wire.schema import Primitive, fields_of

LONGEST_STRING = 32767
IN_ONE_PIECE = 5  # a request that nobody can come in between has this part of the elements
DECODED_AT_MOST = 2  # times the elements allowed: a refusal repeats what it refuses
_SHORT = LONGEST_STRING // 4  # characters that are never too many bytes


class _Layout(NamedTuple):
    """The fields of a class that are looked at, each with what it is made of."""

    texts: tuple[str, ...]
    lists_of_texts: tuple[str, ...]
    messages: tuple[tuple[str, Any], ...]
    lists: tuple[tuple[str, Any], ...]  # of anything
    has_lists: bool  # here or further in


@cache
def _layout(cls: Any) -> _Layout:
    fields = fields_of(cls)
    lists = tuple((field.name, field.of) for field in fields if field.array)
    texts = [field for field in fields if _is_text(field.of)]
    messages = tuple(
        (field.name, field.of)
        for field in fields
        if not field.array and not isinstance(field.of, Primitive)
    )
    return _Layout(
        tuple(field.name for field in texts if not field.array),
        tuple(field.name for field in texts if field.array),
        messages,
        lists,
        bool(lists) or any(_layout(of).has_lists for _, of in messages),
    )


def _is_text(of: Any) -> bool:
    return isinstance(of, Primitive) and of.name == "string"


class ElementLimit(NamedTuple):
    """How much a request may name, and the setting that says so."""

    most: int
    setting: str = "request.max.elements"

    def in_one_piece(self) -> "ElementLimit":
        """What is left of it for a request that is handled in one piece."""
        return ElementLimit(max(1, self.most // IN_ONE_PIECE), f"a fifth of {self.setting}")


def check_elements(request: Any, limit: ElementLimit) -> ApiError | None:
    """The reason to refuse a request that names more than a broker should do for one client. Raises
    WireError where the refusal itself would be too large, since it repeats what it refuses.
    """
    count = _elements(type(request), [request])
    if count <= limit.most:
        return None
    why = f"{count} elements, expected at most {limit.most} ({limit.setting})"
    if count > DECODED_AT_MOST * limit.most:
        raise WireError(f"{type(request).__name__} of {why}")
    return ApiError(ErrorCode.INVALID_REQUEST, f"the request has {why}")


def _elements(cls: Any, messages: list[Any]) -> int:
    """The number of elements in the arrays of messages, nested ones included."""
    count = 0
    for name, of in _layout(cls).lists:
        lists = _present(name, messages)
        count += sum(map(len, lists))
        if not isinstance(of, Primitive) and _layout(of).has_lists:
            count += _elements(of, [*chain.from_iterable(lists)])
    return count


def empty_long_texts(request: Any) -> str:
    """The reason to refuse a request with a text that is longer than a length of two bytes can say.
    Such texts are emptied, since the refusal must not repeat them.
    """
    return _empty_long_texts(type(request), [request])


def _empty_long_texts(cls: Any, messages: list[Any]) -> str:
    layout = _layout(cls)
    refusal = ""
    for name in layout.texts:
        texts = map(attrgetter(name), messages)
        doubtful = [
            (message, text)
            for message, text in zip(messages, texts, strict=True)
            if text and len(text) > _SHORT
        ]
        for message, text in doubtful:
            why = too_long(name, text)
            if why:
                setattr(message, name, "")
                refusal = why
    for name in layout.lists_of_texts:
        for texts in _present(name, messages):
            if max(map(len, texts)) > _SHORT:
                whys = [too_long(name, text) for text in texts]
                texts[:] = ["" if why else text for why, text in zip(whys, texts, strict=True)]
                refusal = next(filter(None, whys), refusal)
    for name, of in layout.messages:
        refusal = _empty_long_texts(of, _present(name, messages)) or refusal
    for name, of in layout.lists:
        if not isinstance(of, Primitive):
            within = [*chain.from_iterable(_present(name, messages))]
            refusal = _empty_long_texts(of, within) or refusal
    return refusal


def _present(name: str, messages: Iterable[Any]) -> list[Any]:
    """The values of a field, without those that are null or empty."""
    return [*filter(None, map(attrgetter(name), messages))]


def too_long(name: str, text: str) -> str:
    """The reason to refuse a text of this name, or "" for one that is short enough."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= LONGEST_STRING:
        return ""
    return f"{name} is {size} bytes long, expected at most {LONGEST_STRING}"
