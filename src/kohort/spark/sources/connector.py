# SPDX-License-Identifier: Apache-2.0
"""A live cluster through Spark's own Kafka connector, for those who have its jars and want to see
both agree. Our own `cluster:` is quicker, needs no jar, and tells more.

By default the connector leaves topics out that a broker calls internal, without a word; its older
way of asking for offsets does not. It is told which partitions to read: a subscription would join
a group, and so write into the log that is read. It does not tell producers, and shows no markers
of transactions.
"""

import json
from collections.abc import Callable, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.schemas import DECODED
from kohort.pipeline.sources.cluster_place import cluster_place
from kohort.pipeline.sources.log_position import Plan, SourceError
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.spark.engine.frames import empty, struct_of
from kohort.spark.sources.decoding import decode_frame
from kohort.spark.sources.parquet import raw_rows
from kohort.spark.sources.topic import TopicSource

_OLDER_WAY = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
_WAIT_MS = "10"  # a partition that has come to its end waits that long, one after the other


class ConnectorSource(TopicSource):
    """Plans as `cluster:` does; the rows come through the connector."""

    def frame(self, spark: SparkSession, plan: Plan) -> DataFrame:
        """The rows of a plan."""
        if not plan.ranges:
            return empty(spark, struct_of(DECODED))
        starts = {index: start for index, (start, _) in plan.ranges.items()}
        ends = {index: end for index, (_, end) in plan.ranges.items()}
        spark.conf.set(_OLDER_WAY, "true")
        options = self._kafka(starts) | {"endingOffsets": _offsets(ends)}
        return _loaded(lambda: spark.read.format("kafka").options(**options).load())

    def few_or_none(self, plan: Plan) -> None:
        """None: whoever asks for the connector shall have it."""
        del plan

    def stream(
        self, spark: SparkSession, plan: Plan, *, max_records: int | None = None
    ) -> DataFrame:
        """Rows from where the plan begins; of the partitions that there are now."""
        starts = {index: position.next for index, position in plan.positions.items()}
        starts |= {index: start for index, (start, _) in plan.ranges.items()}
        spark.conf.set(_OLDER_WAY, "true")
        options = self._kafka(starts)
        if max_records is not None:
            options["maxOffsetsPerTrigger"] = str(max_records)
        return _loaded(lambda: spark.readStream.format("kafka").options(**options).load())

    def _kafka(self, starts: Mapping[int, int]) -> dict[str, str]:
        place = cluster_place(self._bootstrap)
        return {
            **{f"kafka.{name}": value for name, value in place.settings.items()},
            "kafka.bootstrap.servers": place.servers,
            "kafka.fetch.max.wait.ms": _WAIT_MS,
            "assign": json.dumps({GROUP_LOG: sorted(starts)}),
            "startingOffsets": _offsets(starts),
            "includeHeaders": "true",
            "failOnDataLoss": "false",  # what was removed is told by `changes`
        }


def _offsets(by_partition: Mapping[int, int]) -> str:
    return json.dumps({GROUP_LOG: by_partition})


def _loaded(load: Callable[[], DataFrame]) -> DataFrame:
    try:
        rows = load()
        rows.schema  # noqa: B018  (Spark Connect looks for the format only now)
    except AnalysisException as error:
        if "kafka" not in str(error):
            raise
        raise SourceError(
            "this Spark has no Kafka connector: add it with "
            "-X spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, or read "
            "cluster:HOST:PORT, which needs none"
        ) from error
    return decode_frame(raw_rows(rows))
