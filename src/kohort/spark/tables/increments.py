# SPDX-License-Identifier: Apache-2.0
"""Increments: decoded rows that are written together, counted, merged, and dropped when too old.

Nothing here flips the manifest. Each function writes files that no manifest names yet, and returns
the manifest or the increments that name them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.format.manifest import Increment, Manifest
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import DECODED
from kohort.pipeline.stores.layout import ROWS
from kohort.spark.engine import small_runs
from kohort.spark.tables import driver_write, row_counts, spark_reader, spark_writer
from kohort.spark.tables.retention import kept
from kohort.spark.tables.row_counts import Ranges, RowCounts

ROWS_PER_FILE = 1_000_000
MOST_INCREMENTS = 10
"""How many increments of about one size are merged into one."""


class WriteResult(NamedTuple):
    """An increment, and how far it reads in each partition."""

    increment: Increment
    following: dict[int, int]
    """Partition -> the offset after its last row."""


def write(
    spark: SparkSession,
    writer: Writer,
    rows: DataFrame | pa.Table,
    ranges: Ranges | None,
    *,
    compacted: bool = False,
) -> WriteResult | None:
    """Write decoded rows and count what was written; None when there was no row. A table is written
    without Spark.

    `ranges` is what was planned; without it, what the rows themselves cover. Raises Broken when a
    row is there twice, lies outside of its range, or belongs to no table.
    """
    name = writer.new_name(f"{spark_reader.INCREMENT}=")
    _save(spark, writer, rows, name, ranges)
    counted = _count(None if isinstance(rows, pa.Table) else spark, writer, name, ranges)
    if not counted.counts:
        return None
    increment = Increment(
        name=name,
        ranges=dict(ranges) if ranges is not None else counted.covered,
        counts=counted.counts,
        oldest_ms=counted.oldest_ms,
        newest_ms=counted.newest_ms,
        compacted=compacted,
        planned=ranges is not None,
    )
    following = {index: end for index, (_, end) in counted.covered.items()}
    return WriteResult(increment, following)


def _save(
    spark: SparkSession,
    writer: Writer,
    rows: DataFrame | pa.Table,
    name: str,
    ranges: Ranges | None,
) -> None:
    if isinstance(rows, pa.Table):
        driver_write.write(writer.directory / ROWS / name, rows)
        return
    frame = rows.select(*DECODED.names)
    expected = None if ranges is None else sum(end - start for start, end in ranges.values())
    few = expected is not None and expected <= small_runs.ONE_FILE_ROWS
    tasks = spark.conf.get("spark.sql.shuffle.partitions", "1") or "1"
    least = int(tasks) if tasks.isdigit() else 1  # where Spark chooses by itself it says "auto"
    files = 1 if few else max(least, (expected or 0) // ROWS_PER_FILE)
    # A file for each kind and task: so few tasks, and within one in the order of the log.
    ordered = frame.coalesce(files).sortWithinPartitions("kind", "partition", "offset")
    spark_writer.write(ordered, writer.directory / ROWS / name, by="kind")


def _count(
    spark: SparkSession | None,
    writer: Writer,
    name: str,
    ranges: Ranges | None,
) -> RowCounts:
    """What the files of an increment hold. Without a session (None), Arrow counts them."""
    if spark is None:
        columns = ("kind", "partition", "offset", "timestamp")
        return row_counts.of_table(
            driver_write.read(writer.directory / ROWS / name, *columns), ranges
        )
    probe = Increment(name=name, ranges={}, counts={})
    rows = spark_reader.rows(spark, writer.directory, writer.manifest, [probe])
    return row_counts.of_frame(rows, ranges)


def cut(increments: Iterable[Increment], cuts: Mapping[int, int]) -> tuple[Increment, ...]:
    """The increments without the rows from where their logs were cut."""
    return tuple(_cut(increment, cuts) for increment in increments)


def _cut(increment: Increment, cuts: Mapping[int, int]) -> Increment:
    fresh_cuts = {
        partition: min(offset, increment.cuts.get(partition, offset))
        for partition, offset in cuts.items()
        if increment.ranges.get(partition, (0, 0))[1] > offset
    }
    if not fresh_cuts:
        return increment
    return msgspec.structs.replace(increment, cuts=increment.cuts | fresh_cuts)


def to_merge(increments: Iterable[Increment], keep_ms: int | None = None) -> list[Increment]:
    """Increments that should become one: ten or more of about one size, and all smaller ones.

    So a row is rewritten once for each digit of the number of rows. With a retention no merged
    increment spans more than a quarter of it, or it would keep what is too old.
    """
    by_size: dict[int, list[Increment]] = {}
    for increment in increments:
        if not increment.compacted:
            by_size.setdefault(len(str(max(increment.rows, 1000))), []).append(increment)
    sizes = [size for size, alike in by_size.items() if len(alike) >= MOST_INCREMENTS]
    if not sizes:
        return []
    chosen = [
        increment for size, alike in by_size.items() if size <= max(sizes) for increment in alike
    ]
    if keep_ms is None:
        return chosen
    largest = max(_near(chosen, keep_ms // 4), key=len)
    return largest if len(largest) > 1 else []


def _near(increments: Iterable[Increment], reach_ms: int) -> Iterator[list[Increment]]:
    """Groups of increments whose rows are not further apart than that; no increment is in two."""
    near: list[Increment] = []
    for increment in sorted(increments, key=lambda increment: increment.oldest_ms or 0):
        newest = max(each.newest_ms or 0 for each in (*near, increment))
        if near and newest - (near[0].oldest_ms or 0) > reach_ms:
            yield near
            near = []
        near.append(increment)
    yield near


def merge(
    spark: SparkSession, writer: Writer, manifest: Manifest, merging: Iterable[Increment]
) -> Manifest:
    """The manifest with one increment in place of these; rows that were cut go for good."""
    replaced = list(merging)
    compacted = all(increment.compacted for increment in replaced)
    return _replace(spark, writer, manifest, replaced, None, compacted=compacted)


def too_old(manifest: Manifest, before_ms: int) -> list[Increment]:
    """Increments whose rows are all older than that, and do not stand behind a younger row of
    another increment: clocks go wrong, and the rows that stay are the beginning of a log. Empty
    where nothing has become too old since the last time.
    """
    # Damage alone has no time: it is as old as what it stands before.
    old = [increment for increment in manifest.increments if (increment.newest_ms or 0) < before_ms]
    for _ in manifest.increments:
        begins: dict[int, int] = {}
        for increment in manifest.increments:
            for partition, (start, _) in increment.ranges.items() if increment not in old else ():
                begins[partition] = min(start, begins.get(partition, start))
        old = [increment for increment in old if not _is_behind(increment, begins)]
    return old if any(not increment.compacted for increment in old) else []


def _is_behind(increment: Increment, begins: Mapping[int, int]) -> bool:
    return any(
        index in begins and min(end, increment.cuts.get(index, end)) > begins[index]
        for index, (_, end) in increment.ranges.items()
    )


def compact(
    spark: SparkSession, writer: Writer, manifest: Manifest, dropping: Iterable[Increment]
) -> Manifest:
    """The manifest with only those rows of these increments that later rows build on."""
    chosen = list(dropping)
    names = {increment.name for increment in chosen}
    rest = [increment for increment in manifest.increments if increment.name not in names]
    old, young = (
        spark_reader.rows(spark, writer.directory, manifest, increments)
        for increments in (chosen, rest)
    )
    return _replace(spark, writer, manifest, chosen, kept(old, young), compacted=True)


def _replace(
    spark: SparkSession,
    writer: Writer,
    manifest: Manifest,
    replaced: list[Increment],
    frame: DataFrame | None,
    *,
    compacted: bool,
) -> Manifest:
    rows = (
        spark_reader.rows(spark, writer.directory, manifest, replaced) if frame is None else frame
    )
    written = write(spark, writer, rows, None, compacted=compacted)
    gone = {increment.name for increment in replaced}
    left = tuple(increment for increment in manifest.increments if increment.name not in gone)
    if written is None:
        return manifest.with_(increments=left)
    ranges: dict[int, tuple[int, int]] = {}
    for increment in replaced:
        for partition, (start, stop) in increment.ranges.items():
            end = min(stop, increment.cuts.get(partition, stop))
            if start < end:  # else all of it was cut
                first, last = ranges.get(partition, (start, end))
                ranges[partition] = min(first, start), max(last, end)
    merged = msgspec.structs.replace(
        written.increment,
        ranges=ranges,
        planned=all(increment.planned for increment in replaced),
    )
    return manifest.with_(increments=(merged, *left))
