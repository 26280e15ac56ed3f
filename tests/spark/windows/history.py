"""What the coordinator wrote about groups with members, in order, one row per record.

A coordinator writes what one request or one timer causes as a whole: records with consecutive
offsets and the same time, and what led to a new epoch stands before the record of that epoch. So a
record belongs to the rebalance that it led to, or else to the last one that had begun.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.gold.measure import Frames
from kohort.spark.schemas import DECODED, KINDS, TOMBSTONE

GROUP = ("partition", "group_id")
CLASSIC, EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX = 2, 3, 4, 5, 6, 7, 8, 16
AWAY = -2
"""The epoch of a static member that has left for a while."""

_FIELDS: dict[int, tuple[str, tuple[str, ...]]] = {
    EPOCH: ("epoch", ("epoch", "metadata_hash")),
    MEMBER: (
        "member",
        (
            "instance_id",
            "client_id",
            "subscribed_topic_names",
            "subscribed_topic_regex",
            "rebalance_timeout_ms",
            "server_assignor",
            "classic_session_timeout_ms",
            "classic_protocols",
        ),
    ),
    TARGET_EPOCH: ("target_epoch", ("assignment_epoch",)),
    CURRENT: (
        "current",
        (
            "member_epoch",
            "previous_member_epoch",
            "state",
            "assigned_partitions",
            "partitions_pending_revocation",
        ),
    ),
    REGEX: ("regex", ("topics",)),
}
"""Record type -> the column that its value is kept in by `consumer_events`, and what of it."""
_RECORDS = (CLASSIC, EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX)


def is_known(condition: Column) -> Column:
    """Whether a condition holds for sure: false where it is unknown."""
    return F.coalesce(condition, F.lit(False))


def in_order(*key: str) -> WindowSpec:
    """The records of a group, or of something within it, in the order of the log."""
    return Window.partitionBy(*GROUP, *key).orderBy("offset")


def before(*key: str) -> WindowSpec:
    """All that was written before a record."""
    return in_order(*key).rowsBetween(Window.unboundedPreceding, -1)


def after(*key: str) -> WindowSpec:
    """All that was written after a record."""
    return in_order(*key).rowsBetween(1, Window.unboundedFollowing)


def so_far(*key: str) -> WindowSpec:
    """All that was written up to a record, and the record itself."""
    return in_order(*key).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def from_here(*key: str) -> WindowSpec:
    """The record itself, and all that was written after it."""
    return in_order(*key).rowsBetween(Window.currentRow, Window.unboundedFollowing)


def spans(
    rows: DataFrame, key: list[str], same: list[str], more: Mapping[str, Column] | None = None
) -> DataFrame:
    """Consecutive records (by `number`) of a group and key that have the same in `same`, as one
    row each: from the first of them, `valid_from` and `from_offset`, to what the last names as
    `next_timestamp` and `next_offset`. `more` are aggregates over the records.
    """
    order = in_order(*key)
    alike = F.struct(*same)
    begins = (F.lag("number").over(order) != F.col("number") - 1) | (
        F.lag(alike).over(order) != alike
    )
    return (
        rows.withColumn("begins", F.coalesce(begins, F.lit(True)).cast("int"))
        .withColumn("span", F.sum("begins").over(so_far(*key)))
        .groupBy(*GROUP, *key, *same, "span")
        .agg(
            F.min("timestamp").alias("valid_from"),
            F.min("offset").alias("from_offset"),
            F.max_by("next_timestamp", "offset").alias("valid_to"),
            F.max_by("next_offset", "offset").alias("to_offset"),
            *(column.alias(name) for name, column in (more or {}).items()),
        )
        .drop("span")
    )


def classic_generations(frames: Frames) -> DataFrame:
    """Records of type 2, `is_value` telling tombstones apart, and those that end a consumer group,
    `ends_consumer`. Each has the one before it as `prior`, the one after it as `next_offset` and
    `next_timestamp`, and a `number`.

    `starts_over` tells that a record was written together with the end of a consumer group, and
    `is_rebalance` that a record names a new generation: not one that makes an empty group,
    replaces a static member, or takes over the epoch of a consumer group that was just converted.
    """
    names = ("generation", "protocol", "leader", "current_state_timestamp", "members")
    kind, is_end = F.col("kind"), F.col("type").isin(CLASSIC, EPOCH)
    said = ("offset", "timestamp", "is_value", "ends_consumer", *names)
    order = in_order()
    rows = (
        frames[DECODED.name]
        .where((kind == KINDS[CLASSIC]) | ((kind == TOMBSTONE) & is_end))
        .select(
            *GROUP,
            "offset",
            "timestamp",
            (kind == KINDS[CLASSIC]).alias("is_value"),
            (F.col("type") == EPOCH).alias("ends_consumer"),
            *(f"{KINDS[CLASSIC]}.{name}" for name in names),
        )
        .withColumns(
            {
                "prior": F.lag(F.struct(*said)).over(order),
                "number": F.row_number().over(order),
                "next_offset": F.lead("offset").over(order),
                "next_timestamp": F.lead("timestamp").over(order),
            }
        )
    )
    prior = F.col("prior")
    follows = (
        prior["ends_consumer"]
        & (prior["timestamp"] == F.col("timestamp"))
        & (prior["offset"] == F.col("offset") - 1)
    )
    converts = follows & (F.size("members") > 0)
    is_new = ~is_known(prior["is_value"] & (prior["generation"] == F.col("generation")))
    return rows.withColumns(
        {
            "starts_over": F.col("is_value") & is_known(follows),
            "is_rebalance": F.col("is_value")
            & (F.col("generation") > 0)
            & is_new
            & ~is_known(converts),
        }
    )


def consumer_events(frames: Frames) -> DataFrame:
    """Records of types 2 to 8 and 16, `is_value` telling tombstones apart: columns partition,
    group_id, member_id, regular_expression, offset, timestamp, type, and the fields of the values
    as structs `epoch`, `member`, `target_epoch`, `current` and `regex`.

    Added are: `begun`, the epoch record that was last written (null where the group has ended
    since), and `rebalance`, the offset of the epoch record that this one belongs to. An epoch
    record that only repeats the generation of a classic group that was just converted begins no
    rebalance, and counts as part of the next; `converted` marks it.
    """
    rows = _consumer_rows(frames)
    marked = _mark_conversions(rows.repartition(*GROUP))
    begins = F.when(
        (F.col("type") == EPOCH) & ~F.col("converted"),
        F.struct(
            "offset", "timestamp", "is_value", F.col("epoch.epoch").alias("epoch"), "position"
        ),
    )
    positioned = marked.withColumn("position", F.row_number().over(in_order()))
    bounded = positioned.withColumns(
        {
            "begun": F.last(begins, ignorenulls=True).over(so_far()),
            "coming": F.first(begins, ignorenulls=True).over(from_here()),
        }
    )
    coming = F.col("coming")
    leads_to = (
        coming["is_value"]
        & (coming["timestamp"] == F.col("timestamp"))
        & (coming["offset"] - F.col("offset") == coming["position"] - F.col("position"))
        & (_is_cause() | (coming["offset"] == F.col("offset")))
    )
    begun = F.when(F.col("begun.is_value"), F.col("begun"))
    return bounded.withColumns(
        {
            "begun": begun,
            "rebalance": F.when(leads_to, coming["offset"]).otherwise(begun["offset"]),
            "leads_to": is_known(leads_to),
        }
    ).drop("coming")


def _is_cause() -> Column:
    """Whether a record is of those that stand before the epoch record that they lead to, and not
    of those that stand behind it.
    """
    of_conversion = (F.col("type") == EPOCH) | F.col("upgrading")
    return (
        ~F.col("is_value")
        | F.col("type").isin(MEMBER, TOPICS, REGEX)
        | of_conversion
        | ((F.col("type") == CURRENT) & (F.col("current.member_epoch") == 0))
    )


def _consumer_rows(frames: Frames) -> DataFrame:
    kind = F.col("kind")
    values = {
        name: F.when(
            kind == KINDS[number], F.struct(*(f"{KINDS[number]}.{field}" for field in fields))
        ).alias(name)
        for number, (name, fields) in _FIELDS.items()
    }
    return (
        frames[DECODED.name]
        .where(kind.isin(TOMBSTONE, *(KINDS[number] for number in _RECORDS)))
        .where(F.col("type").isin(*_RECORDS))
        .select(
            *GROUP,
            "member_id",
            "regular_expression",
            "offset",
            "timestamp",
            F.col("type").cast("int").alias("type"),
            (kind != TOMBSTONE).alias("is_value"),
            *values.values(),
        )
    )


def _mark_conversions(rows: DataFrame) -> DataFrame:
    """`converted`: the epoch record that takes over the generation of a classic group. Before it,
    behind the tombstone of that group, stand its members and nobody else. `upgrading`: records of
    the conversion.
    """
    is_end = (F.col("type") == CLASSIC) & ~F.col("is_value")
    segmented = rows.withColumn("life", F.sum(is_end.cast("int")).over(so_far()))
    of_life = so_far("life")
    is_member = (F.col("type") == MEMBER) & F.col("is_value")
    is_classic = is_member & F.col("member.classic_protocols").isNotNull()
    counted = segmented.withColumns(
        {
            "described": F.sum(is_member.cast("int")).over(of_life),
            "described_classic": F.sum(is_classic.cast("int")).over(of_life),
            "epochs": F.sum((F.col("type") == EPOCH).cast("int")).over(of_life),
            "life_begins": F.first("timestamp").over(of_life),
        }
    )
    only_classic = (F.col("described") > 0) & (F.col("described") == F.col("described_classic"))
    converted = (
        (F.col("type") == EPOCH)
        & F.col("is_value")
        & (F.col("life") > 0)
        & (F.col("epochs") == 1)
        & only_classic
    )
    marked = counted.withColumn("converted", is_known(converted))
    return marked.withColumn(
        "upgrading",
        (F.max(F.col("converted").cast("int")).over(of_life) == 1)
        & (F.col("epochs") == 1)
        & (F.col("timestamp") == F.col("life_begins")),
    ).drop("described", "described_classic", "epochs", "life", "life_begins")


def topic_ids(names: DataFrame) -> DataFrame:
    """topic, topic_id: names of which exactly one id is known."""
    one = names.groupBy("topic").agg(
        F.min("topic_id").alias("topic_id"), F.max("topic_id").alias("max")
    )
    return one.where(F.col("topic_id") == F.col("max")).select("topic", "topic_id")


def micros_between(begin: Column, end: Column) -> Column:
    """Seconds from one time to another, as exact as they are."""
    return (F.unix_micros(end) - F.unix_micros(begin)) / F.lit(1_000_000.0)
