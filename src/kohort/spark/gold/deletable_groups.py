# SPDX-License-Identifier: Apache-2.0
"""Which groups may be deleted, when the broker will do so by itself, and what speaks against it.

The broker's own rule (KIP-211): an offset expires at the time that its commit named, else some time
after the commit. In an empty classic group with a protocol type, that time runs from when the group
became empty. A group goes with its last offset.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.schemas.progress import DELETABLE_GROUPS
from kohort.spark.engine.frames import conform
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.gold.moments import not_below_zero

IDLE_DAYS = 7.0
"""A group that committed, or changed, within this many days is not called idle."""

_DAY = 86_400e6
_GROUP = ["partition", "group_id"]
_ORDINARY = ("classic", "consumer")


def deletable_groups(frames: Frames, context: Context, idle_days: float = IDLE_DAYS) -> DataFrame:
    """The table `deletable_groups`: a row for every group that is not deleted already."""
    groups = (
        frames["group_state"]
        .where(~F.col("state").eqNullSafe("Dead"))
        .select(
            *_GROUP,
            F.col("group_type").alias("type"),
            "state",
            "protocol_type",
            "members",
            F.unix_micros("timestamp").alias("changed_us"),
        )
    )
    facts = groups.join(_offsets(frames["offsets"]), _GROUP, "full").join(
        _last_commits(frames["commits"]), _GROUP, "left"
    )
    now = micros(context.as_of)
    last = F.greatest("last_us", "last_kept_us", "changed_us")
    rows = (
        facts.withColumns(
            {
                "last_commit_at": F.timestamp_micros("last_kept_us"),
                "days_idle": not_below_zero((F.lit(now) - last) / _DAY),
                "expires_at": F.timestamp_micros(_expiry(context)),
            }
        )
        .withColumn("blockers", _blockers(idle_days, now))
        .withColumn("deletable", F.size("blockers") == 0)
        .withColumn("reason", _reason(context))
    )
    return conform(DELETABLE_GROUPS, rows)


def _offsets(offsets: DataFrame) -> DataFrame:
    """What a group holds: its offsets in order, and the times that decide when they expire."""
    held = F.col("committed_offset").isNotNull()
    explicit = F.unix_micros("expire_timestamp")
    offset = F.struct("topic", "topic_partition", "committed_offset")
    return offsets.groupBy(*_GROUP).agg(
        F.array_sort(F.collect_list(F.when(held, offset))).alias("offsets"),
        F.max(F.unix_micros("committed_at")).alias("last_kept_us"),
        F.max(F.col("pending").cast("int")).alias("pending"),
        F.max(F.when(held, explicit)).alias("explicit_us"),
        F.max(F.when(held & explicit.isNull(), F.unix_micros("commit_timestamp"))).alias(
            "implicit_us"
        ),
    )


def _last_commits(commits: DataFrame) -> DataFrame:
    """The newest commit or removal of each group, also of offsets that are gone."""
    return commits.groupBy(*_GROUP).agg(F.max(F.unix_micros("timestamp")).alias("last_us"))


def _expiry(context: Context) -> Column:
    """In microseconds; null for never, and for unknown. Without offsets it is due already."""
    begins = F.when(
        (F.col("type") == "classic") & (F.col("protocol_type") != ""),
        F.coalesce("changed_us", "implicit_us"),
    ).otherwise(F.col("implicit_us"))
    retention = None if context.retention_ms is None else context.retention_ms * 1000
    implicit = F.col("implicit_us").isNotNull()
    with_retention = F.greatest("explicit_us", begins + F.lit(retention))
    expires = (
        F.when(implicit & F.lit(retention).isNull(), F.lit(None))
        .when(implicit, with_retention)
        .otherwise(F.coalesce("explicit_us", "changed_us"))
    )
    is_left = F.col("state").eqNullSafe("Empty") & ~F.coalesce(
        F.col("pending") == 1, F.lit(col=False)
    )
    return F.when(is_left & F.col("type").isin(*_ORDINARY), expires)


def _blockers(idle_days: float, now: int) -> Column:
    since = F.lit(now - round(idle_days * _DAY))
    blockers = {
        "state_unknown": F.col("state").isNull() | F.col("type").isNull(),
        "not_a_consumer_group": ~F.col("type").isin(*_ORDINARY),
        "members": F.col("members") > 0,
        "pending_transaction": F.col("pending") == 1,
        "recent_commit": F.greatest("last_us", "last_kept_us") > since,
        "recently_active": F.col("changed_us") > since,
    }
    names = (F.when(holds, F.lit(name)) for name, holds in blockers.items())
    return F.array_compact(F.array(*names))


def _reason(context: Context) -> Column:
    days = F.format_number("days_idle", 1)
    texts = {
        "state_unknown": F.lit("its state is not known"),
        "not_a_consumer_group": F.concat(F.lit("it is a "), "type", F.lit(" group")),
        "members": F.concat(F.lit("its members: "), F.col("members").cast("string")),
        "pending_transaction": F.lit("a transaction with its offsets is open"),
        "recent_commit": F.concat(F.lit("idle for "), days, F.lit(" days only")),
        "recently_active": F.concat(F.lit("idle for "), days, F.lit(" days only")),
    }
    reasons = (F.when(F.array_contains("blockers", name), text) for name, text in texts.items())
    against = F.array_distinct(F.array_compact(F.array(*reasons)))
    idle = F.coalesce(
        F.concat(F.lit("idle for "), days, F.lit(" days")), F.lit("no sign of life in the log")
    )
    expiry = F.concat(
        F.when(
            F.unix_micros("expires_at") > micros(context.as_of), "; the broker deletes it on "
        ).otherwise("; the broker deletes it at its next look, due since "),
        F.date_format("expires_at", "yyyy-MM-dd HH:mm"),
        F.lit(" UTC"),
    )
    may = F.concat(F.lit("no members, "), idle, F.coalesce(expiry, F.lit("")))
    return F.when(F.col("deletable"), may).otherwise(F.concat_ws("; ", against))
