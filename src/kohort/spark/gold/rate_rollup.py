# SPDX-License-Identifier: Apache-2.0
"""How `commit_rates` gets coarser with age: a row comes to stand for the commits of a whole step.

Sums are kept exactly, with the least and the most, so no spike is lost. How old a commit is tells
the newest one of its partition of the log, and no other partition; one that is later than the
moment of the run has a wrong clock, and tells nothing until then. Rows become the same in whatever
pieces they are merged, and a commit that comes late adds to the row that stands for its step.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.schemas.progress import COMMIT_RATES, COMMITTED
from kohort.pipeline.schemas.rollup_tiers import ROLLUP_TIERS, RollupTier
from kohort.spark.engine.frames import conform
from kohort.spark.gold.commits import KEY

_SANE = 1 << 40
"""A commit that moves further, of somebody who plays with offsets, stays alone: sums must fit."""


def newest_of(commits: DataFrame, as_of: datetime) -> DataFrame:
    """partition, newest_us: the time of the newest commit of each partition of the log by then."""
    at = F.unix_micros("effective_at")
    taken = commits.where((F.col("state") == COMMITTED) & (at <= micros(as_of)))
    return taken.groupBy("partition").agg(F.max(at).alias("newest_us"))


def due_before_column(tier: RollupTier) -> Column:
    """As `RollupTier.due_before`, for `newest_us`."""
    since = F.col("newest_us") - tier.after_us
    return since - F.pmod(since, F.lit(tier.file_us))


def roll_up_rates(rows: DataFrame, newest: DataFrame) -> DataFrame:
    """Rows of the table, the old ones merged; `newest` is the result of `newest_of`. All rows of a
    step have to come together.
    """
    at, records, commits = F.unix_micros("effective_at"), F.col("records"), F.col("commits")
    step = F.coalesce(  # of the coarsest tier for which a row is due
        *(
            F.when(at < due_before_column(tier), at - F.pmod(at, F.lit(tier.step_us)))
            for tier in reversed(ROLLUP_TIERS)
        )
    )
    is_sane = F.coalesce((records / commits).between(-_SANE, _SANE), F.lit(True))
    marked = rows.join(F.broadcast(newest), "partition", "left").withColumns(
        {
            "step": step,
            "alone": F.when(step.isNull() | ~is_sane, F.col("offset")),
            "is_complete": F.col("effective_at") >= F.col("complete_from"),
            "micros": F.round(F.col("seconds") * 1e6).cast("decimal(38,0)"),
        }
    )
    merged = marked.groupBy(*KEY, "step", "alone", "is_complete", "is_reset").agg(
        F.max_by("committed_offset", "offset").alias("committed_offset"),
        F.max("offset").alias("offset"),
        F.min("first_at").alias("first_at"),
        *(F.max(name).alias(name) for name in ("effective_at", "complete_from")),
        F.sum("commits").alias("commits"),
        (F.sum("micros").cast("double") / 1e6).alias("seconds"),
        F.try_sum("records").alias("records"),
        F.min("records_per_second_min").alias("records_per_second_min"),
        F.max("records_per_second_max").alias("records_per_second_max"),
    )
    return conform(COMMIT_RATES, merged.withColumn("records_per_second", per_second()))


def per_second() -> Column:
    """The rate of a row."""
    seconds = F.col("seconds")
    return F.when((seconds > 0) & ~F.col("is_reset"), F.col("records") / seconds)
