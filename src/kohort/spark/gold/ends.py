# SPDX-License-Identifier: Apache-2.0
"""Where partitions of user topics ended at a moment, and when their end passed an offset.

Samples of one partition fall into eras: a topic that is recreated starts again. Within
an era the end never goes back, so two neighbouring samples bracket the time at which it passed any
offset between them.

The samples of a folder stand for its batches, and say that nothing was written between two of them.
They say nothing about the time after the last one: the folder may be a copy, and nobody knows when
it was made.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.gold.moments import first_moment, numbers

PLACE = ["topic", "topic_partition"]

NOT_DOWNSAMPLED_BELOW = 5_000
"""A walk over a topic's folder that found fewer samples than this has left none out (see
`sources.sampling`): then no batch was written between two of them.
"""


def eras(samples: DataFrame) -> DataFrame:
    """The samples with the number of their era, and whether they stand for single batches, that is
    whether the end has not moved since the one before. One that stands for samples that were left
    out is none of these.
    """
    in_time = Window.partitionBy(*PLACE).orderBy("sampled_at", "end_offset")
    of_log = F.col("origin") == "log"
    # A walk of one log never goes back, whatever the clocks; without an id it may be of two.
    shrunk = (
        (~of_log | F.col("topic_id").isNull())
        & (F.lag("origin").over(in_time) == F.col("origin"))
        & (F.col("end_offset") < F.lag("end_offset").over(in_time))
    )
    renamed = F.col("topic_id") != F.lag("topic_id").over(in_time)
    stands_for = F.coalesce("samples", F.lit(1))
    from_folder = F.sum(F.when(of_log, stands_for)).over(Window.partitionBy(*PLACE))
    goes_on = F.coalesce("log_start_offset", F.lit(0)) <= F.lag("end_offset").over(in_time)
    return (
        samples.withColumn("topic_id", F.last("topic_id", ignorenulls=True).over(in_time))
        .withColumns(
            {
                "begins": F.coalesce(shrunk | renamed, shrunk, renamed, F.lit(col=False)),
                "exact": of_log
                & (stands_for == 1)
                & (from_folder < NOT_DOWNSAMPLED_BELOW)
                & F.coalesce(goes_on, F.lit(col=True)),
                "sampled_us": F.unix_micros("sampled_at"),
            }
        )
        .withColumn("era", F.sum(F.col("begins").cast("int")).over(in_time))
        .select(*PLACE, "era", "topic_id", "exact", "sampled_us", "end_offset", "log_start_offset")
    )


def ends_at(samples: DataFrame, moments: Sequence[int]) -> DataFrame:
    """The last sample of each partition at each moment, out of `eras`; `moment` is its number.
    `still` says that the end did not move until the next sample, and so not until that moment.
    """
    in_time = Window.partitionBy(*PLACE).orderBy("sampled_us", "end_offset")
    first = first_moment("sampled_us", moments)
    until = F.coalesce(F.lead("first").over(in_time), F.lit(len(moments)))
    same_era = F.lead("era").over(in_time) == F.col("era")
    same_end = F.lead("end_offset").over(in_time) == F.col("end_offset")
    still = same_era & (same_end | F.lead("exact").over(in_time))
    return (
        samples.withColumn("first", first)
        .withColumns({"until": until, "still": F.coalesce(still, F.lit(col=False))})
        .where("first < until")
        .withColumn("moment", numbers(F.col("first"), F.col("until")))
        .drop("first", "until")
    )


def brackets(samples: DataFrame) -> DataFrame:
    """For each range of offsets between two ends: when the end was last seen at the lower or below,
    and when first at the upper or beyond. The first range of an era has no lower time.
    """
    in_order = Window.partitionBy(*PLACE, "era").orderBy("end_offset")
    return (
        samples.groupBy(*PLACE, "era", "end_offset")
        .agg(
            F.min("sampled_us").alias("upper_us"),
            F.max("sampled_us").alias("last_us"),
            F.min(F.when(F.col("exact"), F.col("sampled_us"))).alias("exact_us"),
        )
        .select(
            *PLACE,
            "era",
            F.lag("end_offset").over(in_order).alias("lower"),
            F.col("end_offset").alias("upper"),
            F.max("last_us")
            .over(in_order.rowsBetween(Window.unboundedPreceding, -1))
            .alias("lower_us"),
            "upper_us",
            (F.col("exact_us") == F.col("upper_us")).alias("exact"),
        )
    )


def with_bracket(rows: DataFrame, samples: DataFrame, offset: Column) -> DataFrame:
    """The rows, which have PLACE and `era`, with `bracket`: the range that the offset is in."""
    ranges = brackets(samples)
    bracket = F.struct(*(name for name in ranges.columns if name not in (*PLACE, "era")))
    marks = ranges.select(
        *PLACE, "era", F.coalesce("lower", F.lit(-1)).alias("at"), bracket.alias("bracket")
    )
    return _last_mark(rows, marks, [*PLACE, "era"], offset)


def end_at(rows: DataFrame, samples: DataFrame, at: Column) -> DataFrame:
    """The rows, which have PLACE, with the end at a time of theirs: `end_then`, out of `eras`, and
    `is_between`, whether a later sample of the same era is known too.

    Between two samples the end is interpolated: it grew all the while. By the last sample alone a
    consumer that falls behind would seem to catch up until the next one. The samples of a folder
    are the times at which batches were appended, so up to the next one the end stayed.
    """
    in_time = Window.partitionBy(*PLACE).orderBy("sampled_us", "end_offset")
    goes_on = F.lead("era").over(in_time) == F.col("era")
    following = F.struct(
        F.lead("sampled_us").over(in_time).alias("at"),
        F.lead("end_offset").over(in_time).alias("end"),
        F.lead("exact").over(in_time).alias("exact"),
    )
    mark = F.struct(
        F.col("sampled_us").alias("at"),
        F.col("end_offset").alias("end"),
        F.when(goes_on, following).alias("next"),
    )
    marks = samples.select(*PLACE, F.col("sampled_us").alias("at"), mark.alias("mark"))
    before, after = F.col("mark"), F.col("mark.next")
    share = (F.col("time_of_row") - before["at"]) / (after["at"] - before["at"])
    grown = F.floor((after["end"] - before["end"]) * share)
    grows = after.isNotNull() & ~after["exact"] & (after["at"] > before["at"])
    return (
        _last_mark(rows.withColumn("time_of_row", at), marks, PLACE, F.col("time_of_row"))
        .withColumns(
            {
                "end_then": before["end"] + F.when(grows, grown).otherwise(F.lit(0)),
                "is_between": F.coalesce(after.isNotNull(), F.lit(col=False)),
            }
        )
        .drop("mark", "time_of_row")
    )


def _last_mark(rows: DataFrame, marks: DataFrame, of: list[str], at: Column) -> DataFrame:
    """The rows, each with the last of the marks `of` the same that is not beyond its own `at`.

    Rows and marks are sorted together, so that no row is compared with every mark.
    """
    mark = marks.columns[-1]
    both = rows.select(*of, at.alias("at"), F.struct(*rows.columns).alias("row")).unionByName(
        marks, allowMissingColumns=True
    )
    in_order = (
        Window.partitionBy(*of)
        .orderBy("at", F.col("row").isNotNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        both.withColumn(mark, F.last(mark, ignorenulls=True).over(in_order))
        .where(F.col("row").isNotNull())
        .select("row.*", mark)
    )
