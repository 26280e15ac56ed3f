# SPDX-License-Identifier: Apache-2.0
"""Whether an answer says an error code, anywhere in it."""

from functools import cache
from typing import Any

from kohort.errors import ErrorCode
from kohort.wire.schema import Primitive, fields_of

CREATED = frozenset({ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})
"""A topic is there now, whoever has made it."""


@cache
def _where(kind: Any) -> tuple[bool, tuple[tuple[str, bool], ...]]:
    """Of a kind of message: whether it has a code itself, and which fields lead to more."""
    inner = tuple(
        (field.name, bool(field.array))
        for field in fields_of(kind)
        if not isinstance(field.of, Primitive) and any(_where(field.of))
    )
    return any(field.name == "error_code" for field in fields_of(kind)), inner


def says(message: Any, code: ErrorCode) -> bool:
    """False also where there is no message."""
    if message is None:
        return False
    kind: Any = type(message)
    coded, inner = _where(kind)
    if coded and message.error_code == code:
        return True
    return any(
        says(part, code)
        for name, array in inner
        for part in ((getattr(message, name) or ()) if array else (getattr(message, name),))
    )
