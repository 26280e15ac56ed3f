# SPDX-License-Identifier: Apache-2.0
"""Arrays of structs that are all alike, as in a commit or a fetch of offsets."""

from struct import Struct
from typing import Any

from kohort.wire.codegen.source import Source, is_fixed
from kohort.wire.schema import Primitive, fields_of


class StridedArray:
    """An array of structs that are all alike: fixed fields, then empty strings, no tags.

    All of them have one size then. The bytes that prove it are a fixed distance apart, so that one
    comparison checks them all.
    """

    def __init__(self) -> None:
        self.formats = ""
        self.size = 0
        self.marks: list[tuple[int, int]] = []  # where, and which byte

    def mark(self, byte: int) -> None:
        self.marks.append((self.size, byte))
        self.formats += "x"
        self.size += 1

    def test(self, count_name: str) -> str:
        reach = f"p + {count_name} * {self.size}"
        tests = [f"{reach} <= len(b)"]
        tests += [
            f"b[p + {where}:{reach}:{self.size}] == {bytes([byte])!r} * {count_name}"
            for where, byte in self.marks
        ]
        return " and ".join(tests)

    def build(self, source: Source, cls: type[Any], count_name: str) -> str:
        """The expression that makes all of them, with defaults behind the fixed fields."""
        rows = f"b[p:p + {count_name} * {self.size}]"
        unpack = source.unpacker(self.formats, "iter_unpack")
        return f"list(starmap({source.constant(cls.__name__, cls)}, {unpack}({rows})))"


def strided(source: Source, cls: type[Any]) -> StridedArray | None:
    """The strided form of a struct, where a flexible version has one."""
    plain, tagged = source.split(fields_of(cls))
    if not source.flexible or tagged or not any(is_fixed(field) for field in plain):
        return None
    run = StridedArray()
    constant = False  # from the first text on: a text is empty, and what follows is its default
    for field in fields_of(cls):
        if field not in plain:
            constant = True
        elif is_fixed(field):
            if constant:
                for byte in Struct(">" + field.of.format).pack(field.default):
                    run.mark(byte)
            else:
                run.formats += field.of.format
                run.size += field.of.size
        elif not field.array and isinstance(field.of, Primitive) and field.of.name == "string":
            if field.default != "":
                return None
            run.mark(1)
            constant = True
        else:
            return None
    run.mark(0)
    return run
