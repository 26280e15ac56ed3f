# SPDX-License-Identifier: Apache-2.0
"""The text of a function under construction, with what decoders and encoders share."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, groupby
from struct import Struct
from typing import Any

from kohort.wire.schema import Field, Primitive


class Source:
    """The text of a function under construction, with the constants it refers to.

    In the emitted text `b` are the bytes, `p` is the position in them, `m` the message, and `w` the
    function that writes a part. `name` makes all other names: what it is, and a number.
    """

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.indent = 1
        self.names = count(1)
        self.constants: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Code that is emitted inside is indented under `head`."""
        self.line(head)
        self.indent += 1
        yield
        self.indent -= 1

    def name(self, prefix: str) -> str:
        return f"{prefix}_{next(self.names)}"

    def constant(self, prefix: str, value: Any) -> str:
        name = self.name(prefix)
        self.constants[name] = value
        return name

    def unpacker(self, formats: str, method: str = "unpack_from") -> str:
        name = f"{method}_{formats.replace('?', 't')}"
        self.constants[name] = getattr(Struct(">" + formats), method)
        return name

    def nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def tagged(self, field: Field) -> bool:
        return self.flexible and self.version in field.tagged

    def compact(self, field: Field) -> bool:
        return self.flexible and not field.classic

    def split(self, fields: tuple[Field, ...]) -> tuple[list[Field], list[Field]]:
        """The fields that this version has: those in wire order, and those among the tags."""
        present = [field for field in fields if self.version in field.versions]
        plain = [field for field in present if not self.tagged(field)]
        return plain, sorted((f for f in present if self.tagged(f)), key=lambda f: f.tag or 0)

    def text(self, head: str) -> str:
        return "\n".join([head, *self.lines, ""])


def is_fixed(field: Field) -> bool:
    return not field.array and isinstance(field.of, Primitive) and bool(field.of.format)


def runs_of(fields: list[Field]) -> Iterator[tuple[bool, list[Field]]]:
    for fixed, run in groupby(fields, is_fixed):
        yield fixed, list(run)


def has_short_length(field: Field) -> bool:
    return not field.array and field.of.name == "string"
