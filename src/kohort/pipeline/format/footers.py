# SPDX-License-Identifier: Apache-2.0
"""What the footers of Parquet files say about their rows, without reading the rows."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import pyarrow.compute as pc

from kohort.pipeline.format.manifest import Increment, Part
from kohort.pipeline.schemas import KINDS
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import ROWS
from kohort.pipeline.stores.places import Folder

_COMMITS = (KINDS[0], KINDS[1])


def has_transactions(directory: Folder, increments: Iterable[Increment]) -> bool:
    """Whether some of the commits in these increments may be in transactions."""
    folders = (
        directory / ROWS / increment.name / f"kind={kind}"
        for increment in increments
        for kind in _COMMITS
    )
    files = (file for folder in folders for file in folder.glob("*.parquet"))
    return any(_extreme(file, "producer_id", "max") not in {None, -1} for file in files)


def largest(directory: Folder, parts: Iterable[Part], column: str) -> Any:
    """The largest value of a column in these parts; None where it has none."""
    return max(_extremes(directory, parts, column, "max"), default=None)


def smallest(directory: Folder, parts: Iterable[Part], column: str) -> Any:
    """The smallest one; None where it has none."""
    return min(_extremes(directory, parts, column, "min"), default=None)


def _extremes(
    directory: Folder, parts: Iterable[Part], column: str, which: Literal["min", "max"]
) -> Iterator[Any]:
    for part in parts:
        for file in (directory / part.path).glob("*.parquet"):
            found = _extreme(file, column, which)
            if found is not None:
                yield found


def _extreme(file: Folder, column: str, which: Literal["min", "max"]) -> Any:
    footer = parquet.footer(file)
    index = next(
        (
            number
            for number in range(footer.num_columns)
            if footer.schema.column(number).path == column
        ),
        None,
    )
    values = []
    for group in range(footer.num_row_groups):
        statistics = None if index is None else footer.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            rows = parquet.opened(file).read_row_group(group, [column])[column]
            values.append(pc.min_max(rows).as_py()[which])
        else:
            values.append(getattr(statistics, which))
    known = [value for value in values if value is not None]
    return (min if which == "min" else max)(known, default=None)
