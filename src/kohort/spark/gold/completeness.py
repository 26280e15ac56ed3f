"""From when on the log tells everything: what the history tables say about their own holes.

A cleaner leaves one record of each key below the point up to which it has cleaned, and every record
above. The point itself is not written down, but it lies at or below the first record that has an
older one of its key beside it, since the cleaner would have taken that. So a partition that has
holes in its offsets is complete from there, or from behind its last hole, whichever is later. What
is damaged is a hole too.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.gold.history import is_known
from kohort.spark.gold.measure import Frames, kept
from kohort.spark.schemas import RECORDS_TABLE

FAR_ENOUGH = 100_000
"""Offsets behind the last hole within which a repeated key is looked for: in a log that is in use
there is one within seconds. If there is none, nothing counts as complete, which is on the safe
side."""


COMPLETENESS = "completeness"
"""The name under which the frames have the result of `complete_from`, once it is known."""


def with_completeness(frames: Frames) -> Frames:
    """The frames with what several tables need of the whole log: it is read for it once."""
    few = complete_from(frames)
    known = few.sparkSession.createDataFrame(few.toArrow())
    return {**frames, COMPLETENESS: known}


def complete_from(frames: Frames) -> DataFrame:
    """partition, complete_offset (null: from nowhere on) and complete_from, a row per partition of
    the log. Where nothing is missing these are those of the first record. What is not older than
    `complete_from` is not before `complete_offset` either.
    """
    if COMPLETENESS in frames:
        return frames[COMPLETENESS]
    is_record = ~F.col("control") & F.col("error").isNull()
    key = F.when(is_record, F.xxhash64("key")).alias("key_hash")
    damage = F.col("error").isNotNull() & F.col("key").isNull()  # who knows how many records
    records = frames[RECORDS_TABLE.name].select(
        "partition", "offset", "timestamp", key, damage.alias("is_damage")
    )
    extent = kept(
        records.groupBy("partition").agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("count"),
            F.min("timestamp").alias("begin"),
            F.max("timestamp").alias("end"),
            F.max("is_damage").alias("damaged"),
        )
    )
    is_whole = (
        (F.col("first") == 0)
        & (F.col("last") - F.col("first") + 1 == F.col("count"))
        & ~F.col("damaged")
    )
    whole = extent.where(is_whole).select(
        "partition", F.col("first").alias("complete_offset"), F.col("begin").alias("complete_from")
    )
    with_holes = extent.where(~is_whole).select("partition", "end")
    if with_holes.isEmpty():
        return whole
    return whole.unionByName(_behind_holes(records.join(F.broadcast(with_holes), "partition")))


def mark(rows: DataFrame, frames: Frames) -> DataFrame:
    """The rows, which have a log `partition`, with `complete_from`."""
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
