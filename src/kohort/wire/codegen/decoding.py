# SPDX-License-Identifier: Apache-2.0
"""From a class and a version to the source of a decoder."""

from collections.abc import Callable
from functools import cache
from itertools import starmap
from struct import Struct
from typing import Any

import msgspec

from kohort.errors import WireError
from kohort.wire.codegen.source import Source, has_short_length, is_fixed, runs_of
from kohort.wire.codegen.strided import strided
from kohort.wire.codegen.varints import read_uvarint
from kohort.wire.schema import Field, Primitive, fields_of

FEW = 33  # an array of fewer numbers than this is read by a `Struct` made for its length


def refuse(what: str, length: int) -> WireError:
    return WireError(f"{what} has length {length}, expected 0 or more")


def refuse_many(what: str, left: int, most: int) -> WireError:
    return WireError(f"with {what} it has {most - left} elements, expected at most {most}")


def skip_tag(data: bytes, position: int) -> tuple[int, int, int]:
    """The number of the next tagged field, where its value starts and where it ends."""
    tag, position = read_uvarint(data, position)
    size, position = read_uvarint(data, position)
    return tag, position, position + size


GLOBALS: dict[str, Any] = {
    "WireError": WireError,
    "read_uvarint": read_uvarint,
    "refuse": refuse,
    "refuse_many": refuse_many,
    "skip_tag": skip_tag,
    "starmap": starmap,
}


class DecoderSource(Source):
    def __init__(self, version: int, *, flexible: bool, lenient: bool, most: int | None) -> None:
        super().__init__(version, flexible=flexible)
        self.most = most
        self.decode = '.decode("utf-8", "replace")' if lenient else ".decode()"

    def struct(self, cls: type[Any]) -> str:
        """Emit the reading of one struct; returns the expression that builds it."""
        plain, tagged = self.split(fields_of(cls))
        values: dict[str, str] = {}
        for fixed, run in runs_of(plain):
            if fixed:
                names = [self.name(field.name) for field in run]
                formats = "".join(field.of.format for field in run)
                self.line(f"{', '.join(names)}, = {self.unpacker(formats)}(b, p)")
                self.line(f"p += {Struct('>' + formats).size}")
                values.update(zip((field.name for field in run), names, strict=True))
            else:
                for field in run:
                    values[field.name] = self.value(field)
        if self.flexible:
            self.tags(tagged, values)
        arguments = [values.get(field.name) or self.default(field) for field in fields_of(cls)]
        return f"{self.constant(cls.__name__, cls)}({', '.join(arguments)})"

    def default(self, field: Field) -> str:
        if isinstance(field.default, list):
            return "[]"
        if isinstance(field.default, msgspec.Struct):
            return f"{self.constant(type(field.default).__name__, type(field.default))}()"
        return repr(field.default)

    def tags(self, fields: list[Field], values: dict[str, str]) -> None:
        for field in fields:
            values[field.name] = target = self.name(field.name)
            self.line(f"{target} = {self.default(field)}")
        count, tag, end = self.name("count"), self.name("tag"), self.name("end")
        self.line(f"{count} = b[p]; p += 1")
        with self.block(f"if {count}:"):
            self.line(f"if {count} > 127: {count}, p = read_uvarint(b, p - 1)")
            self.take("tags", count)
            with self.block(f"for _ in range({count}):"):
                self.line(f"{tag}, p, {end} = skip_tag(b, p)")
                for field in fields:
                    with self.block(f"if {tag} == {field.tag}:"):
                        self.line(f"{values[field.name]} = {self.value(field, in_tag=True)}")
                self.line(f"p = {end}")

    def take(self, what: str, count: str) -> None:
        """Emit the check that this many elements more are not too many: whatever is read one by one
        costs a hundred times as much as its byte.
        """
        if self.most is not None:
            refusal = f"refuse_many({what!r}, left, {self.most})"
            self.line(f"left -= {count}")
            self.line(f"if left < 0: raise {refusal}")

    def length(self, field: Field) -> str:
        """Emit the reading of a length or a count. A null reads as -1."""
        size = self.name("size")
        if self.compact(field):
            self.line(f"{size} = b[p] - 1; p += 1")
            self.line(f"if {size} > 126: {size}, p = read_uvarint(b, p - 1); {size} -= 1")
            return size
        formats = "h" if field.of is not None and has_short_length(field) else "i"
        self.line(f"{size}, = {self.unpacker(formats)}(b, p); p += {2 if formats == 'h' else 4}")
        return size

    def value(self, field: Field, *, in_tag: bool = False) -> str:
        if is_fixed(field):
            target = self.name(field.name)
            self.line(f"{target}, = {self.unpacker(field.of.format)}(b, p); p += {field.of.size}")
            return target
        if not field.array and not isinstance(field.of, Primitive):
            return self.nested(field, in_tag=in_tag)
        size = self.length(field)
        target = self.name(field.name)
        if not self.nullable(field):
            self.line(f"if {size} < 0: raise refuse({field.name!r}, {size})")
            self.filled(field, size, target)
            return target
        with self.block(f"if {size} < 0:"):
            if not self.compact(field):
                self.line(f"if {size} != -1: raise refuse({field.name!r}, {size})")
            self.line(f"{target} = None")
        with self.block("else:"):
            self.filled(field, size, target)
        return target

    def nested(self, field: Field, *, in_tag: bool) -> str:
        if not self.nullable(field):
            return self.struct(field.of)
        target = self.name(field.name)
        null = "b[p] == 0" if in_tag else "b[p] > 127"
        self.line(f"if {null}: {target} = None; p += 1")
        with self.block("else:"):
            self.line("p += 1")
            self.line(f"{target} = {self.struct(field.of)}")
        return target

    def filled(self, field: Field, size: str, target: str) -> None:
        """Emit the reading of a string, bytes or array whose length is known not to be negative."""
        if not field.array:
            decode = self.decode if field.of.name == "string" else ""
            self.line(f"{target} = b[p:p + {size}]{decode}; p += {size}")
            return
        self.take(field.name, size)
        if isinstance(field.of, Primitive):
            self.primitives(field, size, target)
        else:
            self.structs(field.of, size, target)

    def primitives(self, field: Field, size: str, target: str) -> None:
        kind: Primitive = field.of
        if kind.name == "uuid":
            self.line(f"if {size} * 16 > len(b) - p: raise refuse({field.name!r}, {size})")
            self.line(f"{target} = [b[i:i + 16] for i in range(p, p + {size} * 16, 16)]")
            self.line(f"p += {size} * 16")
        elif kind.format:
            few = self.constant("few", _unpackers(kind.format))
            many = self.unpacker(kind.format, "iter_unpack")
            self.line(f"if {size} < {FEW}: {target} = [*{few}[{size}](b, p)]")
            self.line(
                f"elif {size} * {kind.size} > len(b) - p: raise refuse({field.name!r}, {size})"
            )
            self.line(f"else: {target} = [x for x, in {many}(b[p:p + {size} * {kind.size}])]")
            self.line(f"p += {size} * {kind.size}")
        else:
            self.line(f"{target} = []")
            with self.block(f"for _ in range({size}):"):
                element = field._replace(array=False, nullable=type(field.nullable)(1, 0))
                self.line(f"{target}.append({self.value(element)})")

    def structs(self, cls: type[Any], size: str, target: str) -> None:
        run = strided(self, cls)
        if run is None:
            self.one_by_one(cls, size, target)
            return
        with self.block(f"if {size} > 1 and {run.test(size)}:"):
            self.line(f"{target} = {run.build(self, cls, size)}")
            self.line(f"p += {size} * {run.size}")
        with self.block("else:"):
            self.one_by_one(cls, size, target)

    def one_by_one(self, cls: type[Any], size: str, target: str) -> None:
        append = self.name("append")
        self.line(f"{target} = []; {append} = {target}.append")
        with self.block(f"for _ in range({size}):"):
            self.line(f"{append}({self.struct(cls)})")


@cache
def _unpackers(formats: str) -> list[Callable[[bytes, int], tuple[Any, ...]]]:
    """How to read 0, 1, 2, ... numbers at once: one call for a short array."""
    return [Struct(f">{size}{formats}").unpack_from for size in range(FEW)]


def decoder_source(
    cls: type[Any], version: int, *, lenient: bool = False, most: int | None = None
) -> tuple[str, dict[str, Any]]:
    """The source of `decode(b, p)`, and the constants that it refers to. With `most`, all arrays
    and tags of a message together may have that many elements.
    """
    flexible = version in cls.flexible
    source = DecoderSource(version, flexible=flexible, lenient=lenient, most=most)
    if most is not None:
        source.line(f"left = {most}")
    source.line(f"return {source.struct(cls)}, p")
    return source.text("def decode(b, p):"), source.constants
