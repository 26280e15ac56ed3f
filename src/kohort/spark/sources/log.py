"""Log directories: a broker's own, or a copy. `spark.read.format("kohort.log").load(directory)`."""

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from kohort.spark.schemas import DECODED
from kohort.spark.sources import planning
from kohort.spark.sources.folder_feed import FolderFeed
from kohort.spark.sources.options import (
    GROUP_LOG,
    Options,
    range_options,
    required,
    stream_options,
)
from kohort.spark.sources.reader import Reader, StreamReader, spark_schema
from kohort.spark.sources.source import Identity, Note, Plan, Position

LEAST_BYTES = 4 << 20
_OWN = ("path",)


class KohortLog(DataSource):
    """Rows of the segment files in a directory that every worker can read.

    Options: `path`, and what `options` describes.
    """

    @classmethod
    def name(cls) -> str:
        return "kohort.log"

    def schema(self) -> StructType:
        return spark_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        return Reader(*self._feed(), schema, LEAST_BYTES)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return StreamReader(*self._feed(), schema, LEAST_BYTES)

    def _feed(self) -> tuple[FolderFeed, Options]:
        options = Options.of(self.options, _OWN)
        return FolderFeed(required(self.options, "path", "/var/kafka/data"), options.topic), options


class LogSource:
    """Keeps the contract of `Source` for a directory of logs."""

    def __init__(self, path: str, topic: str = GROUP_LOG) -> None:
        self._path = path
        self._topic = topic
        self._feed = FolderFeed(path, topic)

    def identity(self) -> Identity:
        return self._feed.found.identity()

    def plan(
        self,
        since: Mapping[int, Position],
        *,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
    ) -> Plan:
        return planning.plan(self._feed, since, from_time, to_time)

    def frame(self, spark: SparkSession, plan: Plan) -> DataFrame:
        spark.dataSource.register(KohortLog)
        return (
            spark.read.format(KohortLog.name())
            .options(path=self._path, topic=self._topic, rows=DECODED.name)
            .options(**range_options(plan.ranges))
            .load()
        )

    def stream(
        self, spark: SparkSession, plan: Plan, *, max_records: int | None = None
    ) -> DataFrame:
        spark.dataSource.register(KohortLog)
        return (
            spark.readStream.format(KohortLog.name())
            .options(path=self._path, topic=self._topic, rows=DECODED.name)
            .options(**stream_options(plan, max_records))
            .load()
        )

    def positions(self, following: Mapping[int, int]) -> dict[int, Position]:
        return planning.positions(self._feed, following)

    def changes(self, plan: Plan) -> tuple[Note, ...]:
        return planning.changes(self._feed, plan)

    def end_offsets(self, spark: SparkSession) -> DataFrame | None:
        from kohort.spark.sources import end_offsets  # noqa: PLC0415  (imports this package)

        return end_offsets.from_folders(spark, self._path)

    def retention_ms(self) -> int | None:
        return None  # no file of a log directory tells
