"""What each rebalance cost and what it was about: both kinds of groups, in one table.

What the log proves is named. Where it only tells that a member is gone, the trigger is unknown, and
what nothing rules out is listed.
"""

from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.windows.epochs import epochs
from tests.spark.windows.generations import generations
from tests.spark.windows.history import GROUP, is_known, micros_between
from tests.spark.windows.removals import Session

from kohort.history.rows import METADATA_CHANGE, TRIGGERS, UNKNOWN
from kohort.spark.gold.completeness import complete_from
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.schemas import DECODED, TOMBSTONE
from kohort.spark.schemas.membership import REBALANCES

NEW = ("likely", "unread", "unread_seconds", "longest_unread_seconds", "computed")
"""Columns that the windows cannot tell."""
_OF_GROUPS = (2, 3)
BEFORE = replace(
    REBALANCES, columns=tuple(one for one in REBALANCES.columns if one.name not in NEW)
)


def rebalances(frames: Frames, context: Context) -> DataFrame:
    """The table `rebalances`. It takes moves and gaps from `assignments`."""
    session = Session.of(context)
    rows = epochs(frames, session).unionByName(generations(frames, session))
    told = rows.join(F.broadcast(complete_from(frames)), "partition", "left")
    moved = _moves(_with_life(frames["assignments"], frames[DECODED.name]))
    named = _named(_timed(told)).join(moved, [*GROUP, "offset"], "left")
    return BEFORE.conform(_counted(named))


def _timed(rows: DataFrame) -> DataFrame:
    ended = F.col("ended_at")
    return rows.withColumns(
        {
            "outcome": F.when(ended.isNotNull(), F.lit("completed"))
            .when(F.col("has_successor"), F.lit("superseded"))
            .otherwise(F.lit("open")),
            "seconds": micros_between(F.col("started_at"), ended),
            "seconds_at_least": micros_between(F.col("started_before"), ended),
            "seconds_at_most": micros_between(F.col("started_after"), ended),
        }
    )


def _named(rows: DataFrame) -> DataFrame:
    """Triggers in their order, the first of which names the rebalance. That nothing was written
    beside the epoch proves something only where nothing can be hidden.
    """
    is_sound = is_known(F.col("offset") >= F.col("complete_offset")) | ~F.col("by_hash_alone")
    proven = F.filter("proven", lambda one: is_sound | (one != METADATA_CHANGE))
    of_removals = F.transform(
        "removals",
        lambda one: F.when(F.size(one["possible"]) == 1, one["possible"][0]).otherwise(
            F.lit(UNKNOWN)
        ),
    )
    found = F.concat(proven, of_removals)
    order = F.array(*(F.lit(one) for one in TRIGGERS))
    triggers = F.filter(order, lambda one: F.array_contains(found, one))
    open_ones = F.filter("removals", lambda one: F.size(one["possible"]) > 1)
    possible = F.array_distinct(F.flatten(F.transform(open_ones, lambda one: one["possible"])))
    evidence = F.concat(F.col("facts"), F.transform("removals", lambda one: one["evidence"]))
    return rows.withColumn("triggers", triggers).withColumns(
        {
            "triggers": F.when(F.size("triggers") > 0, F.col("triggers")).otherwise(
                F.array(F.lit(UNKNOWN))
            ),
            "trigger": F.coalesce(F.get("triggers", F.lit(0)), F.lit(UNKNOWN)),
            "possible": possible,
            "evidence": F.array_join(evidence, "; "),
            "gone": F.transform("removals", _who),
        }
    )


def _who(one: Column) -> Column:
    names = ("member_id", "client_id", "group_instance_id")
    return F.struct(*(one[name].alias(name) for name in names))


def _with_life(assignments: DataFrame, decoded: DataFrame) -> DataFrame:
    """Each with the number of groups of this id that had ended before. One that goes on with the
    other protocol has not ended: that begins at the same time.
    """
    said = decoded.where(F.col("type").isin(*_OF_GROUPS)).select(
        *GROUP, "offset", "timestamp", (F.col("kind") == TOMBSTONE).alias("ends")
    )
    goes_on = said.where(~F.col("ends")).select(
        *GROUP, F.col("offset").alias("on_offset"), F.col("timestamp").alias("on_timestamp")
    )
    same_write = (F.col("on_timestamp") == F.col("timestamp")) & (
        F.col("on_offset") > F.col("offset")
    )
    ended = (
        said.where("ends")
        .join(goes_on, [*GROUP], "left")
        .groupBy(*GROUP, "offset")
        .agg(F.bool_or(F.coalesce(same_write, F.lit(False))).alias("goes_on"))
        .where(~F.col("goes_on"))
        .groupBy(*GROUP)
        .agg(F.collect_list("offset").alias("ends"))
    )
    before = F.filter("ends", lambda offset: offset < F.col("from_offset"))
    life = F.coalesce(F.size(before), F.lit(0))
    return assignments.join(ended, [*GROUP], "left").withColumn(
        "life", F.when(F.col("ends").isNull(), 0).otherwise(life)
    )


def _moves(assignments: DataFrame) -> DataFrame:
    """Per rebalance what was given and what was taken, with the owner before and the time until
    the next, who may come when the group has changed its protocol.
    """
    keyed = assignments.withColumn("key", F.coalesce("topic_id", "topic"))
    order = Window.partitionBy(*GROUP, "life", "key", "topic_partition").orderBy("from_offset")
    linked = keyed.withColumns(
        {
            "from_member_id": F.lag("member_id").over(order),
            "next_offset": F.lead("from_offset").over(order),
            "next_from": F.lead("valid_from").over(order),
        }
    )
    what = ("topic_id", "topic", "topic_partition")
    gained = linked.where(F.col("gained_by").isNotNull()).select(
        *GROUP,
        F.col("gained_by").alias("offset"),
        "member_id",
        F.struct(*what, "from_member_id", F.col("member_id").alias("to_member_id")).alias("move"),
    )
    seconds = micros_between(F.col("valid_to"), F.col("next_from"))
    has_gap = F.col("next_offset").isNull() | (F.col("next_offset") > F.col("to_offset"))
    lost = linked.where(F.col("lost_by").isNotNull()).select(
        *GROUP,
        F.col("lost_by").alias("offset"),
        "member_id",
        F.when(has_gap, F.struct(*what, seconds.alias("seconds"))).alias("gap"),
    )
    return (
        gained.unionByName(lost, allowMissingColumns=True)
        .groupBy(*GROUP, "offset")
        .agg(
            F.sort_array(F.collect_list("move")).alias("moves"),
            F.sort_array(F.collect_list("gap")).alias("unowned"),
            F.size(F.collect_set("member_id")).alias("members_involved"),
        )
    )


def _counted(rows: DataFrame) -> DataFrame:
    fields = {field.name: field.dataType for field in BEFORE.spark}
    with_lists = rows.withColumns(
        {
            name: F.coalesce(F.col(name).cast(fields[name]), F.array().cast(fields[name]))
            for name in ("moves", "unowned")
        }
    )
    went = F.filter("moves", lambda one: one["from_member_id"] != one["to_member_id"])
    return with_lists.withColumns(
        {
            "partitions_moved": F.size(went),
            "members_involved": F.coalesce("members_involved", F.lit(0)),
        }
    )
