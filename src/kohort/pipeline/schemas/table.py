# SPDX-License-Identifier: Apache-2.0
"""What a table is: its columns with their types and meanings. The pages of documentation are
generated from this, so a column is described where it is declared.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

Layer = Literal["rows", "bronze", "silver", "gold", "past"]

TIME = pa.timestamp("us", "UTC")
TEXTS = pa.list_(pa.string())


@dataclass(frozen=True)
class Column:
    """A column; `text` tells its meaning and unit, and when it is null."""

    name: str
    type: pa.DataType
    text: str


@dataclass(frozen=True)
class Table:
    """A table: what it holds, how it is computed, and what it cannot know."""

    name: str
    layer: Layer
    text: str
    columns: tuple[Column, ...]
    computed: str = ""
    unknown: str = ""

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as Arrow has them: what sources and decoders give."""
        return pa.schema([(column.name, column.type) for column in self.columns])
