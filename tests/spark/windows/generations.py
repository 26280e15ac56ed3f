"""Rebalances of classic groups: what differs between a generation and the one before.

The log has the outcome of each, and nothing in between. What can be proven is what must have been a
reason: a member that is new, a topic that was not subscribed, a partition that was not there.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.windows.history import GROUP, classic_generations, in_order, is_known
from tests.spark.windows.removals import Session, with_removals

from kohort.history.rows import (
    ASSIGNOR_CHANGE,
    FOLLOW_UP,
    JOIN,
    METADATA_CHANGE,
    MIGRATION,
    SUBSCRIPTION_CHANGE,
)
from kohort.spark.gold.measure import Frames, kept

_PARTITIONS = "array<struct<topic string, topic_partition int>>"


def generations(frames: Frames, session: Session) -> DataFrame:
    """A row per generation of a classic group, with `proven` triggers and `removals`, as `epochs`
    has them.
    """
    rows = kept(
        _compared(
            classic_generations(frames)
            .withColumn("began_over", F.lag("starts_over").over(in_order()))
            .where("is_rebalance")
            .withColumnRenamed("offset", "rebalance")
        )
    )
    removed = _removals(rows).unionByName(_not_converted(rows, frames["members"], session))
    return _explained(with_removals(rows, removed, frames))


def _compared(rows: DataFrame) -> DataFrame:
    """Who was there before and who is there now, and which partitions.

    Without a record before there is nothing to compare with, unless it is the first generation.
    """
    was = F.when(is_known(F.col("prior.is_value")), F.col("prior.members"))
    known = was.isNotNull() | (F.col("generation") == 1)
    joined_by = F.coalesce("current_state_timestamp", "timestamp")
    with_both = rows.withColumns(
        {
            "was": F.coalesce(was, F.slice("members", 1, 0)),
            "known": known,
            "joined_by": F.least(joined_by, F.col("timestamp")),
        }
    )
    return with_both.withColumns(
        {
            "came": F.when(known, _without("members", "was")).otherwise(F.slice("members", 1, 0)),
            "went": _without("was", "members"),
            "resubscribed": F.filter("members", _resubscribes),
            "had": _partitions("was", "assigned_partitions"),
            "has": _partitions("members", "assigned_partitions"),
            "claimed": _partitions("was", "owned_partitions"),
            "claims": _partitions("members", "owned_partitions"),
            "read": F.array_distinct(F.flatten(_all("was", "subscribed_topics"))),
            "reads": F.array_distinct(F.flatten(_all("members", "subscribed_topics"))),
        }
    )


def _without(name: str, others: str) -> Column:
    """Members that are not among others, neither they nor a static member in their place."""
    return F.filter(
        name,
        lambda one: (
            ~F.exists(
                others,
                lambda other: (
                    (other["member_id"] == one["member_id"])
                    | is_known(other["group_instance_id"] == one["group_instance_id"])
                ),
            )
        ),
    )


def _resubscribes(one: Column) -> Column:
    return F.exists(
        "was",
        lambda other: (
            (other["member_id"] == one["member_id"])
            & is_known(
                F.sort_array(other["subscribed_topics"]) != F.sort_array(one["subscribed_topics"])
            )
        ),
    )


def _all(members: str, name: str) -> Column:
    return F.array_compact(F.transform(members, lambda one: one[name]))


def _partitions(members: str, name: str) -> Column:
    """The partitions of all members, one by one."""
    topics = F.flatten(_all(members, name))
    each = F.flatten(
        F.transform(
            topics,
            lambda topic: F.transform(
                topic["partitions"],
                lambda index: F.struct(
                    topic["topic"].alias("topic"), index.alias("topic_partition")
                ),
            ),
        )
    )
    return F.coalesce(each, F.array().cast(_PARTITIONS))


def _removals(rows: DataFrame) -> DataFrame:
    """Who is not in the generation any more. Its session began anew when the one before had been
    joined, and a commit prolongs it.
    """
    one = F.col("one")
    began = F.coalesce(F.col("prior.current_state_timestamp"), F.col("prior.timestamp"))
    return rows.withColumn("one", F.explode("went")).select(
        *GROUP,
        "rebalance",
        one["member_id"].alias("member_id"),
        one["client_id"].alias("client_id"),
        one["group_instance_id"].alias("group_instance_id"),
        F.col("joined_by").alias("removed_at"),
        F.col("rebalance").alias("removed_offset"),
        began.alias("seen_at"),
        one["session_timeout_ms"].alias("session_ms"),
        F.lit(False).alias("session_assumed"),
        one["rebalance_timeout_ms"].alias("rebalance_timeout_ms"),
        F.lit(True).alias("commits_prolong"),
        began.alias("waits_since"),
        F.lit(False).alias("waits_exactly"),
        F.lit(False).alias("is_away"),
    )


def _not_converted(rows: DataFrame, members: DataFrame, session: Session) -> DataFrame:
    """Who was in the consumer group that was converted, and is not in the classic one: the last
    member that spoke the consumer protocol, whose end was the reason.
    """
    lives = members.where((F.col("group_type") == "consumer") & F.col("valid_to").isNotNull())
    described = ("member_id", "client_id", "group_instance_id", "rebalance_timeout_ms")
    return (
        rows.where("began_over")
        .select(*GROUP, "rebalance", "was", F.col("prior.timestamp").alias("removed_at"))
        .join(
            lives.select(
                *GROUP,
                *described,
                "session_timeout_ms",
                F.col("valid_to").alias("removed_at"),
                F.col("to_offset").alias("removed_offset"),
            ),
            [*GROUP, "removed_at"],
        )
        .where(F.col("removed_offset") < F.col("rebalance"))
        .withColumn("one", F.array(F.struct(*described)))
        .where(F.size(_without("one", "was")) > 0)
        .select(
            *GROUP,
            "rebalance",
            *described[:3],
            "removed_at",
            "removed_offset",
            F.lit(None).cast("timestamp").alias("seen_at"),
            F.coalesce("session_timeout_ms", session.ms).alias("session_ms"),
            (F.col("session_timeout_ms").isNull() & session.assumed).alias("session_assumed"),
            "rebalance_timeout_ms",
            F.lit(False).alias("commits_prolong"),
            F.lit(None).cast("timestamp").alias("waits_since"),
            F.lit(False).alias("waits_exactly"),
            F.lit(False).alias("is_away"),
        )
    )


def _explained(rows: DataFrame) -> DataFrame:
    """Names the causes."""
    grown, lost, withheld = _grown(), _lost(), _withheld()
    other_protocol = is_known(F.col("prior.protocol") != F.col("protocol"))
    proven = F.array_compact(
        F.array(
            F.when(is_known(F.col("began_over")), F.lit(MIGRATION)),
            F.when(F.size("resubscribed") > 0, F.lit(SUBSCRIPTION_CHANGE)),
            F.when(other_protocol, F.lit(ASSIGNOR_CHANGE)),
            F.when(F.size("came") > 0, F.lit(JOIN)),
            F.when((F.size(grown) > 0) | (F.size(lost) > 0), F.lit(METADATA_CHANGE)),
            F.when(F.size(withheld) > 0, F.lit(FOLLOW_UP)),
        )
    )
    facts = F.array_compact(
        F.array(
            F.when(F.size("came") > 0, F.concat(_names("came"), F.lit(" joined"))),
            F.when(
                F.size("resubscribed") > 0,
                F.concat(_names("resubscribed"), F.lit(" changed the subscription")),
            ),
            F.when(
                other_protocol,
                F.concat(F.col("prior.protocol"), F.lit(" was replaced by "), F.col("protocol")),
            ),
            _count(grown, "partitions that were not there"),
            _count(lost, "partitions that are not there any more"),
            _count(withheld, "partitions that the generation before had left for this one"),
            F.when(is_known(F.col("began_over")), F.lit("a consumer group was converted")),
            F.when(~F.col("known"), F.lit("the log does not have the generation before")),
            F.when(
                F.col("known") & (F.size(proven) == 0) & (F.size("removals") == 0),
                F.lit("members and subscriptions are those of the generation before"),
            ),
        )
    )
    return rows.select(
        *GROUP,
        F.lit("classic").alias("group_type"),
        F.col("generation").alias("epoch"),
        F.col("rebalance").alias("offset"),
        F.lit(None).cast("timestamp").alias("started_at"),
        F.col("prior.timestamp").alias("started_after"),
        F.col("joined_by").alias("started_before"),
        F.col("timestamp").alias("assigned_at"),
        F.col("timestamp").alias("ended_at"),
        F.lit(False).alias("has_successor"),
        F.size("members").alias("members"),
        _who("came").alias("joined"),
        "removals",
        _who("resubscribed").alias("changed"),
        F.lit(False).alias("by_hash_alone"),
        proven.alias("proven"),
        facts.alias("facts"),
    )


def _grown() -> Column:
    """Partitions of topics that were read before, beyond all that any member had or claimed.

    Where a topic had its partitions from 0 to some number, a larger one is new: assignors hand out
    all there are, except what a cooperative one withholds until its owner has given it up.
    """
    seen = F.array_union("had", "claimed")
    return F.filter(
        F.array_except(F.col("has"), seen),
        lambda one: (
            F.array_contains(F.col("read"), one["topic"])
            & ~F.exists(
                seen,
                lambda other: (
                    (other["topic"] == one["topic"])
                    & (other["topic_partition"] > one["topic_partition"])
                ),
            )
        ),
    )


def _lost() -> Column:
    """Partitions of topics that are still read, of which nobody has or claims any: deleted."""
    return F.filter(
        F.when(F.size("members") > 0, F.col("had")).otherwise(F.array().cast(_PARTITIONS)),
        lambda one: (
            F.array_contains(F.col("reads"), one["topic"])
            & ~F.exists(
                F.array_union("has", "claims"), lambda other: other["topic"] == one["topic"]
            )
        ),
    )


def _withheld() -> Column:
    """What members claimed in the generation before, nobody was given there, and somebody is now
    (KIP-429).
    """
    return F.array_intersect(F.array_except(F.col("claimed"), F.col("had")), F.col("has"))


def _who(name: str) -> Column:
    return F.sort_array(
        F.transform(
            name,
            lambda one: F.struct(
                one["member_id"].alias("member_id"),
                one["client_id"].alias("client_id"),
                one["group_instance_id"].alias("group_instance_id"),
            ),
        )
    )


def _names(name: str) -> Column:
    return F.array_join(F.sort_array(F.transform(name, lambda one: one["member_id"])), ", ")


def _count(found: Column, text: str) -> Column:
    return F.when(F.size(found) > 0, F.concat(F.size(found).cast("string"), F.lit(f" {text}")))
