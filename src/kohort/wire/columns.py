# SPDX-License-Identifier: Apache-2.0
"""The elements of an array of a message, kept by field.

An answer may have a thousand elements that are three numbers each. As columns they are three
sequences, and the native codec writes the elements straight from these. To everybody else, the
codec in Python among them, columns are the elements: each is made when it is asked for.
"""

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any

import msgspec


class Columns(msgspec.Struct, gc=False, eq=False):
    """Elements of the class `of`. `values` are those of its first fields, one sequence for each
    field, all of one length; the other fields have their defaults.
    """

    of: Any
    values: tuple[Sequence[Any], ...]

    def __len__(self) -> int:
        return len(self.values[0])

    def __iter__(self) -> Iterator[Any]:
        return starmap(self.of, zip(*self.values, strict=True))

    def __getitem__(self, index: Any) -> Any:
        return [*self][index]

    def __add__(self, others: Any) -> list[Any]:
        return [*self, *others]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | Columns) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
