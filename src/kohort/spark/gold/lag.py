# SPDX-License-Identifier: Apache-2.0
"""How far groups are behind at any moment, in records and in seconds.

The time lag of a committed offset is the time since the end of the partition passed it. History
tells when that was: between two samples of the end, which also bound the error.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.schemas.progress import LAG
from kohort.spark.engine.frames import conform
from kohort.spark.gold import ends
from kohort.spark.gold.commits import KEY, effective, topic_hash
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.gold.moments import first_moment, not_below_zero, numbers, time_of

MOMENTS = 200
ROWS = 500_000
"""How many earlier moments the table has at most, and about how many rows of partitions. With
many partitions it has fewer moments, down to `_FEWEST`. `lag_at` gives any other moment.
"""

_FEWEST = 10

Times = npt.NDArray[np.int64]

_REASONS = (
    "lost",
    "before_samples",
    "beyond_end",
    "topic_recreated",
    "never_committed",
    "no_end_offset",
)
"""From the most telling to the least: of several partitions, the last one counts."""

_LEVELS = ("group", "topic", "partition")
_READ = ("partition", "group_id", "topic", "moment")
_SECOND = 1e6


def lag(frames: Frames, context: Context) -> DataFrame:
    """The table `lag`: at the times of samples, and at the moment of the run."""
    as_of = micros(context.as_of)
    keys = effective(frames).select(*KEY).distinct().count()
    at = F.unix_micros("sampled_at")
    times = frames["end_offsets"].where(at <= as_of).select(at.alias("at")).distinct().toArrow()
    return lag_of(frames, moments_of(times["at"].to_numpy(), keys, as_of))


def moments_of(times: Times, keys: int, as_of: int) -> list[int]:
    """The moments that the table has, in microseconds: some of the times of samples, and the moment
    of the run. `keys` is how many partitions of groups there are.
    """
    most = max(_FEWEST, min(MOMENTS, ROWS // max(keys, 1)))
    return sorted({*sampled_times(times, as_of, most), as_of})


def lag_at(frames: Frames, times: DataFrame | Iterable[datetime]) -> DataFrame:
    """The rows that the table `lag` would have at these moments: a list of times, or the first
    column of a frame. Needs `commits` and `end_offsets`, and `members` for topics that a group
    subscribes to and has never committed for.
    """
    if isinstance(times, DataFrame):
        rows = times.select(F.unix_micros(times[times.columns[0]])).collect()
        return lag_of(frames, sorted({row[0] for row in rows}))
    return lag_of(frames, sorted({micros(time) for time in times}))


def sampled_times(times: Times, until: int, most: int) -> list[int]:
    """The latest of the times, all in microseconds, in each of at most that many equal steps.

    A step is a power of two and begins at a multiple of it. So when it grows, the moments are some
    of the earlier ones: what was computed for them stays right.
    """
    known = times[times <= until]
    if not len(known):
        return []
    low, high = int(known.min()), int(known.max())
    bits = 0
    while (high >> bits) - (low >> bits) >= most:
        bits += 1
    ordered = np.unique(known)
    ends = np.flatnonzero(np.diff(ordered >> bits))
    return [*ordered[ends].tolist(), high]


def committed_at(effective: DataFrame, moments: Sequence[int]) -> DataFrame:
    """The committed offset of each group and partition at each moment; `moment` is its number.

    At a moment the record counts that has the largest offset among those that had taken effect (see
    `gold.commits`). Everything that is aggregated is a number, so Spark keeps it in a hash table.
    """
    at = F.unix_micros("effective_at")
    values = {
        "committed_offset": F.col("committed_offset"),  # null for a tombstone
        "committed_us": at,
        "topic_hash": F.col("topic_hash"),
    }
    last = (
        effective.select(
            *KEY,
            "offset",
            first_moment("unix_micros(effective_at)", moments).alias("first"),
            *(value.alias(name) for name, value in values.items()),
        )
        .where(F.col("first") < len(moments))
        .groupBy(*KEY, "first")
        .agg(
            F.max("offset").alias("offset"),
            *(F.max_by(name, "offset").alias(name) for name in values),
        )
    )
    return (
        _held(last, moments)
        .where(F.col("committed_offset").isNotNull())
        .select(*KEY, "moment", "committed_offset", "committed_us", "topic_hash")
    )


def _held(last: DataFrame, moments: Sequence[int]) -> DataFrame:
    """A row for each moment at which a record still holds. The log's order counts, not the time: a
    later record with an earlier time has taken over already.
    """
    if len(moments) == 1:
        return last.withColumn("moment", F.col("first"))
    by_moment = Window.partitionBy(*KEY).orderBy("first")
    return (
        last.withColumn("newest", F.max("offset").over(by_moment))
        .where(F.col("offset") == F.col("newest"))
        .withColumn("until", F.lead("first", 1, len(moments)).over(by_moment))
        .withColumn("moment", numbers(F.col("first"), F.col("until")))
    )


def lag_of(frames: Frames, moments: Sequence[int]) -> DataFrame:
    """The rows of the table at these moments, in microseconds."""
    samples = ends.eras(frames["end_offsets"])
    at_ends = ends.ends_at(samples, moments).withColumn("end_topic_hash", topic_hash())
    committed = committed_at(effective(frames), moments)
    read = committed.select(*_READ)
    if "members" in frames:
        read = read.unionByName(_subscribed(frames["members"], moments))
    rows = _beside_ends(committed, at_ends, read.distinct())
    measured = _in_records(rows.withColumn("at_us", time_of(F.col("moment"), moments)))
    timed = ends.with_bracket(measured, samples, F.col("next_offset"))
    return conform(LAG, _levels(_in_seconds(timed)))


def _subscribed(members: DataFrame, moments: Sequence[int]) -> DataFrame:
    """The topics that members subscribed to by name, at each moment."""
    return (
        members.withColumn("topic", F.explode("subscribed_topics"))
        .withColumns(
            {
                "first": first_moment("unix_micros(valid_from)", moments),
                "until": first_moment("unix_micros(valid_to)", moments),  # of null, the end
            }
        )
        .withColumn("moment", numbers(F.col("first"), F.col("until")))
        .select(*_READ)
    )


def _beside_ends(committed: DataFrame, at_ends: DataFrame, read: DataFrame) -> DataFrame:
    """Committed offsets and ends, side by side: each may be missing. A topic that a group reads has
    a row for each of its partitions.
    """
    return read.join(at_ends, ["topic", "moment"]).join(committed, [*KEY, "moment"], "full")


def _in_records(rows: DataFrame) -> DataFrame:
    """`next_offset` is the first that the group can still read."""
    committed, end, start = (
        F.col(name) for name in ("committed_offset", "end_offset", "log_start_offset")
    )
    other_topic = F.coalesce(F.col("topic_hash") != F.col("end_topic_hash"), F.lit(col=False))
    nothing_there = F.coalesce(start, F.lit(0)) >= end
    next_offset = F.greatest(F.coalesce(start, F.lit(0)), committed)
    is_older = F.col("committed_us") < F.col("sampled_us")
    reason = (
        F.when(end.isNull(), _code("no_end_offset"))
        .when(committed.isNull(), _code("never_committed"))
        .when(other_topic, _code("topic_recreated"))
        .when((committed > end) & is_older, _code("beyond_end"))
        .when(committed < start, _code("lost"))
    )
    lost = not_below_zero(F.try_subtract(start, committed))
    return rows.withColumns(
        {
            "reason": reason,
            "next_offset": F.when(~other_topic, next_offset),
            "records_lost": F.when(~other_topic, lost),
        }
    ).withColumn(
        "lag_records",
        F.when(committed.isNull() & nothing_there, F.lit(0)).when(
            committed.isNotNull(), not_below_zero(end - F.col("next_offset"))
        ),
    )


def _in_seconds(rows: DataFrame) -> DataFrame:
    """Times are in microseconds until here."""
    at, lower, upper = F.col("at_us"), F.col("bracket.lower_us"), F.col("bracket.upper_us")
    exact = F.coalesce("bracket.exact", F.lit(col=False))
    width = F.col("bracket.upper") - F.col("bracket.lower")
    share = (F.col("next_offset") - F.col("bracket.lower") + 0.5) / width
    with_bracket = F.when(exact | lower.isNull(), upper).otherwise(lower + (upper - lower) * share)
    behind = F.col("lag_records") > 0
    caught_up = F.col("lag_records") == 0
    error = (
        F.when(behind & exact, F.lit(0.0))
        .when(behind, F.greatest(with_bracket - lower, upper - with_bracket) / _SECOND)
        .when(caught_up & F.col("still"), F.lit(0.0))
        .when(caught_up, (at - F.col("sampled_us")) / _SECOND)
    )
    seconds = F.when(caught_up, F.lit(0.0)).when(
        behind, not_below_zero((at - with_bracket) / _SECOND)
    )
    unbounded = behind & lower.isNull() & ~exact
    return rows.withColumns(
        {
            "lag_seconds": seconds,
            "lag_seconds_error": F.when(~unbounded, error),
            "reason": F.greatest("reason", F.when(unbounded, _code("before_samples"))),
        }
    )


def _levels(rows: DataFrame) -> DataFrame:
    """Each row for itself, for its topic and for its group: one aggregate of numbers for all."""
    levels = F.explode(F.array(*(F.lit(level) for level in _LEVELS)))
    whole = F.col("level") == "partition"
    sums = (
        rows.withColumn("level", levels)
        .withColumns(
            {
                "topic": F.when(F.col("level") != "group", F.col("topic")),
                "topic_partition": F.when(whole, F.col("topic_partition")),
            }
        )
        .groupBy("partition", "group_id", "level", "topic", "topic_partition", "at_us")
        .agg(
            *(F.max(name).alias(name) for name in ("committed_offset", "end_offset")),
            F.max("committed_us").alias("committed_us"),
            F.min("sampled_us").alias("sampled_us"),
            F.sum("records_lost").alias("records_lost"),
            *of_several(),
        )
    )
    return sums.withColumns(
        {
            "committed_offset": F.when(whole, F.col("committed_offset")),
            "end_offset": F.when(whole, F.col("end_offset")),
            **bounds_of_several(),
            "at": F.timestamp_micros("at_us"),
            "committed_at": F.timestamp_micros("committed_us"),
            "end_sampled_at": F.timestamp_micros("sampled_us"),
        }
    )


def of_several() -> list[Column]:
    """Aggregates of rows of partitions: the lag of all of them, and what `bounds_of_several` needs.
    `reason` is a number, see `reason_number`.
    """
    seconds, error = F.col("lag_seconds"), F.col("lag_seconds_error")
    return [
        F.sum("lag_records").alias("lag_records"),
        F.max(seconds).alias("lag_seconds"),
        F.max(seconds + error).alias("most"),
        F.max(seconds - error).alias("least"),
        F.max("reason").alias("reason"),
        F.count("*").alias("partitions"),
        F.sum(F.col("lag_records").isNull().cast("int")).alias("partitions_unknown"),
        F.sum(error.isNull().cast("int")).alias("unbounded"),
    ]


def bounds_of_several() -> dict[str, Column]:
    """The error and the reason of the lag of several partitions."""
    seconds = F.col("lag_seconds")
    error = F.greatest(F.col("most") - seconds, seconds - F.col("least"))
    return {
        "lag_seconds_error": F.when(F.col("unbounded") == 0, error),
        "reason": F.try_element_at(F.array(*map(F.lit, _REASONS)), F.col("reason")),
    }


def reason_number() -> Column:
    """The column `reason` as a number: of several, the largest tells the least."""
    number = F.array_position(F.array(*map(F.lit, _REASONS)), F.col("reason"))
    return F.when(number > 0, number.cast("int"))


def _code(reason: str) -> Column:
    return F.lit(_REASONS.index(reason) + 1)
