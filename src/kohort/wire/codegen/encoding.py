# SPDX-License-Identifier: Apache-2.0
"""From a class and a version to the source of an encoder."""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

from kohort.wire.codegen.source import Source, has_short_length, is_fixed, runs_of
from kohort.wire.codegen.strided import strided
from kohort.wire.codegen.varints import LENGTHS, compact_length, uvarint
from kohort.wire.schema import Field, Primitive, fields_of


@lru_cache(maxsize=1024)
def array_packer(formats: str, size: int) -> Callable[..., bytes]:
    """What writes so many numbers at once: one call, not one for each."""
    return Struct(f">{size}{formats}").pack


GLOBALS: dict[str, Any] = {
    "LENGTHS": LENGTHS,
    "array_packer": array_packer,
    "compact_length": compact_length,
    "uvarint": uvarint,
}


class EncoderSource(Source):
    """The source of an encoder. The elements of the array that is called `apart`, at the top of the
    message, are encoded elsewhere: what stands behind them goes into a list of its own.
    """

    def __init__(self, version: int, *, flexible: bool, apart: str = "") -> None:
        super().__init__(version, flexible=flexible)
        self.apart = apart

    def struct(self, cls: type[Any], of: str) -> None:
        """Emit the writing of one struct, held by the variable `of`."""
        plain, tagged = self.split(fields_of(cls))
        closed = self.flexible and not tagged
        runs = list(runs_of(plain))
        for index, (fixed, run) in enumerate(runs):
            if fixed:
                formats = "".join(field.of.format for field in run)
                values = [f"{of}.{field.name}" for field in run]
                if (
                    closed and index == len(runs) - 1
                ):  # the empty tag section comes in the same pack
                    formats, values, closed = formats + "B", [*values, "0"], False
                self.line(f"w({self.unpacker(formats, 'pack')}({', '.join(values)}))")
            else:
                for field in run:
                    self.value(field, f"{of}.{field.name}")
        if tagged:
            self.tags(tagged, of)
        elif closed:
            self.line('w(b"\\0")')

    def tags(self, fields: list[Field], of: str) -> None:
        values = [self.name(field.name) for field in fields]
        for field, value in zip(fields, values, strict=True):
            self.line(f"{value} = {of}.{field.name}")
        absent = [
            "" if field.always else self.is_default(field, value)
            for field, value in zip(fields, values, strict=True)
        ]
        if not all(absent):
            self.some_tags(fields, values, absent)
            return
        with self.block(f"if {' and '.join(absent)}:"):
            self.line('w(b"\\0")')  # no tag, as is nearly always so
        with self.block("else:"):
            self.some_tags(fields, values, absent)

    def is_default(self, field: Field, value: str) -> str:
        if field.default is None:
            return f"{value} is None"
        return f"{value} == {self.constant('default', field.default)}"

    def some_tags(self, fields: list[Field], values: list[str], absent: list[str]) -> None:
        held = self.name("tags")
        self.line(f"{held} = []")
        for field, value, is_absent in zip(fields, values, absent, strict=True):
            if not is_absent:
                self.tag(field, value, held)
            else:
                with self.block(f"if not ({is_absent}):"):
                    self.tag(field, value, held)
        self.line(f"w(uvarint(len({held}))); w(b''.join({held}))")

    def tag(self, field: Field, value: str, held: str) -> None:
        """Emit the writing of one tagged field into a list: its size stands before it."""
        outer, part = self.name("outer"), self.name("part")
        self.line(f"{outer} = w; {part} = []; w = {part}.append")
        self.value(field, value, in_tag=True)
        self.line(f"w = {outer}; {part} = b''.join({part})")
        self.line(f"{held}.append(uvarint({field.tag}) + uvarint(len({part})) + {part})")

    def length(self, field: Field, size: str) -> str:
        if self.compact(field):
            return f"LENGTHS[{size}] if {size} < 1024 else compact_length({size})"
        return f"{self.unpacker('h' if has_short_length(field) else 'i', 'pack')}({size})"

    def null(self, field: Field) -> str:
        if self.compact(field):
            return "b'\\0'"
        return repr(b"\xff\xff" if has_short_length(field) else b"\xff\xff\xff\xff")

    def value(self, field: Field, of: str, *, in_tag: bool = False) -> None:
        if self.apart and of == f"m.{self.apart}":
            self.line(f"w({self.length(field, 'count')}); w = behind.append")
            return
        if is_fixed(field):
            self.line(f"w({self.unpacker(field.of.format, 'pack')}({of}))")
            return
        nullable = self.nullable(field)
        struct = not field.array and not isinstance(field.of, Primitive)
        if not nullable and field.nullable.first <= field.nullable.last and not struct:
            # null in newer versions (JoinGroup's ProtocolName): older ones say it with nothing
            of = f"({of} or {'[]' if field.array else repr(field.of.default)})"
        if not nullable:
            self.present(field, of)
            return
        held = self.name(field.name)
        self.line(f"{held} = {of}")
        null = ("b'\\0'" if in_tag else "b'\\xff'") if struct else self.null(field)
        self.line(f"if {held} is None: w({null})")
        with self.block("else:"):
            if struct:
                self.line("w(b'\\1')")
            self.present(field, held)

    def present(self, field: Field, of: str) -> None:
        """Emit the writing of a value that is not null."""
        if field.array or isinstance(field.of, Primitive):
            self.filled(field, of)
        else:
            self.struct(field.of, of)

    def filled(self, field: Field, of: str) -> None:
        size = self.name("size")
        if not field.array:
            held = self.name(field.name)
            self.line(f"{held} = {of}{'.encode()' if field.of.name == 'string' else ''}")
            self.line(f"{size} = len({held})")
            self.line(f"w(({self.length(field, size)}) + {held})")
            return
        held = self.name(field.name)
        self.line(f"{held} = {of}; {size} = len({held})")
        self.line(f"w({self.length(field, size)})")
        if isinstance(field.of, Primitive) and field.of.name == "uuid":
            self.line(f"w(b''.join({held}))")
            return
        if isinstance(field.of, Primitive) and field.of.format:
            self.line(f"w(array_packer({field.of.format!r}, {size})(*{held}))")
            return
        self.elements(field, held)

    def elements(self, field: Field, held: str) -> None:
        """Emit the writing of the elements of an array, without their number before them."""
        item = self.name("item")
        with self.block(f"for {item} in {held}:"):
            if isinstance(field.of, Primitive):
                self.filled(field._replace(array=False), item)
            else:
                self.packed(field.of, item)
                self.struct(field.of, item)

    def packed(self, cls: type[Any], of: str) -> None:
        """Emit a short cut for a struct whose strings are all empty: then it is one pack."""
        run = strided(self, cls)
        plain, _ = self.split(fields_of(cls))
        texts = [field for field in plain if not is_fixed(field)]
        if run is None or not texts:
            return
        formats = "".join(field.of.format if is_fixed(field) else "B" for field in plain)
        values = [f"{of}.{field.name}" if is_fixed(field) else "1" for field in plain]
        empty = " and ".join(f"{of}.{field.name} == ''" for field in texts)
        pack = self.unpacker(formats + "B", "pack")
        with self.block(f"if {empty}:"):
            self.line(f"w({pack}({', '.join(values)}, 0)); continue")


def encoder_source(cls: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """The source of `encode(m)`, and the constants that it refers to."""
    source = EncoderSource(version, flexible=version in cls.flexible)
    source.line("out = []; w = out.append")
    source.struct(cls, "m")
    source.line("return b''.join(out)")
    return source.text("def encode(m):"), source.constants


def elements_source(
    cls: type[Any], version: int, array: str, *, flexible: bool
) -> tuple[str, dict[str, Any]]:
    """The source of `encode(m)`: the elements of one array of the struct, and nothing else."""
    source = EncoderSource(version, flexible=flexible)
    source.line("out = []; w = out.append")
    (field,) = (field for field in fields_of(cls) if field.name == array)
    source.elements(field, f"m.{array}")
    source.line("return b''.join(out)")
    return source.text("def encode(m):"), source.constants


def around_source(
    cls: type[Any], version: int, array: str, *, flexible: bool
) -> tuple[str, dict[str, Any]]:
    """The source of `encode(m, count)`: what stands before the elements of one array, of which
    there are `count`, and what stands behind them.
    """
    source = EncoderSource(version, flexible=flexible, apart=array)
    source.line("out = []; behind = []; w = out.append")
    source.struct(cls, "m")
    source.line("return b''.join(out), b''.join(behind)")
    return source.text("def encode(m, count):"), source.constants
