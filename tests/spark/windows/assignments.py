"""Who owned which partition, from when to when, and which rebalance gave and took it.

What the records of a member list one after the other is one row per partition, from the first
record that has it to the first that has not. A partition that is being revoked still has its owner:
two owners would be worse than none.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.windows.history import (
    AWAY,
    CURRENT,
    GROUP,
    classic_generations,
    consumer_events,
    in_order,
    is_known,
    spans,
    topic_ids,
)

from kohort.spark.gold.completeness import mark
from kohort.spark.gold.measure import Context, Frames, kept
from kohort.spark.gold.names import topic_names
from kohort.spark.schemas.membership import ASSIGNMENTS

_NOTHING = "array<struct<topic_id string, partitions array<int>>>"


def assignments(frames: Frames, context: Context) -> DataFrame:
    """The table `assignments`."""
    names = kept(topic_names(frames))
    of_consumer = _of_consumer_groups(frames).join(F.broadcast(names), "topic_id", "left")
    of_classic = _of_classic_groups(frames).join(F.broadcast(topic_ids(names)), "topic", "left")
    return ASSIGNMENTS.conform(mark(of_consumer.unionByName(of_classic), frames))


def _of_consumer_groups(frames: Frames) -> DataFrame:
    order = in_order("member_id")
    away = F.col("current.member_epoch") == AWAY
    records = consumer_events(frames).where(F.col("type") == CURRENT)
    linked = records.withColumns(
        {
            "number": F.row_number().over(order),
            "was_away": is_known(F.lag(away).over(order)),
            "is_away": is_known(away),
            "next_offset": F.lead("offset").over(order),
            "next_timestamp": F.lead("timestamp").over(order),
            "taken_by": F.lead(F.when(_takes(), F.col("rebalance"))).over(order),
            "given_by": F.when(_gives(), F.col("rebalance")),
        }
    ).withColumn("given_by", F.when(~F.col("was_away"), F.col("given_by")))
    owned = _held("assigned_partitions", revoking=False)
    revoking = _held("partitions_pending_revocation", revoking=True)
    held = (
        linked.where("is_value")
        .withColumn("topics", F.concat(owned, revoking))
        .withColumn("topics", F.explode("topics"))
        .withColumn("topic_partition", F.explode("topics.partitions"))
        .withColumns({"topic_id": F.col("topics.topic_id"), "revoking": F.col("topics.revoking")})
    )
    epoch = F.col("current.member_epoch")
    aggregates = {
        "epoch": F.coalesce(F.min(F.when(epoch > 0, epoch)), F.min(epoch)),
        "last_epoch": F.max(epoch),
        "revoked_at": F.min(F.when(F.col("revoking"), F.col("timestamp"))),
        "gained_by": F.min_by("given_by", "offset"),
        "lost_by": F.max_by("taken_by", "offset"),
    }
    key = ["member_id", "topic_id", "topic_partition"]
    return spans(held, key, ["is_away"], aggregates).select(
        *GROUP, F.lit("consumer").alias("group_type"), *key, *aggregates, *_BOUNDS
    )


_BOUNDS = ("valid_from", "valid_to", "from_offset", "to_offset")


def _takes() -> Column:
    """Whether what this record does not list any more was taken by a rebalance: not if the member
    is only away, and not if another takes its place, which needs no new epoch.
    """
    is_away = is_known(F.col("current.member_epoch") == AWAY)
    return ~is_away & (F.col("is_value") | F.col("leads_to"))


def _gives() -> Column:
    """Whether what this record lists for the first time was given by a rebalance: not what a static
    member finds again, or a classic member brings along when its group is converted.
    """
    return F.col("is_value") & (F.col("current.member_epoch") > 0) & ~F.col("upgrading")


def _held(name: str, *, revoking: bool) -> Column:
    topics = F.coalesce(F.col(f"current.{name}"), F.array().cast(_NOTHING))
    return F.transform(
        topics,
        lambda one: F.struct(
            one["topic_id"].alias("topic_id"),
            one["partitions"].alias("partitions"),
            F.lit(revoking).alias("revoking"),
        ),
    )


def _of_classic_groups(frames: Frames) -> DataFrame:
    order = in_order()
    by = F.when(F.col("is_rebalance"), F.col("offset"))
    held = (
        classic_generations(frames)
        .withColumns({"given_by": by, "taken_by": F.lead(by).over(order)})
        .where("is_value")
        .withColumn("member", F.explode("members"))
        .withColumn("topics", F.explode("member.assigned_partitions"))
        .withColumn("topic_partition", F.explode("topics.partitions"))
        .withColumns({"member_id": F.col("member.member_id"), "topic": F.col("topics.topic")})
    )
    aggregates = {
        "epoch": F.min("generation"),
        "last_epoch": F.max("generation"),
        "revoked_at": F.lit(None).cast("timestamp"),
        "gained_by": F.min_by("given_by", "offset"),
        "lost_by": F.max_by("taken_by", "offset"),
    }
    key = ["member_id", "topic", "topic_partition"]
    return spans(held, key, [], aggregates).select(
        *GROUP, F.lit("classic").alias("group_type"), *key, *aggregates, *_BOUNDS
    )
