# SPDX-License-Identifier: Apache-2.0
"""A feed as Spark reads it: the rows in one of three shapes, in one go or as a stream."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kohort.pipeline.columns.decode import OFFSET_COMMITS, decode, offset_commits
from kohort.pipeline.columns.record_positions import Rows, raw, sliced
from kohort.pipeline.schemas import DECODED, RAW
from kohort.pipeline.sources.log_position import SourceError
from kohort.pipeline.sources.options import EARLIEST, LATEST, Options
from kohort.spark.engine import small_runs
from kohort.spark.engine.worker import settle
from kohort.spark.sources.feed import Bounds, Feed, tasks
from kohort.spark.sources.planning import gap

ROWS_AT_ONCE = 10_000
"""The number of rows with which decoding is quickest, and a good size for the way to the JVM."""
_LOG = logging.getLogger("kohort.spark")


class Shape(NamedTuple):
    """A shape of rows, and how raw rows get it."""

    schema: pa.Schema
    of: Callable[[Rows, Sequence[str]], pa.RecordBatch]


SHAPES = {
    "raw": Shape(RAW.arrow, raw),
    "decoded": Shape(DECODED.arrow, decode),
    "offset_commits": Shape(OFFSET_COMMITS, offset_commits),
}


class Columns:
    """The columns that are wanted of a shape: all of them, or those of the user's schema."""

    def __init__(self, rows: str, schema: StructType) -> None:
        self._rows = rows
        whole = from_arrow_schema(SHAPES[rows].schema)
        types = {field.name: field.dataType for field in whole}
        for field in schema:
            if types.get(field.name) != field.dataType:
                had = types[field.name].simpleString() if field.name in types else "no such column"
                raise SourceError(
                    f"column {field.name} {field.dataType.simpleString()} is asked for, rows="
                    f"{rows} has {had}: ask for some of {', '.join(types)}"
                )
        self._names = schema.names
        self.schema = pa.schema([SHAPES[rows].schema.field(name) for name in schema.names])

    def batches(self, raw: Iterator[Rows]) -> Iterator[pa.RecordBatch]:
        """Raw rows in the shape, some thousands at a time."""
        settle()
        of = SHAPES[self._rows].of
        for rows in raw:
            for piece in sliced(rows, ROWS_AT_ONCE):
                shaped = of(piece, self._names)
                if shaped.num_rows:
                    yield shaped


class Reader(DataSourceReader):
    """A batch read of what the options say."""

    def __init__(self, feed: Feed, options: Options, schema: StructType, least: int) -> None:
        self._feed = feed
        self._options = options
        self._columns = Columns(options.rows, schema)
        self._least = least

    def partitions(self) -> Sequence[InputPartition]:
        ranges = self._options.ranges
        if ranges is None:
            ranges = _ranges(self._feed, self._options)
        return tasks(self._feed.weigh(ranges), self._options.tasks, self._least)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        spans = partition.value or ()  # None: Spark's one task of a read without tasks
        return self._columns.batches(self._feed.read(spans))

    @property
    def columns(self) -> pa.Schema:
        """What `read` gives."""
        return self._columns.schema


def read_or_none(reader: Reader) -> pa.Table | None:
    """All rows, read in this process as a worker of Spark would; None where there are too many."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for task in reader.partitions():
        for batch in reader.read(task):
            batches.append(batch)
            size += batch.nbytes
            if (
                size > small_runs.DRIVER_READ_BYTES
            ):  # a small file may hold a great deal, compressed
                return None
    return pa.Table.from_batches(batches, reader.columns)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batch after micro-batch. An offset of the stream is, for each partition, the next
    offset and the fingerprint of the batch before it.
    """

    def __init__(self, feed: Feed, options: Options, schema: StructType, least: int) -> None:
        self._feed = feed
        self._options = options
        self._columns = Columns(options.rows, schema)
        self._least = least
        self._target: dict[int, Bounds] | None = None
        self._checked: dict[int, int] = {}  # partition -> generation that its mark was checked in

    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802
        bounds = self._feed.bounds()
        return self._as_offsets(_starts(self._feed, self._options, _wanted(bounds, self._options)))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self._options.max_records
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._feed.bounds()

    def latestOffset(  # noqa: N802
        self, start: dict[str, dict[str, int]], limit: ReadLimit
    ) -> dict[str, dict[str, int]]:
        """As far as the limit lets it go. Raises SourceError for a log that was cut."""
        now = _wanted(self._feed.bounds(), self._options)
        self._check(start, now)
        begins = {}
        for index, edges in now.items():
            begins[index] = start[str(index)]["next"] if str(index) in start else edges.start
            if begins[index] < edges.start:
                _LOG.warning("%s", gap(index, begins[index], edges.start).text)
                begins[index] = edges.start
        ends = {
            index: max(begins[index], min(edges.end, self._target_of(index, edges)))
            for index, edges in now.items()
        }
        most = getattr(limit, "max_rows", None)
        if most is not None:
            ends = share(begins, ends, most)
        moved = {
            index: end
            for index, end in ends.items()
            if str(index) not in start or end > start[str(index)]["next"]
        }
        return {**start, **self._as_offsets(moved)}

    def partitions(
        self, start: dict[str, dict[str, int]], end: dict[str, dict[str, int]]
    ) -> Sequence[InputPartition]:
        ranges = {}
        for index, stop in end.items():
            begin = start[index]["next"] if index in start else 0
            if begin < stop["next"]:
                ranges[int(index)] = (begin, stop["next"])
        return tasks(self._feed.weigh(ranges), self._options.tasks, self._least)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._columns.batches(self._feed.read(partition.value or ()))

    def commit(self, end: dict[str, dict[str, int]]) -> None:
        """Nothing is kept anywhere but in the checkpoint."""

    def _target_of(self, index: int, edges: Bounds) -> int:
        if self._target is None:
            return edges.end
        return self._target[index].end if index in self._target else 0

    def _as_offsets(self, following: Mapping[int, int]) -> dict[str, dict[str, int]]:
        offsets = {}
        marks = self._feed.marks(following) if following else {}
        for index, offset in following.items():
            mark = marks.get(index)
            offsets[str(index)] = {"next": offset}
            if mark is not None:
                offsets[str(index)] |= {"base": mark[0], "crc": mark[1]}
        return offsets

    def _check(self, start: Mapping[str, Mapping[str, int]], now: Mapping[int, Bounds]) -> None:
        suspects = {}
        for index, edges in now.items():
            at = start.get(str(index), {})
            seen = self._checked.get(index) == edges.generation
            self._checked[index] = edges.generation
            if "crc" in at and (not seen or edges.end < at["next"]):
                suspects[index] = (at["base"], at["crc"])
        following = self._feed.offset_after_mark(suspects) if suspects else {}
        for index, edges in now.items():
            at = start.get(str(index), {})
            gone = following.get(index, 0) is None
            if gone or edges.end < at.get("next", 0):
                raise SourceError(
                    f"the log of partition {index} was cut after it was read to {at['next']}, and "
                    "its offsets are used again: run kohort pipeline again, which reads them anew; "
                    "a stream of your own needs a new checkpoint"
                )


def share(begins: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Ends with at most that many offsets altogether, each partition its share of them."""
    left = {index: ends[index] - begins[index] for index in ends}
    total = sum(left.values())
    if total <= most:
        return dict(ends)
    shares = {index: most * count // total for index, count in left.items()}
    rest = most - sum(shares.values())
    by_remainder = sorted(left, key=lambda index: most * left[index] % total, reverse=True)
    for index in by_remainder[:rest]:
        shares[index] += 1
    return {index: begins[index] + shares[index] for index in ends}


def _wanted(bounds: Mapping[int, Bounds], options: Options) -> dict[int, Bounds]:
    asked = options.partitions
    if asked is not None and not asked <= bounds.keys():
        missing = ", ".join(map(str, sorted(asked - bounds.keys())))
        raise SourceError(f"option partitions names {missing}, the log has {_listed(bounds)}")
    return {index: edges for index, edges in bounds.items() if asked is None or index in asked}


def _listed(bounds: Mapping[int, Bounds]) -> str:
    return ", ".join(map(str, sorted(bounds)))


def _starts(feed: Feed, options: Options, bounds: Mapping[int, Bounds]) -> dict[int, int]:
    if options.starting_ms is not None:
        return feed.at_time(bounds, options.starting_ms)
    if options.starting == LATEST:
        return {index: edges.end for index, edges in bounds.items()}
    named = options.starting if isinstance(options.starting, Mapping) else {}
    return {index: named.get(index, edges.start) for index, edges in bounds.items()}


def _ranges(feed: Feed, options: Options) -> dict[int, tuple[int, int]]:
    bounds = _wanted(feed.bounds(), options)
    starts = _starts(feed, options, bounds)
    named = options.ending if isinstance(options.ending, Mapping) else {}
    if options.ending == EARLIEST:
        raise SourceError("option endingOffsets is earliest, expected latest or offsets")
    ends = feed.at_time(bounds, options.ending_ms) if options.ending_ms is not None else {}
    ranges = {}
    for index, edges in sorted(bounds.items()):
        end = min(edges.end, named.get(index, edges.end), ends.get(index, edges.end))
        if starts[index] < end:
            ranges[index] = (starts[index], end)
    return ranges


def spark_schema(options: Mapping[str, Any]) -> StructType:
    """The columns of a format's rows, by its option `rows`."""
    rows = next((value for key, value in options.items() if key.lower() == "rows"), "raw")
    if rows not in SHAPES:
        raise SourceError(f"option rows is {rows!r}, expected one of {', '.join(SHAPES)}")
    return from_arrow_schema(SHAPES[rows].schema)
