# SPDX-License-Identifier: Apache-2.0
"""Every group as it is after the last record, from the newest record of each key alone.

A broker knows just that once it has loaded the log, and compaction keeps exactly these records. So
nothing here may look at an older one.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import DECODED, KINDS, OTHER, TOMBSTONE
from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.spark.engine.frames import conform
from kohort.spark.gold.completeness import mark
from kohort.spark.gold.history import CLASSIC, CURRENT, EPOCH, GROUP, MEMBER, TARGET_EPOCH, is_known
from kohort.spark.gold.measure import Context, Frames

FIRST_EPOCH = 1  # of a consumer group without a record that says so (KAFKA-20268)

_ENDS = {2: "classic", 3: "consumer", 11: "share", 17: "streams"}
"""Record types whose tombstone ends a group, and the type of the group."""
_MEMBER_KEYS = {10: "share", 19: "streams"}
"""Record types of other groups whose key is a group and a member."""


_NEWEST = {
    "classic": (CLASSIC, ("protocol_type", "generation", "protocol", "leader", "members")),
    "epoch": (EPOCH, ("epoch",)),
    "target": (TARGET_EPOCH, ("assignment_epoch",)),
    "described": (MEMBER, ("server_assignor", "classic_protocols")),
    "current": (CURRENT, ("member_epoch", "state")),
}
"""The newest record of a key, and the fields to take from it: the first three are of a group, the
others of a member.
"""


def group_state(frames: Frames, _context: Context) -> DataFrame:
    """The table `group_state`."""
    parts = [_ordinary(frames), _others(frames), _commits(frames)]
    every = reduce(lambda rows, other: rows.unionByName(other, allowMissingColumns=True), parts)
    values = [name for name in every.columns if name not in (*GROUP, "assignors")]
    groups = every.groupBy(*GROUP).agg(
        *(F.max(name).alias(name) for name in values),
        F.first("assignors", ignorenulls=True).alias("assignors"),
    )
    return conform(GROUP_STATE, mark(_described(groups), frames))


def _newest_records(frames: Frames) -> DataFrame:
    """A row for each group, whose `member_id` is null, and for each member, with the columns of
    `_NEWEST`. `alive` tells a value from a tombstone.
    """
    kinds = {number: KINDS[number] for number, _ in _NEWEST.values()}
    is_value = F.col("kind") != TOMBSTONE
    newest = [
        F.max_by(
            F.struct(
                "offset",
                "timestamp",
                is_value.alias("alive"),
                *(f"{kinds[number]}.{field}" for field in fields),
            ),
            F.when(F.col("type") == number, F.col("offset")),
        ).alias(name)
        for name, (number, fields) in _NEWEST.items()
    ]
    return (
        frames[DECODED.name]
        .where(F.col("kind").isin(TOMBSTONE, *kinds.values()) & F.col("type").isin(*kinds))
        .groupBy(*GROUP, "member_id")
        .agg(*newest)
    )


def _ordinary(frames: Frames) -> DataFrame:
    """Classic and consumer groups: their epochs, and their members by number, kind, epoch and
    assignor.
    """
    classic, epoch, target, described, current = map(F.col, _NEWEST)
    alive = is_known(described["alive"])
    last = {
        "at": F.greatest(*(F.struct(f"{name}.offset", f"{name}.timestamp") for name in _NEWEST)),
        "classic": F.when(classic["alive"], classic["offset"]),
        "classic_end": F.when(~classic["alive"], classic["offset"]),
        "consumer": F.greatest(
            F.when(epoch["alive"], epoch["offset"]),
            F.when(target["alive"], target["offset"]),
            F.when(alive, F.greatest(described["offset"], current["offset"])),
        ),
        "consumer_end": F.when(~epoch["alive"], epoch["offset"]),
        "protocol_type": classic["protocol_type"],
        "generation": classic["generation"],
        "classic_protocol": classic["protocol"],
        "leader": classic["leader"],
        "size": F.size(classic["members"]),
        "group_epoch": epoch["epoch"],
        "target_epoch": target["assignment_epoch"],
    }
    reached = F.when(current["state"] == "stable", current["member_epoch"])
    epoch_of_member = F.when(alive, F.coalesce(reached, F.lit(-1)))
    wish = F.when(alive & (described["server_assignor"] != ""), described["server_assignor"])
    speaks_classic = alive & described["classic_protocols"].isNotNull()
    return (
        _newest_records(frames)
        .groupBy(*GROUP)
        .agg(
            *(F.max(value).alias(name) for name, value in last.items()),
            F.sum(alive.cast("int")).alias("consumer_members"),
            F.sum(speaks_classic.cast("int")).alias("speak_classic"),
            F.min(epoch_of_member).alias("least_epoch"),
            F.max(epoch_of_member).alias("most_epoch"),
            F.collect_list(wish).alias("assignors"),
        )
    )


def _others(frames: Frames) -> DataFrame:
    """Share and streams groups: the bytes of a key name the group, and the member behind it. A key
    whose group is not text is left out.
    """
    kinds = F.create_map(
        *(F.lit(item) for row in {**_ENDS, **_MEMBER_KEYS}.items() for item in row)
    )
    size = F.conv(F.hex(F.substring("key", 3, 2)), 16, 10).cast("int")
    group_id = F.try_validate_utf8(F.expr("cast(substring(key, 5, size) as string)"))
    rows = (
        frames[OTHER]
        .where(F.col("type").isin(*_ENDS, *_MEMBER_KEYS))
        .withColumn("size", size)
        .withColumn("group_id", F.coalesce("group_id", group_id))
        .where(F.col("group_id").isNotNull())
        .withColumns(
            {
                "alive": F.col("value").isNotNull(),
                "kind": kinds[F.col("type")],
                "is_member": F.col("type").isin(*_MEMBER_KEYS),
            }
        )
    )
    last = F.max_by(F.struct("offset", "timestamp", "alive"), "offset").alias("last")
    keys = rows.groupBy(*GROUP, "kind", "is_member", "key").agg(last)
    alive = F.col("last.alive")
    return keys.groupBy(*GROUP, "kind").agg(
        F.max(F.struct("last.offset", "last.timestamp")).alias("at"),
        F.max(F.when(alive, F.col("last.offset"))).alias("other"),
        F.max(F.when(~alive & ~F.col("is_member"), F.col("last.offset"))).alias("other_end"),
        F.sum((alive & F.col("is_member")).cast("int")).alias("other_members"),
    )


def _commits(frames: Frames) -> DataFrame:
    """The last record about an offset: a group whose offsets were deleted exists until it is
    deleted itself.
    """
    return (
        frames[DECODED.name]
        .where(F.col("kind").isin(TOMBSTONE, KINDS[0], KINDS[1]) & F.col("type").isin(0, 1))
        .groupBy(*GROUP)
        .agg(F.max("offset").alias("simple"))
    )


def _described(groups: DataFrame) -> DataFrame:
    ended = F.greatest(*(F.coalesce(name, F.lit(-1)) for name in _END_COLUMNS))
    newest = F.greatest(*(F.coalesce(name, F.lit(-1)) for name in ("classic", "consumer", "other")))
    simple = F.coalesce("simple", F.lit(-1))
    group_type = (
        F.when((newest >= 0) & (newest == F.col("other")), F.col("kind"))
        .when((newest >= 0) & (newest == F.col("consumer")), F.lit("consumer"))
        .when((newest >= 0) | (simple > ended), F.lit("classic"))
        .when(ended == F.col("other_end"), F.col("kind"))
        .when(ended == F.col("consumer_end"), F.lit("consumer"))
        .otherwise(F.lit("classic"))
    )
    typed = groups.withColumns(
        {
            "group_type": group_type,
            "is_alive": (newest >= 0) | (simple > ended),
            "is_simple": newest < 0,
            "group_epoch": F.coalesce("group_epoch", F.lit(FIRST_EPOCH)),
            "target_epoch": F.coalesce("target_epoch", F.lit(FIRST_EPOCH)),
        }
    )
    return typed.select(
        *GROUP,
        "group_type",
        F.when(~F.col("is_alive"), F.lit("Dead")).otherwise(_state()).alias("state"),
        F.when(F.col("is_alive"), _protocol_type()).alias("protocol_type"),
        F.when(F.col("is_alive"), _of_type("classic_protocol", _most_wanted())).alias("protocol"),
        F.when(
            F.col("is_alive") & ~F.col("is_simple"), _of_type("generation", F.col("group_epoch"))
        ).alias("epoch"),
        F.when(F.col("is_alive"), _of_type(None, F.col("target_epoch"))).alias("assignment_epoch"),
        F.when(F.col("is_alive"), _size()).otherwise(F.lit(0)).alias("members"),
        _of_type("size", F.col("speak_classic"), F.lit(0)).alias("classic_members"),
        F.when(F.col("is_alive"), _of_type("leader", F.lit(None))).alias("leader"),
        F.col("at.offset").alias("offset"),
        F.col("at.timestamp").alias("timestamp"),
    )


_END_COLUMNS = ("classic_end", "consumer_end", "other_end")


def _of_type(classic: str | None, consumer: Column, default: Column | None = None) -> Column:
    """A column that classic groups have, or the one that consumer groups have."""
    is_classic = F.col("group_type") == "classic"
    of_classic = F.lit(None) if classic is None else F.col(classic)
    if default is not None:
        of_classic = F.when(F.col("is_alive"), F.coalesce(of_classic, default)).otherwise(default)
        consumer = F.when(F.col("is_alive"), F.coalesce(consumer, default)).otherwise(default)
    return F.when(is_classic, of_classic).when(F.col("group_type") == "consumer", consumer)


def _size() -> Column:
    size = _of_type("size", F.col("consumer_members"), F.lit(0))
    return F.coalesce(size, F.col("other_members"), F.lit(0))


def _state() -> Column:
    reached = (F.col("least_epoch") == F.col("target_epoch")) & (
        F.col("most_epoch") == F.col("target_epoch")
    )
    is_streams = F.col("group_type") == "streams"
    return (
        F.when(_size() == 0, F.lit("Empty"))
        .when(F.col("group_type").isin("classic", "share"), F.lit("Stable"))
        .when(is_streams, F.lit(None))
        .when(F.col("group_epoch") > F.col("target_epoch"), F.lit("Assigning"))
        .when(reached, F.lit("Stable"))
        .otherwise(F.lit("Reconciling"))
    )


def _protocol_type() -> Column:
    return F.when(
        F.col("group_type") == "classic", F.coalesce("protocol_type", F.lit(""))
    ).otherwise(F.col("group_type"))


def _most_wanted() -> Column:
    """The assignor with more votes than any other, or null."""
    wanted = F.coalesce("assignors", F.array().cast("array<string>"))
    votes = F.transform(
        F.array_distinct(wanted),
        lambda name: F.struct(
            F.size(F.filter(wanted, lambda vote: vote == name)).alias("votes"), name.alias("name")
        ),
    )
    ranked = F.sort_array(votes, asc=False)
    first, second = F.get(ranked, F.lit(0)), F.get(ranked, F.lit(1))
    return F.when(
        second.isNull() | (first["votes"] > second["votes"]),
        first["name"],
    )
