# SPDX-License-Identifier: Apache-2.0
"""What is common to the sources that read a log by themselves: from a feed to a format of Spark,
and to a `Source`.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from kohort.pipeline.schemas import DECODED
from kohort.pipeline.sources.admin_query import run_blocking
from kohort.pipeline.sources.log_position import Note, Plan, Position
from kohort.pipeline.sources.options import Options, range_options, required, stream_options
from kohort.spark.sources import planning
from kohort.spark.sources.feed import Feed
from kohort.spark.sources.reader import Reader, StreamReader, read_or_none, spark_schema


class FeedFormat(DataSource):
    """A format whose rows come from a feed. `place` is the one option that has to be given."""

    place: ClassVar[str]
    example: ClassVar[str]
    least: ClassVar[int]
    """The smallest weight of a task, in the feed's unit."""

    @classmethod
    @abstractmethod
    def feed(cls, place: str, topic: str) -> Feed:
        """The feed of a topic at a place."""

    @classmethod
    @abstractmethod
    def driver_limit(cls) -> int:
        """The weight of a plan up to which the driver reads it by itself, in the feed's unit."""

    def schema(self) -> StructType:
        return spark_schema(self.options)

    def reader(self, schema: StructType) -> Reader:
        return Reader(*self._fed(), schema, self.least)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return StreamReader(*self._fed(), schema, self.least)

    def _fed(self) -> tuple[Feed, Options]:
        options = Options.of(self.options, (self.place,))
        return self.feed(required(self.options, self.place, self.example), options.topic), options


class FeedSource:
    """The part of `Source` that needs nothing but a feed and its format."""

    def __init__(self, form: type[FeedFormat], place: str, topic: str, feed: Feed) -> None:
        self._form = form
        self._options = {form.place: place, "topic": topic, "rows": DECODED.name}
        self._feed = feed

    def plan(
        self,
        since: Mapping[int, Position],
        *,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
    ) -> Plan:
        """What there is to read now, behind `since`."""
        return planning.plan(self._feed, since, from_time, to_time)

    def frame(self, spark: SparkSession, plan: Plan) -> DataFrame:
        """The rows of a plan, decoded in the workers."""
        spark.dataSource.register(self._form)
        options = self._options | range_options(plan.ranges)
        return spark.read.format(self._form.name()).options(**options).load()

    def few_or_none(self, plan: Plan) -> pa.Table | None:
        """The rows of a plan, decoded here, where they are too few to be worth a task."""
        weight = sum(piece.weight for piece in self._feed.weigh(plan.ranges))
        if weight > self._form.driver_limit():
            return None
        form = self._form(self._options | range_options(plan.ranges))
        return run_blocking(lambda: read_or_none(form.reader(form.schema())))

    def late_rows(
        self,
        spark: SparkSession,
        since: Mapping[int, Position],
        known: Callable[[], DataFrame],
        files: Collection[str] = (),
    ) -> DataFrame | None:
        """None: a log grows at its end."""
        del spark, since, known, files
        return None

    def files(self) -> tuple[str, ...]:
        """None: what a partition consists of changes as it is compacted."""
        return ()

    def stream(
        self, spark: SparkSession, plan: Plan, *, max_records: int | None = None
    ) -> DataFrame:
        """Decoded rows from where the plan begins, for ever."""
        spark.dataSource.register(self._form)
        options = self._options | stream_options(plan, max_records)
        return spark.readStream.format(self._form.name()).options(**options).load()

    def positions(self, following: Mapping[int, int]) -> dict[int, Position]:
        """Positions of partitions whose next offsets are known."""
        return planning.positions(self._feed, following)

    def changes(self, plan: Plan) -> tuple[Note, ...]:
        """What happened to the log since it was planned."""
        return planning.changes(self._feed, plan)
