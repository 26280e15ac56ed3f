# SPDX-License-Identifier: Apache-2.0
"""The names of topics that records tell by their ids."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import DECODED, END_OFFSETS, KINDS
from kohort.spark.gold.history import GROUP, MEMBER, TARGET, so_far
from kohort.spark.gold.measure import Frames


def topic_names(frames: Frames) -> DataFrame:
    """topic_id, topic: the ids that the tables tell the name of, each once."""
    named = (
        topic_name_pairs(frames)
        .groupBy("topic_id")
        .agg(F.min("topic").alias("topic"), F.max("topic").alias("max"))
    )
    return named.where(F.col("topic") == F.col("max")).select("topic_id", "topic")


def topic_name_pairs(frames: Frames) -> DataFrame:
    """topic_id, topic: every pair that the tables tell, each once."""
    of_commits = frames[KINDS[1]].select("topic_id", "topic")
    of_ends = frames[END_OFFSETS.name].select("topic_id", "topic")
    pairs = of_commits.unionByName(of_ends).unionByName(sole_topics(frames[DECODED.name]))
    # Of millions of commits: strings as keys are hashed, as values sorted.
    return pairs.where(F.col("topic_id").isNotNull() & F.col("topic").isNotNull()).distinct()


def sole_topics(decoded: DataFrame) -> DataFrame:
    """A member that subscribes to one topic, and whose target has partitions of one topic, tells
    the name of its id. A target is computed with the subscription that stands in the log before it.
    """
    described, target = F.col(KINDS[MEMBER]), F.col(f"{KINDS[TARGET]}.target_partitions")
    names = described["subscribed_topic_names"]
    is_sole = (F.size(names) == 1) & (
        F.coalesce(described["subscribed_topic_regex"], F.lit("")) == ""
    )
    sole = F.when(is_sole, names[0]).otherwise(F.lit(""))
    return (
        decoded.where(F.col("kind").isin(KINDS[MEMBER], KINDS[TARGET]))
        .select(
            *GROUP,
            "member_id",
            "offset",
            F.when(F.col("kind") == KINDS[MEMBER], sole).alias("sole"),
            F.when(F.size(target) == 1, target[0]["topic_id"]).alias("topic_id"),
        )
        .withColumn("topic", F.last("sole", ignorenulls=True).over(so_far("member_id")))
        .where(F.col("topic_id").isNotNull() & (F.col("topic") != ""))
        .select("topic_id", "topic")
    )
