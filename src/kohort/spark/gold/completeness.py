# SPDX-License-Identifier: Apache-2.0
"""From when on the log tells everything: what the history tables say about their own holes.

A cleaner leaves one record of each key below the point up to which it has cleaned, and every record
above. The point itself is not written down. But it lies at or below the first record that has an
older one of its key beside it, since the cleaner would have removed that one. So a partition with
holes in its offsets is complete from there, or from behind its last hole, whichever is later.
Damage is a hole too.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import RECORDS_TABLE
from kohort.pipeline.schemas.table import TIME
from kohort.spark.gold.history import is_known
from kohort.spark.gold.measure import Frames

FAR_ENOUGH = 100_000
"""How many offsets behind the last hole are searched for a repeated key: a log in use has one
within seconds. If there is none, nothing counts as complete, which is on the safe side.
"""


COMPLETENESS = "completeness"
"""The name under which the frames have the result of `complete_from`, once it is known."""


class CompletenessWatermark(NamedTuple):
    """How far the records of a partition of the log reach, and from where on none is missing."""

    end: int
    """The offset behind the last."""
    rows: int
    complete_offset: int | None
    """None: it is complete from nowhere on."""
    complete_us: int | None
    """In microseconds, as `complete_from`."""


def complete_from(frames: Frames) -> DataFrame:
    """partition, complete_offset (null: from nowhere on) and complete_from, a row for each
    partition of the log. Where nothing is missing these are those of the first record (that has a
    time), whatever later clocks say. A record that is not older than `complete_from` is not before
    `complete_offset` either.
    """
    if COMPLETENESS in frames:
        return frames[COMPLETENESS]
    return as_frame(frames[RECORDS_TABLE.name].sparkSession, completeness_watermarks(frames))


def as_frame(spark: SparkSession, known: Mapping[int, CompletenessWatermark]) -> DataFrame:
    """The frame that `complete_from` gives."""
    rows = {
        "partition": pa.array([*known], pa.int32()),
        "complete_offset": pa.array(
            [reach.complete_offset for reach in known.values()], pa.int64()
        ),
        "complete_from": pa.array([reach.complete_us for reach in known.values()], TIME),
    }
    columns = "partition int, complete_offset bigint, complete_from timestamp"
    return spark.createDataFrame(pa.table(rows), columns)


def completeness_watermarks(frames: Frames) -> dict[int, CompletenessWatermark]:
    """The same for each partition of the log. Runs Spark."""
    is_record = ~F.col("control") & F.col("error").isNull()
    key = F.when(is_record, F.xxhash64("key")).alias("key_hash")
    damage = F.col("error").isNotNull() & F.col("key").isNull()  # who knows how many records
    records = frames[RECORDS_TABLE.name].select(
        "partition", "offset", "timestamp", key, damage.alias("is_damage")
    )
    timed = F.when(F.col("timestamp").isNotNull(), F.col("offset"))
    extents = (
        records.groupBy("partition")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("rows"),
            F.min_by("timestamp", timed).alias("begin"),
            F.max("timestamp").alias("end"),
            F.max("is_damage").alias("damaged"),
        )
        .toArrow()
    )
    micros = pa.int64()
    begins, found = extents["begin"].cast(micros).to_pylist(), {}
    holes = []
    for index, extent in enumerate(extents.to_pylist()):
        is_whole = (
            extent["first"] == 0 and extent["last"] + 1 == extent["rows"] and not extent["damaged"]
        )
        complete = (0, begins[index]) if is_whole else (None, None)
        found[extent["partition"]] = CompletenessWatermark(
            extent["last"] + 1, extent["rows"], *complete
        )
        if not is_whole:
            holes.append(index)
    if holes:
        # Of a table with an empty chunk Spark loses what stands behind it.
        ends = extents.select(["partition", "end"]).take(holes).combine_chunks()
        where = records.sparkSession.createDataFrame(ends)
        behind = _behind_holes(records.join(F.broadcast(where), "partition")).toArrow()
        times = behind["complete_from"].cast(micros).to_pylist()
        for at_us, hole in zip(times, behind.to_pylist(), strict=True):
            found[hole["partition"]] = found[hole["partition"]]._replace(
                complete_offset=hole["complete_offset"], complete_us=at_us
            )
    return found


def mark(rows: DataFrame, frames: Frames) -> DataFrame:
    """The rows, which have a `partition` of the log, with `complete_from`."""
    return rows.join(
        F.broadcast(complete_from(frames).drop("complete_offset")), "partition", "left"
    )


def _behind_holes(records: DataFrame) -> DataFrame:
    partition = Window.partitionBy("partition")
    in_order = partition.orderBy("offset", F.desc("is_damage"))
    gap = F.col("offset") - F.lag("offset", 1, -1).over(in_order)
    behind_damage = is_known(F.lag("is_damage").over(in_order))
    near = records.withColumn("is_behind", (gap > 1) | behind_damage).withColumn(
        "hole_ends", F.max(F.when(F.col("is_behind"), F.col("offset"))).over(partition)
    )
    of_key = Window.partitionBy("partition", "key_hash").orderBy("offset")
    repeated = (
        near.where(F.col("key_hash").isNotNull())
        .where(F.col("offset") <= F.col("hole_ends") + FAR_ENOUGH)
        .withColumn("is_repeated", F.lag("offset").over(of_key).isNotNull())
        .where(F.col("is_repeated"))
        .groupBy("partition")
        .agg(
            F.greatest(F.min("offset"), F.max("hole_ends")).alias("complete_offset"),
            F.max("hole_ends").alias("hole_ends"),
        )
    )
    # What was taken out of the last hole may be as young as the record behind it.
    is_before = (F.col("offset") < F.col("complete_offset")) | (
        F.col("offset") == F.col("hole_ends")
    )
    return (
        records.join(F.broadcast(repeated), "partition", "left")
        .groupBy("partition", "complete_offset")
        .agg(
            F.max("end").alias("end"),
            F.max(F.when(is_before, F.col("timestamp"))).alias("before"),
        )
        .select(
            "partition",
            "complete_offset",
            (F.coalesce("before", "end") + F.expr("interval 1 microsecond")).alias("complete_from"),
        )
    )
