"""Who was in which group, from when to when, and what they said of themselves.

A consumer group has a record for each change of a member. A classic group has one record for all
members of a generation: there, a row goes on for as long as the member is in each of them and does
not change.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.windows.history import (
    GROUP,
    MEMBER,
    classic_generations,
    in_order,
    is_known,
    spans,
)

from kohort.spark.gold.completeness import mark
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.schemas import DECODED, KINDS, TOMBSTONE
from kohort.spark.schemas.membership import MEMBERS


def members(frames: Frames, context: Context) -> DataFrame:
    """The table `members`."""
    both = _of_consumer_groups(frames).unionByName(_of_classic_groups(frames))
    return MEMBERS.conform(mark(both, frames))


def _of_consumer_groups(frames: Frames) -> DataFrame:
    order = in_order("member_id")
    is_classic = F.col("classic_protocols").isNotNull()
    wish = F.when(F.col("server_assignor") != "", F.array("server_assignor"))
    return (
        frames[DECODED.name]
        .where(F.col("kind").isin(KINDS[MEMBER], TOMBSTONE) & (F.col("type") == MEMBER))
        .select(
            *GROUP,
            "member_id",
            "offset",
            "timestamp",
            (F.col("kind") != TOMBSTONE).alias("is_value"),
            f"{KINDS[MEMBER]}.*",
            F.lead("timestamp").over(order).alias("valid_to"),
            F.lead("offset").over(order).alias("to_offset"),
        )
        .where("is_value")
        .select(
            *GROUP,
            F.lit("consumer").alias("group_type"),
            "member_id",
            F.col("instance_id").alias("group_instance_id"),
            "client_id",
            "client_host",
            "rack_id",
            F.when(is_classic, F.lit("classic")).otherwise(F.lit("consumer")).alias("protocol"),
            F.when(is_classic, F.col("classic_protocols")).otherwise(wish).alias("assignors"),
            F.sort_array("subscribed_topic_names").alias("subscribed_topics"),
            _or_null("subscribed_topic_regex"),
            F.col("classic_session_timeout_ms").alias("session_timeout_ms"),
            "rebalance_timeout_ms",
            F.lit(None).cast("boolean").alias("is_leader"),
            F.col("timestamp").alias("valid_from"),
            "valid_to",
            F.col("offset").alias("from_offset"),
            "to_offset",
        )
    )


def _or_null(name: str) -> Column:
    return F.when(F.col(name) != "", F.col(name)).alias(name)


def _of_classic_groups(frames: Frames) -> DataFrame:
    one = F.col("one")
    said = (
        classic_generations(frames)
        .where("is_value")
        .withColumn("one", F.explode("members"))
        .withColumns(
            {
                "member_id": one["member_id"],
                "said": F.struct(
                    one["group_instance_id"].alias("group_instance_id"),
                    one["client_id"].alias("client_id"),
                    one["client_host"].alias("client_host"),
                    one["rack_id"].alias("rack_id"),
                    F.array("protocol").alias("assignors"),
                    F.sort_array(one["subscribed_topics"]).alias("subscribed_topics"),
                    one["session_timeout_ms"].alias("session_timeout_ms"),
                    one["rebalance_timeout_ms"].alias("rebalance_timeout_ms"),
                    is_known(F.col("leader") == one["member_id"]).alias("is_leader"),
                ),
            }
        )
    )
    found = spans(said, ["member_id"], ["said"])
    return found.select(
        *GROUP,
        F.lit("classic").alias("group_type"),
        "member_id",
        *(f"said.{name}" for name in ("group_instance_id", "client_id", "client_host", "rack_id")),
        F.lit("classic").alias("protocol"),
        "said.assignors",
        "said.subscribed_topics",
        F.lit(None).cast("string").alias("subscribed_topic_regex"),
        "said.session_timeout_ms",
        "said.rebalance_timeout_ms",
        "said.is_leader",
        "valid_from",
        "valid_to",
        "from_offset",
        "to_offset",
    )
