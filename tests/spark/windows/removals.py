"""Why a member is gone. The log has the same tombstones, or the same absence, for a member that
left, was removed by an administrator, or did not answer in time; what rules one of these out is how
lately it was alive.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.windows.history import GROUP, is_known, micros_between

from kohort.history.rows import LEAVE, REBALANCE_TIMEOUT, SESSION_TIMEOUT
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.schemas import DECODED, KINDS

SESSION_TIMEOUT_MS = 45_000
"""Assumed for members that speak the consumer protocol where nobody says it: the least that a
broker allows by default (`group.consumer.min.session.timeout.ms`). A cluster may allow less, so
that it proves nothing: it only tells what is likelier."""
TOLERANCE_S = 1.0
"""By how much two records may be closer in time than the coordinator's two decisions were: records
take the time at which their batch was begun."""
GRACE_S = 5.0
"""How late a timer may fire and still be what removed a member."""
_BUCKET_S = 60
_REMOVALS = (
    "array<struct<member_id string, client_id string, group_instance_id string, "
    "possible array<string>, evidence string>>"
)
_LONGEST_MS = 1_800_000  # how far back commits are looked for, whatever the session timeout


class Session(NamedTuple):
    """The session of a member whose records do not tell it."""

    ms: Column
    assumed: Column
    """Whether that is only what is usual."""

    @classmethod
    def of(cls, context: Context) -> "Session":
        """As the context knows it."""
        known = context.session_timeout_ms
        return cls(F.lit(SESSION_TIMEOUT_MS if known is None else known), F.lit(known is None))


def with_removals(rows: DataFrame, removed: DataFrame, frames: Frames) -> DataFrame:
    """Rows of rebalances with `removals`: who was removed by each, and why that may have been."""
    judged = _judged(_with_last_commits(removed, frames))
    what = ("member_id", "client_id", "group_instance_id", "possible", "evidence")
    removals = judged.groupBy(*GROUP, "rebalance").agg(
        F.sort_array(F.collect_list(F.struct(*what))).alias("removals")
    )
    nobody = F.array().cast(_REMOVALS)
    return rows.join(removals, [*GROUP, "rebalance"], "left").withColumn(
        "removals", F.coalesce("removals", nobody)
    )


def _with_last_commits(removals: DataFrame, frames: Frames) -> DataFrame:
    """Removals with `committed_at`: when a partition that the member owned was last committed, as
    far back as its session reaches; null where it was not.

    Removals have partition, group_id, rebalance, member_id, removed_at, removed_offset and
    session_ms. Commits are many: they are matched by minutes, so that each meets few removals.
    """
    key = [*GROUP, "rebalance", "member_id"]
    reach = F.least(F.col("session_ms"), F.lit(_LONGEST_MS)) / 1000
    owned = frames["assignments"].select(
        *GROUP, "member_id", "topic", "topic_partition", "from_offset", "to_offset", "valid_to"
    )
    seconds = F.col("removed_at").cast("double")
    sought = (
        removals.select(*key, "removed_at", "removed_offset", "session_ms")
        .join(owned.where(F.col("topic").isNotNull()), [*GROUP, "member_id"])
        .where(F.col("to_offset") <= F.col("removed_offset"))
        .where(F.col("valid_to").cast("double") >= seconds - reach)
        .withColumn(
            "bucket",
            F.explode(
                F.sequence(
                    F.floor((seconds - reach) / _BUCKET_S),
                    F.floor(F.least(F.col("valid_to").cast("double"), seconds) / _BUCKET_S),
                )
            ),
        )
    )
    commits = (
        frames[DECODED.name]
        .where(F.col("kind").isin(KINDS[0], KINDS[1]) & (F.col("producer_id") == -1))
        .select(
            *GROUP,
            "topic",
            "topic_partition",
            F.col("offset").alias("commit_offset"),
            F.col("timestamp").alias("committed_at"),
            F.floor(F.col("timestamp").cast("double") / _BUCKET_S).alias("bucket"),
        )
    )
    last = (
        commits.join(sought, [*GROUP, "topic", "topic_partition", "bucket"])
        .where(F.col("commit_offset") >= F.col("from_offset"))
        .where(F.col("commit_offset") < F.col("to_offset"))
        .groupBy(*key)
        .agg(F.max("committed_at").alias("committed_at"))
    )
    return removals.join(last, key, "left")


def _judged(removals: DataFrame) -> DataFrame:
    """Removals with `possible`, the causes that nothing rules out, likelier ones first, and
    `evidence`. They have, beside the columns above,

    - seen_at: when the session was last known to begin anew; null for unknown,
    - session_assumed: whether `session_ms` is only what is usual,
    - commits_prolong: whether a commit begins the session anew too,
    - waits_since: since when its rebalance timeout may have been running; null: it was not,
    - waits_exactly: whether it is known to have been running from then on,
    - is_away: a static member that has left for a while, whose session is all that keeps it.
    """
    silent = micros_between(F.col("seen_at"), F.col("removed_at"))
    since_commit = micros_between(F.col("committed_at"), F.col("removed_at"))
    session = F.col("session_ms") / 1000
    of_commits = F.when(F.col("commits_prolong"), session).otherwise(session * 2 / 3)
    session_over = (
        (F.coalesce(silent, session) >= session - TOLERANCE_S)
        & (F.coalesce(since_commit, of_commits) >= of_commits - TOLERANCE_S)
    ) | F.col("is_away")
    waited = micros_between(F.col("waits_since"), F.col("removed_at"))
    timeout = F.col("rebalance_timeout_ms") / 1000
    overdue = is_known(waited >= timeout - TOLERANCE_S) & (timeout >= 0)
    just_due = overdue & F.col("waits_exactly") & (waited <= timeout + GRACE_S)
    possible = F.when(just_due, F.array(F.lit(REBALANCE_TIMEOUT))).otherwise(
        F.array_compact(
            F.array(
                F.when(session_over, F.lit(SESSION_TIMEOUT)),
                F.when(overdue, F.lit(REBALANCE_TIMEOUT)),
                F.lit(LEAVE),
                F.when(F.col("session_assumed") & ~session_over, F.lit(SESSION_TIMEOUT)),
            )
        )
    )
    return removals.withColumns(
        {"possible": possible, "evidence": _evidence(silent, since_commit, waited)}
    )


def _evidence(silent: Column, since_commit: Column, waited: Column) -> Column:
    facts = [
        _seconds("last sign of life %.1f s before", silent),
        _seconds("last commit of its partitions %.1f s before", since_commit),
        F.concat(
            F.format_string("session timeout %.1f s", F.col("session_ms") / 1000),
            F.when(F.col("session_assumed"), F.lit(" assumed")).otherwise(F.lit("")),
        ),
        _seconds("had partitions to give up for %.1f s", F.when(F.col("waits_exactly"), waited)),
        F.when(
            F.col("waits_since").isNotNull(),
            F.format_string("rebalance timeout %.1f s", F.col("rebalance_timeout_ms") / 1000),
        ),
        F.when(F.col("is_away"), F.lit("static, had left for a while")),
    ]
    return F.concat(F.col("member_id"), F.lit(" is gone: "), F.concat_ws(", ", *facts))


def _seconds(text: str, seconds: Column) -> Column:
    return F.when(seconds.isNotNull(), F.format_string(text, seconds))
