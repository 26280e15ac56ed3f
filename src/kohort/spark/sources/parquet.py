# SPDX-License-Identifier: Apache-2.0
"""Raw rows that somebody has kept as Parquet: our own `records`, or what the Kafka connector gave.

Files have no crc of the batches that the rows came in, so a tail that was cut is not found.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import RAW
from kohort.pipeline.schemas.rows import BATCH
from kohort.pipeline.sources.log_position import (
    Identity,
    Mark,
    Note,
    Plan,
    Position,
    Settings,
    SourceError,
)
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.pipeline.sources.samples import NOTHING, Since
from kohort.spark.engine.frames import conform
from kohort.spark.sources import planning
from kohort.spark.sources.decoding import decode_frame
from kohort.spark.sources.feed import Bounds
from kohort.spark.sources.source import Ends, no_samples

_NEEDED = ("partition", "offset", "timestamp", "key", "value")
_UNKNOWN: dict[str, Any] = {
    "producer_id": -1,
    "producer_epoch": -1,
    "transactional": False,
    "control": False,
    **dict.fromkeys(column.name for column in BATCH),
    "headers": None,
    "error": None,
}
"""What a row has where a column is missing: the Kafka connector does not tell these."""


def raw_rows(frame: DataFrame) -> DataFrame:
    """A frame with at least key, value and where they stood, as raw rows of the group log."""
    if "topic" in frame.columns:
        frame = frame.where(F.col("topic") == GROUP_LOG)
    for name, value in _UNKNOWN.items():
        if name not in frame.columns:
            frame = frame.withColumn(name, F.lit(value))
    return conform(RAW, frame)


class ParquetSource:
    """Keeps the contract of `Source` for a directory of Parquet files."""

    def __init__(self, path: str) -> None:
        self._path = path.removeprefix("file:")
        self._survey = _Survey(self._path)
        self._listed: dict[str, str] = {}

    def identity(self) -> Identity:
        """Unknown: rows do not tell whose they are."""
        return Identity()

    def plan(
        self,
        since: Mapping[int, Position],
        *,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
    ) -> Plan:
        """What there is to read now, behind `since`. Files that went away are no cut of the log."""
        self._listed = self._survey.listed()  # before their rows are looked at: a file may come
        self._survey.seen = {index: position.next for index, position in since.items()}
        return planning.plan(self._survey, since, from_time, to_time)

    def frame(self, spark: SparkSession, plan: Plan) -> DataFrame:
        """The rows of a plan."""
        within = F.lit(False)
        for index, (start, end) in plan.ranges.items():
            within |= _from(index, start) & (F.col("offset") < end)
        return decode_frame(raw_rows(spark.read.parquet(self._path).where(within)))

    def few_or_none(self, plan: Plan) -> None:
        """None: Spark knows best what is in Parquet files."""
        del plan

    def late_rows(
        self,
        spark: SparkSession,
        since: Mapping[int, Position],
        known: Callable[[], DataFrame],
        files: Collection[str] = (),
    ) -> DataFrame | None:
        """Files come in any order. Only those that were not there yet are looked at, and only what
        is not known is decoded.
        """
        following = {index: position.next for index, position in since.items()}
        fresh = [path for path, looks in self._listed.items() if looks not in {*files}]
        if not fresh or not self._survey.any_before(following, fresh):
            return None
        before = F.lit(False)
        for index, offset in following.items():
            before |= (F.col("partition") == index) & (F.col("offset") < offset)
        reader = spark.read
        if Path(self._path).is_dir():  # whose folders may be columns
            reader = reader.option("basePath", self._path)
        rows = raw_rows(reader.parquet(*fresh).where(before))
        return decode_frame(rows.join(known(), ["partition", "offset"], "left_anti"))

    def files(self) -> tuple[str, ...]:
        """By name, size and time: one that was rewritten is another."""
        return tuple(sorted(self._listed.values()))

    def stream(
        self, spark: SparkSession, plan: Plan, *, max_records: int | None = None
    ) -> DataFrame:
        """Files as they arrive. A file is read whole, so `max_records` has no say."""
        del max_records
        schema = spark.read.parquet(self._path).schema
        starts = {index: position.next for index, position in plan.positions.items()}
        starts |= {index: start for index, (start, _) in plan.ranges.items()}
        fresh = ~F.col("partition").isin(*starts) if starts else F.lit(True)
        for index, start in starts.items():
            fresh |= _from(index, start)
        return decode_frame(
            raw_rows(spark.readStream.schema(schema).parquet(self._path).where(fresh))
        )

    def positions(self, following: Mapping[int, int]) -> dict[int, Position]:
        """Positions without fingerprints: rows have none."""
        return {index: Position(offset) for index, offset in following.items()}

    def changes(self, plan: Plan) -> tuple[Note, ...]:
        """Nothing: files are written once."""
        del plan
        return ()

    def ends(self, since: Since = NOTHING) -> Ends:
        """None known: rows of the group log do not tell where topics end."""
        del since
        return Ends(datetime.now(UTC), no_samples)

    def settings(self) -> Settings:
        """Unknown."""
        return Settings()


def _from(index: int, start: int) -> Column:
    return (F.col("partition") == index) & (F.col("offset") >= start)


class _Survey:
    """What planning needs of a directory of rows: read by the driver, two columns of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.seen: Mapping[int, int] = {}
        self._data()

    def bounds(self) -> dict[int, Bounds]:
        found: dict[int, Bounds] = {}
        for partition, offsets in self._offsets(None):
            first, last = pc.min(offsets).as_py(), pc.max(offsets).as_py()
            known = found.get(partition, Bounds(first, last + 1))
            found[partition] = Bounds(min(known.start, first), max(known.end, last + 1))
        return {
            index: Bounds(edges.start, max(edges.end, self.seen.get(index, 0)))
            for index, edges in sorted(found.items())
        }

    def listed(self) -> dict[str, str]:
        """The files that are there, and a fingerprint of each."""
        found = {}
        for path in self._data().files:
            with suppress(FileNotFoundError):
                stat = Path(path).stat()
                name = os.path.relpath(path, self._path)
                facts = f"{name} {stat.st_size} {stat.st_mtime_ns}".encode()
                found[path] = blake2b(facts, digest_size=8).hexdigest()
        return found

    def any_before(self, following: Mapping[int, int], files: Sequence[str]) -> bool:
        """Whether there are rows before these offsets in some of the files."""
        return any(
            pc.any(pc.less(offsets, following.get(partition, 0))).as_py()
            for partition, offsets in self._offsets(None, files)
        )

    def marks(self, following: Mapping[int, int]) -> dict[int, Mark | None]:
        return dict.fromkeys(following)

    def offset_after_mark(self, marks: Mapping[int, Mark]) -> dict[int, int | None]:
        return {index: base + 1 for index, (base, _) in marks.items()}

    def at_time(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        ends = self.bounds()
        found: dict[int, int] = {}
        for partition, offsets in self._offsets(timestamp_ms):
            first = pc.min(offsets).as_py()
            found[partition] = min(found.get(partition, first), first)
        return {index: found.get(index, ends[index].end) for index in partitions}

    def observed_changes(self) -> tuple[Note, ...]:
        return ()

    def _offsets(
        self, since_ms: int | None, files: Sequence[str] | None = None
    ) -> Iterator[tuple[int, pa.Array]]:
        """Offsets by partition, a batch at a time; only of rows that are not older, and of some
        files.
        """
        data = self._data(files)
        wanted = None
        if since_ms is not None:
            time = pa.scalar(since_ms * 1000, pa.timestamp("us", "UTC"))
            wanted = ds.field("timestamp").cast(pa.timestamp("us", "UTC")) >= time
        if "topic" in data.schema.names:
            of_log = ds.field("topic") == GROUP_LOG
            wanted = of_log if wanted is None else wanted & of_log
        for batch in data.to_batches(columns=["partition", "offset"], filter=wanted):
            for partition in pc.unique(batch.column(0)).to_pylist():
                yield partition, batch.column(1).filter(pc.equal(batch.column(0), partition))

    def _data(self, files: Sequence[str] | None = None) -> ds.Dataset:
        there = self._path if files is None else [*files]
        try:
            data = ds.dataset(there, format="parquet", partitioning="hive")
        except FileNotFoundError:
            raise SourceError(
                f"there is no directory {self._path}: name one that holds Parquet files of raw rows"
            ) from None
        except PermissionError as error:
            raise SourceError(f"{error.filename or self._path} may not be read") from None
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{self._path} cannot be read as Parquet: {error}") from error
        names = data.schema.names
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise SourceError(
                f"the files in {self._path} have no column {missing[0]}: they have "
                f"{', '.join(names) or 'none'}, raw rows have {', '.join(RAW.names)}"
            )
        if not pa.types.is_timestamp(data.schema.field("timestamp").type):
            raise SourceError(
                f"column timestamp in {self._path} is {data.schema.field('timestamp').type}, "
                "expected a timestamp"
            )
        return data
