# SPDX-License-Identifier: Apache-2.0
"""Counts what was written of an increment: each row once, where it was planned, of a known kind.

Spark counts what Spark has written, and pyarrow what pyarrow has. Both counts are checked by the
same rules.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.errors import Broken
from kohort.pipeline.schemas import ALL_KINDS, QUARANTINE

Ranges = Mapping[int, tuple[int, int]]


class RowCounts(NamedTuple):
    """What there is, by table of silver and by partition of the log."""

    counts: dict[str, int]
    covered: dict[int, tuple[int, int]]
    oldest_ms: int | None
    newest_ms: int | None


class _Sum(NamedTuple):
    """Rows of one kind in one partition. `code` is the number of the kind, 0 for an unknown one;
    `doubled` is an offset that is there twice.
    """

    partition: int
    code: int
    rows: int
    doubled: int | None
    first: int
    last: int
    oldest: int | None
    newest: int | None


def of_frame(frame: DataFrame, ranges: Ranges | None) -> RowCounts:
    """Count by Spark. `ranges` is what was planned, None for whatever is there. Bytes between two
    batches that are no batch have no offset of their own: their row stands where the next record
    does.

    Raises Broken for rows that should not be.
    """
    kinds = F.array(*(F.lit(kind) for kind in ALL_KINDS))
    code = F.coalesce(F.array_position(kinds, F.col("kind")), F.lit(0))
    time = F.unix_millis("timestamp")
    damaged = (F.col("kind") == QUARANTINE).alias("damaged")
    by_place = frame.groupBy("partition", "offset", damaged).agg(
        F.count("*").alias("times"),
        F.max(code).alias("code"),
        F.min(time).alias("oldest"),
        F.max(time).alias("newest"),
    )
    sums = by_place.groupBy("partition", "code").agg(
        F.sum("times").alias("rows"),
        F.max(F.when((F.col("times") > 1) & ~F.col("damaged"), F.col("offset"))).alias("doubled"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.min("oldest").alias("oldest"),
        F.max("newest").alias("newest"),
    )
    return _checked((_Sum(*row) for row in sums.select(*_Sum._fields).collect()), ranges)


def of_table(table: pa.Table, ranges: Ranges | None) -> RowCounts:
    """The same without Spark; the columns are `kind`, `partition`, `offset` and `timestamp`."""
    kinds = table.column("kind")
    number = pc.index_in(kinds, value_set=pa.array(ALL_KINDS))
    ms = pc.floor_temporal(table.column("timestamp"), unit="millisecond").cast(pa.int64())
    places = pa.table(
        {
            "partition": table.column("partition"),
            "offset": table.column("offset"),
            "damaged": pc.fill_null(pc.equal(kinds, QUARANTINE), False),
            "code": pc.add(pc.fill_null(number, -1), 1),
            "time": pc.divide(ms, 1000),
        }
    )
    by_place = places.group_by(["partition", "offset", "damaged"], use_threads=False).aggregate(
        [([], "count_all"), ("code", "max"), ("time", "min"), ("time", "max")]
    )
    is_doubled = pc.and_not(pc.greater(by_place["count_all"], 1), by_place["damaged"])
    offsets = pc.if_else(is_doubled, by_place["offset"], pa.scalar(None, pa.int64()))
    sums = (
        by_place.append_column("doubled", offsets)
        .group_by(["partition", "code_max"], use_threads=False)
        .aggregate(
            [
                ("count_all", "sum"),
                ("doubled", "max"),
                ("offset", "min"),
                ("offset", "max"),
                ("time_min", "min"),
                ("time_max", "max"),
            ]
        )
    )
    columns = (column.to_pylist() for column in sums.columns)
    return _checked((_Sum(*row) for row in zip(*columns, strict=True)), ranges)


def _checked(sums: Iterable[_Sum], ranges: Ranges | None) -> RowCounts:
    counts: dict[str, int] = {}
    covered: dict[int, tuple[int, int]] = {}
    found = sorted(sums, key=lambda of_kind: (of_kind.partition, of_kind.code))
    for of_kind in found:
        _check(of_kind, ranges)
        kind = ALL_KINDS[of_kind.code - 1]
        counts[kind] = counts.get(kind, 0) + of_kind.rows
        first, end = covered.get(of_kind.partition, (of_kind.first, of_kind.last + 1))
        covered[of_kind.partition] = min(first, of_kind.first), max(end, of_kind.last + 1)
    oldest = [of_kind.oldest for of_kind in found if of_kind.oldest is not None]
    newest = [of_kind.newest for of_kind in found if of_kind.newest is not None]
    return RowCounts(counts, covered, min(oldest, default=None), max(newest, default=None))


def _check(of_kind: _Sum, ranges: Ranges | None) -> None:
    where = f"partition {of_kind.partition}"
    if of_kind.doubled is not None:
        raise Broken(f"{where} has offset {of_kind.doubled} more than once in one read")
    if not of_kind.code:
        raise Broken(f"{where} has {of_kind.rows} rows of a kind that no table has, expected none")
    if ranges is not None:
        start, end = ranges.get(of_kind.partition, (0, 0))
        if not start <= of_kind.first <= of_kind.last < end:
            raise Broken(
                f"{where} was read at offsets {of_kind.first} to {of_kind.last}, "
                f"expected {start} to {end - 1}"
            )
