# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: each one in log order, and the latest of each partition.

A commit outside a transaction takes effect where it stands, and nothing about it has to be looked
up. One inside a transaction takes effect at the marker that ends it, if it ends well, and if no
later record has set or removed the offset of the same partition by then: the order of records
decides, not the order of markers. Among the records that take effect, order by offset and order of
effect are therefore the same, and the latest commit of a partition is the one with the largest
offset: an aggregate of fixed width.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import KINDS, MARKER, TOMBSTONE
from kohort.pipeline.schemas.progress import (
    ABORTED,
    COMMITS,
    COMMITTED,
    OFFSETS,
    PENDING,
    REMOVED,
    SUPERSEDED,
)
from kohort.spark.engine.frames import conform
from kohort.spark.gold.completeness import mark
from kohort.spark.gold.measure import Context, Frames

KEY = ["partition", "group_id", "topic", "topic_partition"]
"""What a committed offset is of; the log's partition follows from the group."""

_NONE = -1
EFFECTIVE = "effective"
"""The name under which the frames have the rows of `effective`, where some commits are missing."""

_OF_COMMITS = [KINDS[0], KINDS[1]]
_NO_PRODUCER = -1


def commits(frames: Frames, _context: Context) -> DataFrame:
    """The table `commits`."""
    return conform(COMMITS, mark(resolved_commits(frames), frames))


def resolved_commits(frames: Frames, *, transactions: bool = True) -> DataFrame:
    """The rows of `commits`, with `settled_at`: the offset in the log from which on nothing can
    change them, null while a transaction is open. Only rows in transactions, and their rivals, are
    shuffled; without `transactions` nothing is.
    """
    first, second = (frames[kind] for kind in _OF_COMMITS)
    written = first.unionByName(second, allowMissingColumns=True)
    removed = frames[TOMBSTONE].where(F.col("type").isin(0, 1))
    if not transactions:
        return _plain(written, removed)
    plain = written.where(F.col("producer_id") == _NO_PRODUCER)
    transactional = written.where(F.col("producer_id") != _NO_PRODUCER)
    rivals = plain.select(*KEY, "offset", F.col("offset").alias("sets_at")).unionByName(
        removed.select(*KEY, "offset", F.col("offset").alias("removes_at")),
        allowMissingColumns=True,
    )
    resolved = _resolved(ended(transactional, frames[MARKER]), rivals)
    return _plain(plain, removed).unionByName(resolved, allowMissingColumns=True)


def _plain(written: DataFrame, removed: DataFrame) -> DataFrame:
    at = F.coalesce("timestamp", "commit_timestamp")
    return _at_once(written, COMMITTED, at).unionByName(
        _at_once(removed, REMOVED, F.col("timestamp")), allowMissingColumns=True
    )


def _at_once(rows: DataFrame, state: str, at: Column) -> DataFrame:
    return rows.withColumns(
        {
            "state": F.lit(state),
            "effective_offset": F.col("offset"),
            "effective_at": at,
            "settled_at": F.col("offset"),
        }
    )


def ended(transactional: DataFrame, markers: DataFrame) -> DataFrame:
    """Each commit with the next marker of its producer, as `end`: what was written in transactions,
    and where these end.
    """
    marker = F.struct("offset", "timestamp", "commits").alias("marker")
    backwards = (
        Window.partitionBy("partition", "producer_id")
        .orderBy(F.desc("offset"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        transactional.unionByName(
            markers.select("partition", "producer_id", "offset", marker), allowMissingColumns=True
        )
        .withColumn("end", F.last("marker", ignorenulls=True).over(backwards))
        .where(F.col("marker").isNull())
        .drop("marker")
    )


def _resolved(ended: DataFrame, rivals: DataFrame) -> DataFrame:
    """The outcome of commits in transactions.

    Rivals are looked for among records with the same 64-bit hash of the key, so the others need no
    shuffle. Where two keys share a hash, a few rivals too many come along; the window over the key
    itself keeps them apart.
    """
    mine = ended.withColumn("sets_at", F.when(F.col("end.commits"), F.col("end.offset")))
    hashes = mine.select(_key_hash()).distinct()
    others = rivals.withColumn("key_hash", F.xxhash64(*KEY)).join(
        F.broadcast(hashes), "key_hash", "left_semi"
    )
    later = (
        Window.partitionBy(*KEY)
        .orderBy(F.desc("offset"))
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    ends_at = F.col("end.offset")
    lost = F.least("set_later_at", "removed_later_at") <= ends_at
    state = (
        F.when(F.col("end.commits") & lost, SUPERSEDED)
        .when(F.col("end.commits"), COMMITTED)
        .when(F.col("end").isNotNull(), ABORTED)
        .when(F.col("removed_later_at").isNotNull(), SUPERSEDED)
        .otherwise(PENDING)
    )
    return (
        mine.withColumn("is_mine", F.lit(col=True))
        .unionByName(others.drop("key_hash"), allowMissingColumns=True)
        .withColumn("set_later_at", F.min("sets_at").over(later))
        .withColumn("removed_later_at", F.min("removes_at").over(later))
        .where("is_mine")
        .withColumn("state", state)
        .withColumn("effective_offset", F.when(F.col("state") == COMMITTED, ends_at))
        .withColumn("effective_at", F.when(F.col("state") == COMMITTED, F.col("end.timestamp")))
        .withColumn("settled_at", ends_at)
    )


def _key_hash() -> Column:
    return F.xxhash64(*KEY).alias("key_hash")


def effective(frames: Frames) -> DataFrame:
    """The commits that took effect, with the columns that lag and status need. The id of the topic
    is a random number of 128 bits: 64 of them are enough.
    """
    if EFFECTIVE in frames:
        return frames[EFFECTIVE]
    every = frames["commits"]
    taken = every.where(F.col("state").isin(COMMITTED, REMOVED)).select(
        *KEY,
        "offset",
        "state",
        "effective_at",
        "committed_offset",
        topic_hash().alias("topic_hash"),
    )
    return none_as_removed(taken)


def none_as_removed(rows: DataFrame) -> DataFrame:
    """The same, where a commit of -1 is a removal: so clients say that there is no offset. As one
    it would be a lag of the whole partition.
    """
    offset = offset_or_null(F.col("committed_offset"))
    state = F.when(F.col("committed_offset") == _NONE, REMOVED).otherwise(F.col("state"))
    return rows.withColumns({"state": state, "committed_offset": offset})


def offset_or_null(committed: Column) -> Column:
    """The offset; null for -1, which is none."""
    return F.when(committed != _NONE, committed)


def topic_hash() -> Column:
    """A number for `topic_id`, which is text; null for null."""
    return F.when(F.col("topic_id").isNotNull(), F.xxhash64("topic_id"))


def offsets(frames: Frames, _context: Context) -> DataFrame:
    """The table `offsets`: the winners by an aggregate of numbers, their rows by position."""
    every = frames["commits"]
    state = F.col("state")
    winners = (
        every.where(state.isin(COMMITTED, REMOVED, PENDING))
        .groupBy(*KEY)
        .agg(
            F.max(F.when(state != PENDING, F.col("offset"))).alias("latest"),
            F.max(F.when(state == PENDING, F.col("offset"))).alias("open"),
        )
        .select(
            "partition",
            F.coalesce("latest", "open").alias("offset"),
            F.col("open").isNotNull().alias("pending"),
        )
    )
    return offsets_of_newest(every.join(winners, ["partition", "offset"]))


def offsets_of_newest(winners: DataFrame) -> DataFrame:
    """The table `offsets` out of the newest row of each partition, with `pending`."""
    there = F.col("state") == COMMITTED
    return conform(
        OFFSETS,
        winners.where(there | F.col("pending"))
        .withColumns(
            {
                name: F.when(there, F.col(name))
                for name in ("committed_offset", "leader_epoch", "metadata", "topic_id")
            }
        )
        .withColumn("committed_at", F.col("effective_at")),
    )
