# SPDX-License-Identifier: Apache-2.0
"""How commits move partitions on: each beside the one before it, and what a log hides of that."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas.progress import COMMIT_RATES, COMMITTED, REMOVED
from kohort.spark.engine.frames import conform
from kohort.spark.gold.commits import KEY, none_as_removed
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.gold.rate_rollup import newest_of, per_second, roll_up_rates


def commit_rates(frames: Frames, context: Context) -> DataFrame:
    """The table `commit_rates`: each commit that took effect, beside the one before it."""
    every = frames["commits"]
    return roll_up_rates(rates(every, held_back(every)), newest_of(every, context.as_of))


def held_back(every: DataFrame) -> DataFrame:
    """partition, held_back: from when on the commits of a partition are known.

    A commit that a transaction held back may have taken effect behind the point up to which a
    cleaner has been, while it stands before it. The cleaner may then have removed the commit before
    it.
    """
    return (
        every.where(F.col("state").isin(COMMITTED, REMOVED))
        .where(F.col("timestamp") < F.col("complete_from"))
        .where(F.col("effective_at") >= F.col("complete_from"))
        .groupBy("partition")
        .agg(F.max("effective_at").alias("held_back"))
    )


def rates(every: DataFrame, behind: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """A row of `commit_rates` for each of these rows of `commits` that took effect; the rows of
    `before` come before them, and `behind` is the result of `held_back`.
    """
    in_order = Window.partitionBy(*KEY).orderBy("offset")
    before_at = F.lag("effective_at").over(in_order)
    last = F.lag("committed_offset").over(in_order)
    seconds = (F.unix_micros("effective_at") - F.unix_micros("before_at")) / 1e6
    columns = (*KEY, "offset", "state", "effective_at", "committed_offset")
    taken = every.where(F.col("state").isin(COMMITTED, REMOVED)).select(*columns, "complete_from")
    if before is not None:
        known = before.select(*columns, F.lit(True).alias("is_known"))
        taken = taken.withColumn("is_known", F.lit(False)).unionByName(
            known, allowMissingColumns=True
        )
    taken = none_as_removed(taken)
    known_from = F.col("held_back") + F.expr("interval 1 microsecond")
    rows = (
        taken.withColumns({"before_at": F.when(last.isNotNull(), before_at), "before": last})
        .where(F.col("state") == COMMITTED)
        .where(F.lit(True) if before is None else ~F.col("is_known"))
        .withColumns({"records": F.try_subtract("committed_offset", "before"), "seconds": seconds})
        .withColumn("is_reset", F.col("records") < 0)
        .withColumn("records_per_second", per_second())
        .withColumns(
            {
                "first_at": F.col("effective_at"),
                "commits": F.lit(1),
                "records_per_second_min": F.col("records_per_second"),
                "records_per_second_max": F.col("records_per_second"),
            }
        )
    )
    marked = rows.join(F.broadcast(behind), "partition", "left").withColumn(
        "complete_from", F.greatest("complete_from", known_from)
    )
    return conform(COMMIT_RATES, marked)
