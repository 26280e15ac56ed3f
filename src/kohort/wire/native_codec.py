# SPDX-License-Identifier: Apache-2.0
"""The codec in C: its functions have the interface of `python_codec`, to which it hands over.

A message class becomes a table of its fields, a `Layout`. What the codec in C does not take, it
hands over to the function of the codec in Python: so refusals are the same, and a value of an
unusual type is encoded as ever. That function is made when it is needed, which is nearly never.
"""

from functools import cache
from sys import maxsize
from typing import Any

from kohort.native import _codec
from kohort.wire import python_codec
from kohort.wire.codegen import AroundEncoder, Decoder, Encoder
from kohort.wire.columns import Columns
from kohort.wire.schema import Field, Primitive, fields_of

KINDS = {
    **{name: name for name in "?bhiqd"},  # a number: the code of its format
    "16s": "u",
    "string": "s",
    "bytes": "y",
    "records": "y",
}
STRUCT = "o"
NO_TAG = -1
NO_ARRAY = -1

_codec.columns_class(Columns)


@cache
def layout(cls: Any, version: int, *, flexible: bool) -> _codec.Layout:
    rows = tuple(_row(field, version, flexible=flexible) for field in fields_of(cls))
    return _codec.Layout(cls, flexible, rows)


def _row(field: Field, version: int, *, flexible: bool) -> Any:
    """A field, as layout.c reads it."""
    is_struct = not isinstance(field.of, Primitive)
    present = version in field.versions
    nullable = version in field.nullable
    return (
        field.name,
        STRUCT if is_struct else KINDS[field.of.format or field.of.name],
        field.array,
        present,
        nullable,
        not nullable and field.nullable.first <= field.nullable.last,
        flexible and not field.classic,
        field.tag if flexible and version in field.tagged else NO_TAG,
        field.always,
        field.default,
        layout(field.of, version, flexible=flexible) if is_struct and present else None,
    )


@cache
def encoder(cls: Any, version: int) -> Encoder:
    def hand_over(message: Any) -> bytes:
        return python_codec.encoder(cls, version)(message)

    table = layout(cls, version, flexible=version in cls.flexible)
    return _codec.Encoder(table, NO_ARRAY, hand_over).encode


@cache
def elements_encoder(cls: Any, version: int, array: str, *, flexible: bool) -> Encoder:
    """What encodes the elements of one array, without their number."""

    def hand_over(message: Any) -> bytes:
        return python_codec.elements_encoder(cls, version, array, flexible=flexible)(message)

    table = layout(cls, version, flexible=flexible)
    return _codec.Encoder(table, _index(cls, array), hand_over).elements


@cache
def around_encoder(cls: Any, version: int, array: str, *, flexible: bool) -> AroundEncoder:
    def hand_over(message: Any, count: int) -> tuple[bytes, bytes]:
        return python_codec.around_encoder(cls, version, array, flexible=flexible)(message, count)

    table = layout(cls, version, flexible=flexible)
    return _codec.Encoder(table, _index(cls, array), hand_over).around


def _index(cls: Any, array: str) -> int:
    return [field.name for field in fields_of(cls)].index(array)


@cache
def decoder(cls: Any, version: int, most: int | None, *, lenient: bool) -> Decoder:
    """A lenient one reads text that is not UTF-8 with replacement characters."""

    def hand_over(data: bytes, start: int) -> tuple[Any, int]:
        return python_codec.decoder(cls, version, most, lenient=lenient)(data, start)

    table = layout(cls, version, flexible=version in cls.flexible)
    bound = maxsize if most is None else most
    return _codec.Decoder(table, bound, lenient, hand_over).decode
