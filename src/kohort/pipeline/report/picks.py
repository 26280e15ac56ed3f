# SPDX-License-Identifier: Apache-2.0
"""What of a table is on the page: the groups that matter most, and few enough points to draw.

A cluster may have ten thousand groups and a history of months, and a page has to open on a phone.
What is left out is said beside the chart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kohort import figures
from kohort.pipeline.format import arrow_reader

Rows: TypeAlias = pa.Table | ds.Dataset | arrow_reader.Rows
Read = Callable[[str], Rows]
"""A table of the pipeline by its name, as it is now."""

Groups = tuple[str, ...] | None
"""Only these groups, in this order; None for those that matter most."""


def select(rows: Rows, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
    """Some columns of some rows. Of a dataset, only those are read."""
    if isinstance(rows, pa.Table):
        return (rows if where is None else rows.filter(where)).select(list(columns))
    return rows.to_table(columns=list(columns), filter=where)


def among(groups: Groups) -> pc.Expression | None:
    """The filter that leaves the wanted groups; None where all are wanted."""
    return None if groups is None else pc.field("group_id").isin(list(groups))


def top(scores: Mapping[str, tuple[float, ...]], groups: Groups, most: int) -> list[str]:
    """The groups with the highest scores, first one first; of wanted ones those that are there."""
    if groups is not None:
        return [group for group in groups if group in scores][:most]
    return sorted(scores, key=lambda group: (*(-part for part in scores[group]), group))[:most]


def downsample(points: Sequence[Any], most: int, height: Callable[[Any], float]) -> list[Any]:
    """At most `most` points of a series in order: the highest of each range, and the last."""
    if len(points) <= most:
        return list(points)
    width = -(-(len(points) - 1) // (most - 1))
    kept = [
        max(points[start : min(start + width, len(points) - 1)], key=height)
        for start in range(0, len(points) - 1, width)
    ]
    return [*kept, points[-1]]


def by_group(table: pa.Table, order: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of some groups, each group's sorted by the first column in `order`, and so on."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.sort_by([(name, "ascending") for name in order]).to_pylist():
        found.setdefault(row["group_id"], []).append(row)
    return found


def left_out(shown: int, there: int, of: str) -> str:
    """How much is not shown, as the end of a sentence; nothing where all is."""
    return "" if shown >= there else f" Shown: {shown} of {there} groups, those with {of}."


def milliseconds(at: datetime) -> int:
    """A time as charts take it."""
    return round(at.timestamp() * 1000)


def when(at: datetime | None) -> str:
    """A time as people read it."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def duration_text(seconds: float | None) -> str:
    """A duration in its two largest units; nothing for None."""
    return "" if seconds is None else figures.duration(seconds)


def counted(number: float | None) -> str:
    """A number with spaces between thousands."""
    return "" if number is None else f"{number:,.0f}".replace(",", "\u202f")


def several(number: int, thing: str) -> str:
    """`1 group`, `2 groups`."""
    return f"{counted(number)} {thing}" + ("" if number == 1 else "s")


def latest(values: Iterable[datetime | None]) -> datetime | None:
    """The latest of some times; None without any."""
    return max((value for value in values if value is not None), default=None)
