# SPDX-License-Identifier: Apache-2.0
"""What later commits and records build on: the newest of each key, small however long the log is.

A run that adds rows puts these before them and need not read the old ones. Of records about members
and groups, a broker knows the newest of each key (see `gold.group_state`). Of commits, the last few
that took effect are kept: they tell what held a short while ago, and how a consumer has kept up.
"""

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import DECODED, KINDS, MARKER, QUARANTINE, TOMBSTONE, Column, Table
from kohort.pipeline.schemas.progress import COMMITS, COMMITTED, REMOVED
from kohort.spark.engine.frames import conform, struct_of
from kohort.spark.gold.commits import KEY, offset_or_null, topic_hash

WINDOW = 20
"""How many commits are kept of each partition of a group. Half of them suffice for `status`."""
_WANTED = 10
_NEVER = 1 << 62

_ENTRY = pa.struct(
    [
        ("offset", pa.int64()),
        ("at_us", pa.int64()),
        ("committed_offset", pa.int64()),
        ("topic_hash", pa.int64()),
    ]
)
_LAST = [column for column in COMMITS.columns if column.name not in (*KEY, "complete_from")]
NEWEST = Table(
    "newest",
    "gold",
    "The last commit or removal of each partition of a group that took effect, as in `commits`.",
    (
        *(column for column in COMMITS.columns if column.name in KEY),
        *_LAST,
        Column("window", pa.list_(_ENTRY), "the last of them, in order; null offset: removed"),
        Column(
            "exact_us",
            pa.int64(),
            "from this moment on the window tells what held and what came last; null: from any",
        ),
        Column("newest_us", pa.int64(), "the latest time in the window"),
    ),
)
RECORDS = Table(
    "newest_records",
    "gold",
    "Decoded rows: of each key the last one with a value and the last tombstone. Of all that a "
    "group has committed or removed one row, with the largest offset and the latest time.",
    DECODED.columns,
)

_OFFSET_TYPES = (0, 1)


def newest(every: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """NEWEST rows, out of rows of `commits` that stand behind those of `before`."""
    newest_first = Window.partitionBy(*KEY).orderBy(F.desc("offset"))
    at_us = F.unix_micros("effective_at")
    entry = F.struct(
        "offset",
        at_us.alias("at_us"),
        "committed_offset",
        topic_hash().alias("topic_hash"),
    )
    last = F.when(F.col("age") == 1, F.struct(*(column.name for column in _LAST)))
    found = (
        every.where(F.col("state").isin(COMMITTED, REMOVED))
        .withColumn("age", F.row_number().over(newest_first))
        .where(F.col("age") <= WINDOW + 1)
        .groupBy(*KEY)
        .agg(
            F.array_sort(F.collect_list(entry)).alias("window"),
            F.first(last, ignorenulls=True).alias("last"),
        )
    )
    if before is None:
        return _windowed(found.withColumn("exact_us", F.lit(None).cast("bigint")))
    then = before.select(
        *KEY,
        F.col("window").alias("window_then"),
        F.col("exact_us"),
        F.struct(*(column.name for column in _LAST)).alias("last_then"),
    )
    none = F.array().cast(struct_of(NEWEST)["window"].dataType)
    both = found.join(then, KEY, "full").select(
        *KEY,
        F.concat(F.coalesce("window_then", none), F.coalesce("window", none)).alias("window"),
        F.coalesce("last", "last_then").alias("last"),
        "exact_us",
    )
    return _windowed(both)


def _windowed(rows: DataFrame) -> DataFrame:
    is_full = F.col("exact_us").isNotNull() | (F.size("window") > WINDOW)
    times = F.transform("window", lambda entry: F.coalesce(entry["at_us"], F.lit(_NEVER)))
    cut = rows.withColumn("is_full", is_full).withColumn(
        "window",
        F.when(F.size("window") > WINDOW, F.slice("window", -WINDOW, WINDOW)).otherwise(
            F.col("window")
        ),
    )
    full_until = F.array_max(F.slice(times, 1, WINDOW - _WANTED))
    return conform(
        NEWEST,
        cut.select(
            *KEY,
            "last.*",
            "window",
            F.when(F.col("is_full"), full_until).alias("exact_us"),
            F.array_max(times).alias("newest_us"),
        ),
    )


def as_effective(rows: DataFrame, *, last_only: bool = False) -> DataFrame:
    """The rows of `gold.commits.effective` that NEWEST rows have kept; `last_only`: one row of
    each.
    """
    entries = F.slice("window", -1, 1) if last_only else F.col("window")
    entry = F.col("one")
    committed = offset_or_null(entry["committed_offset"])
    return rows.select(*KEY, F.explode(entries).alias("one")).select(
        *KEY,
        entry["offset"].alias("offset"),
        F.when(committed.isNull(), REMOVED).otherwise(COMMITTED).alias("state"),
        F.timestamp_micros(entry["at_us"]).alias("effective_at"),
        committed.alias("committed_offset"),
        entry["topic_hash"].alias("topic_hash"),
    )


def records(decoded: DataFrame, newer: DataFrame | None = None) -> DataFrame:
    """RECORDS rows out of decoded ones, or of RECORDS rows with decoded ones behind them. Of
    RECORDS rows and `newer` rows that are about nothing but commits, the former stay as they are,
    but for those about commits.
    """
    about_offsets = F.col("type").isin(*_OFFSET_TYPES) & F.col("kind").isin(
        TOMBSTONE, *(KINDS[number] for number in _OFFSET_TYPES)
    )
    is_offset = F.coalesce(about_offsets, F.lit(False))
    last = decoded.where(~is_offset & ~F.col("kind").isin(MARKER, QUARANTINE))
    if newer is None:
        newest_of_key = F.max_by(F.struct(*DECODED.names), "offset").alias("last")
        last = last.groupBy("partition", "key", "kind").agg(newest_of_key).select("last.*")
    every = decoded if newer is None else decoded.unionByName(newer)
    of_offsets = (
        every.where(is_offset)
        .groupBy("partition", "group_id")
        .agg(F.max("offset").alias("offset"), F.max("timestamp").alias("timestamp"))
        .withColumn("kind", F.lit(KINDS[1]))
        .withColumn("type", F.lit(1).cast("smallint"))
    )
    return conform(RECORDS, last.unionByName(of_offsets, allowMissingColumns=True))


def said_of_offsets() -> Expression:
    """Whether a RECORDS row is about what a group has committed."""
    return (F.col("kind") == KINDS[1]) & (F.col("type") == 1)
