# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies made from the message definitions themselves."""

from typing import Any

from hypothesis import strategies as st

from kohort.wire.schema import Field, Primitive, fields_of

_NUMBERS = {"b": 8, "h": 16, "i": 32, "q": 64}
TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.just("x" * 200)


def _primitive(kind: Primitive) -> st.SearchStrategy[Any]:
    if kind.name == "bool":
        return st.booleans()
    if kind.format in _NUMBERS:
        edge = 1 << (_NUMBERS[kind.format] - 1)
        return st.integers(-edge, edge - 1)
    if kind.format == "H":
        return st.integers(0, 65535)
    if kind.format == "I":
        return st.integers(0, (1 << 32) - 1)
    if kind.format == "d":
        return st.floats(allow_nan=False)
    if kind.name == "uuid":
        return st.binary(min_size=16, max_size=16)
    return TEXT if kind.name == "string" else st.binary(max_size=140)


def _value(field: Field, version: int) -> st.SearchStrategy[Any]:
    one = _primitive(field.of) if isinstance(field.of, Primitive) else messages(field.of, version)
    value = st.lists(one, max_size=4) if field.array else one
    return st.none() | value if version in field.nullable else value


def messages(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Messages that this version can carry whole: fields it lacks keep their defaults."""
    present = {
        field.name: _value(field, version) for field in fields_of(cls) if version in field.versions
    }
    return st.builds(cls, **present)
