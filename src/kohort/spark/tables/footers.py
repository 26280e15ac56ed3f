"""What the footers of Parquet files say about their rows, without reading the rows."""

from collections.abc import Iterable

import pyarrow.compute as pc

from kohort.spark.schemas import KINDS
from kohort.spark.stores import parquet
from kohort.spark.stores.layout import ROWS
from kohort.spark.stores.places import Folder
from kohort.spark.tables.manifest import Increment, Part

_COMMITS = (KINDS[0], KINDS[1])


def has_transactions(directory: Folder, increments: Iterable[Increment]) -> bool:
    """Whether some of the commits in these increments may be in transactions."""
    folders = (
        directory / ROWS / increment.name / f"kind={kind}"
        for increment in increments
        for kind in _COMMITS
    )
    files = (file for folder in folders for file in folder.glob("*.parquet"))
    return any(_largest(file, "producer_id") not in {None, -1} for file in files)


def largest(directory: Folder, parts: Iterable[Part], column: str) -> int | None:
    """The largest value of a column in these parts; None where it has none."""
    files = (file for part in parts for file in (directory / part.path).glob("*.parquet"))
    found = (_largest(file, column) for file in files)
    return max((value for value in found if value is not None), default=None)


def _largest(file: Folder, column: str) -> int | None:
    told = parquet.footer(file)
    index = next(
        (number for number in range(told.num_columns) if told.schema.column(number).path == column),
        None,
    )
    values = []
    for group in range(told.num_row_groups):
        statistics = None if index is None else told.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            values.append(
                pc.max(parquet.opened(file).read_row_group(group, [column])[column]).as_py()
            )
        else:
            values.append(statistics.max)
    return max((value for value in values if value is not None), default=None)
