"""Rebalances of consumer groups: what was written together with each new epoch, and how long the
members took to get there.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.gold.history import (
    AWAY,
    CLASSIC,
    CURRENT,
    EPOCH,
    GROUP,
    MEMBER,
    REGEX,
    TARGET_EPOCH,
    TOPICS,
    after,
    before,
    consumer_events,
    so_far,
)
from kohort.spark.gold.measure import Frames
from kohort.spark.gold.removals import SESSION_TIMEOUT_MS, judged, with_last_commits
from kohort.spark.schemas.membership import (
    ASSIGNOR_CHANGE,
    JOIN,
    METADATA_CHANGE,
    MIGRATION,
    SUBSCRIPTION_CHANGE,
)


def epochs(frames: Frames) -> DataFrame:
    """A row per epoch of a consumer group, with `proven` triggers and `removals`, each of which has
    the causes that are possible for it.
    """
    events = _with_progress(_with_changes(consumer_events(frames)))
    rows = _per_epoch(events)
    gone = judged(with_last_commits(_removals(events), frames))
    removals = gone.groupBy(*GROUP, "rebalance").agg(
        F.sort_array(
            F.collect_list(
                F.struct("member_id", "client_id", "group_instance_id", "possible", "evidence")
            )
        ).alias("removals")
    )
    return _explained(rows.join(removals, [*GROUP, "rebalance"], "left"))


def _no(condition: Column) -> Column:
    """A condition that is false where it is unknown."""
    return F.coalesce(condition, F.lit(False))


def _with_changes(events: DataFrame) -> DataFrame:
    """What each record of a member or an expression changes.

    A member has come if it was not there and its epoch was 0: where the record before is hidden, a
    change would look the same otherwise.
    """
    is_member = F.col("type") == MEMBER
    told = F.when(is_member, F.struct("is_value", "member"))
    has = F.when(F.col("type") == CURRENT, F.struct("is_value", "current", "timestamp"))
    expression = F.when(F.col("type") == REGEX, F.struct("is_value", "regex"))
    alive = F.col("is_value") & F.coalesce(F.col("current.member_epoch") != AWAY, F.lit(True))
    linked = events.withColumns(
        {
            "was": F.last(told, ignorenulls=True).over(before("member_id")),
            "had": F.last(has, ignorenulls=True).over(before("member_id")),
            "gets": F.first(has, ignorenulls=True).over(after("member_id")),
            "had_value": F.last(F.when(F.col("is_value"), has), ignorenulls=True).over(
                before("member_id")
            ),
            "seen_at": F.max(
                F.when(alive & F.col("type").isin(MEMBER, CURRENT), F.col("timestamp"))
            ).over(before("member_id")),
            "was_resolved": F.last(expression, ignorenulls=True).over(before("regular_expression")),
        }
    )
    known = _no(F.col("was.is_value"))
    names = F.sort_array("was.member.subscribed_topic_names")
    subscription = (F.sort_array("member.subscribed_topic_names") != names) | ~F.col(
        "member.subscribed_topic_regex"
    ).eqNullSafe(F.col("was.member.subscribed_topic_regex"))
    wish = ~F.col("member.server_assignor").eqNullSafe(F.col("was.member.server_assignor"))
    described = is_member & F.col("is_value")
    return linked.withColumns(
        {
            "known": known,
            "comes": _no(
                described
                & ~known
                & F.col("gets.is_value")
                & (F.col("gets.current.previous_member_epoch") == 0)
            ),
            "goes": is_member & ~F.col("is_value") & known,
            "resubscribes": _no(described & known & subscription),
            "revotes": _no(described & known & wish),
        }
    )


def _with_progress(events: DataFrame) -> DataFrame:
    """`size`, the members after each record, and `arrived`, those of them that have reached the
    epoch of the group with nothing left to do. Also what is known of the expression's subscriber.
    """
    is_member = F.col("type") == MEMBER
    came = F.when(is_member & F.col("is_value") & ~F.col("known"), 1)
    step = came.when(F.col("goes"), -1).otherwise(0)
    epoch = F.col("begun.epoch")
    there = _reached(F.col("is_value"), F.col("current"), epoch).cast("int")
    was_there = _reached(F.col("had.is_value"), F.col("had.current"), epoch).cast("int")
    moved = F.when(F.col("type") == CURRENT, there - was_there).otherwise(0)
    subscriber = F.when(
        is_member & F.col("is_value") & (F.col("member.subscribed_topic_regex") != ""),
        F.struct(_who(), F.col("member.subscribed_topic_regex").alias("regex"), "comes"),
    )
    number = F.when(F.col("type") == EPOCH, F.struct("is_value", "epoch"))
    life = F.when(
        (F.col("type") == CLASSIC) | ((F.col("type") == EPOCH) & ~F.col("is_value")),
        F.struct("type", "is_value"),
    )
    next_begin = F.when((F.col("type") == EPOCH) & ~F.col("converted"), F.col("offset"))
    return events.withColumn("begun_at", F.col("begun.offset")).withColumns(
        {
            "size": F.sum(step).over(so_far()),
            "arrived": F.sum(moved).over(so_far("begun_at")),
            "subscriber": F.last(subscriber, ignorenulls=True).over(before()),
            "epoch_before": F.last(number, ignorenulls=True).over(before()),
            "life_before": F.last(life, ignorenulls=True).over(before()),
            "ends_at": F.first(next_begin, ignorenulls=True).over(after()),
        }
    )


def _reached(is_value: Column, current: Column, epoch: Column) -> Column:
    return _no(is_value & (current["state"] == "stable") & (current["member_epoch"] == epoch))


def _who(member: str = "member") -> Column:
    return F.struct(
        F.col("member_id").alias("member_id"),
        F.col(f"{member}.client_id").alias("client_id"),
        F.col(f"{member}.instance_id").alias("group_instance_id"),
    ).alias("who")


def _removals(events: DataFrame) -> DataFrame:
    """Who was removed together with a new epoch, and what is known of its last hours."""
    told = F.col("was.member")
    is_classic = told["classic_protocols"].isNotNull()
    session_ms = F.coalesce(told["classic_session_timeout_ms"], F.lit(SESSION_TIMEOUT_MS))
    gives_up = _no(F.col("had_value.current.state") == "unrevoked_partitions")
    return events.where(F.col("goes") & F.col("leads_to")).select(
        *GROUP,
        "rebalance",
        "member_id",
        told["client_id"].alias("client_id"),
        told["instance_id"].alias("group_instance_id"),
        F.col("timestamp").alias("removed_at"),
        F.col("offset").alias("removed_offset"),
        "seen_at",
        session_ms.alias("session_ms"),
        (~is_classic).alias("session_assumed"),
        told["rebalance_timeout_ms"].alias("rebalance_timeout_ms"),
        F.lit(False).alias("commits_prolong"),
        F.when(is_classic, F.col("seen_at"))
        .when(gives_up, F.col("had_value.timestamp"))
        .alias("waits_since"),
        (gives_up & ~is_classic).alias("waits_exactly"),
        _no(F.col("had_value.current.member_epoch") == AWAY).alias("is_away"),
    )


def _per_epoch(events: DataFrame) -> DataFrame:
    """What led to each epoch, and what came of it."""
    leads = F.col("leads_to")
    is_number = (F.col("type") == EPOCH) & ~F.col("converted") & F.col("is_value")
    regex = (F.col("type") == REGEX) & F.col("is_value") & leads
    new_regex = regex & ~_no(F.col("was_resolved.is_value"))
    its_subscriber = F.when(
        F.col("subscriber.regex") == F.col("regular_expression"), F.col("subscriber")
    )
    matched = (
        regex
        & _no(F.col("was_resolved.is_value"))
        & (F.sort_array("regex.topics") != F.sort_array("was_resolved.regex.topics"))
    )
    done = (F.col("type") == CURRENT) & F.col("is_value") & (F.col("arrived") == F.col("size"))
    causes = events.where(F.col("rebalance").isNotNull()).groupBy(*GROUP, "rebalance")
    number = F.first(
        F.when(
            is_number,
            F.struct(
                "timestamp",
                F.col("epoch.epoch").alias("epoch"),
                F.col("epoch.metadata_hash").alias("hash"),
                "epoch_before",
                "size",
                "ends_at",
            ),
        ),
        ignorenulls=True,
    )
    led = causes.agg(
        number.alias("number"),
        _list(F.when(leads & F.col("comes"), _who())).alias("came"),
        _list(F.when(leads & F.col("resubscribes"), _who())).alias("resubscribed"),
        _list(F.when(leads & F.col("revotes"), _who())).alias("revoted"),
        F.max(leads & F.col("upgrading")).alias("upgrades"),
        F.max(
            leads
            & (F.col("type") == CLASSIC)
            & ~F.col("is_value")
            & _no((F.col("life_before.type") == CLASSIC) & F.col("life_before.is_value"))
        ).alias("succeeds_classic"),
        F.sort_array(
            F.collect_list(
                F.when(
                    new_regex,
                    F.struct(
                        "regular_expression",
                        F.size("regex.topics").alias("topics"),
                        its_subscriber["who"].alias("who"),
                        its_subscriber["comes"].alias("comes"),
                    ),
                )
            )
        ).alias("resolved"),
        F.max(_no(matched)).alias("matches_others"),
        F.max(leads & (F.col("type") == TOPICS) & F.col("is_value")).alias("other_topics"),
    )
    reached = (
        events.where(F.col("begun_at").isNotNull())
        .groupBy(*GROUP, F.col("begun_at").alias("rebalance"))
        .agg(
            F.min(
                F.when(
                    (F.col("type") == TARGET_EPOCH)
                    & F.col("is_value")
                    & (F.col("target_epoch.assignment_epoch") == F.col("begun.epoch")),
                    F.col("timestamp"),
                )
            ).alias("assigned_at"),
            F.min(F.when(done, F.struct("offset", "timestamp"))).alias("done"),
        )
    )
    return led.join(reached, [*GROUP, "rebalance"])


def _list(who: Column) -> Column:
    return F.sort_array(F.collect_set(who))


def _explained(rows: DataFrame) -> DataFrame:
    """Names the causes. Nothing but an epoch, and topics that are not what they were, is a change
    of topics; a wish for an assignor that stands alone must be why the epoch was raised.
    """
    empty = F.array().cast(
        "array<struct<member_id string, client_id string, group_instance_id string, "
        "possible array<string>, evidence string>>"
    )
    rows = rows.withColumn("removals", F.coalesce("removals", empty))
    real = rows.withColumns(
        {
            "joined": F.filter("came", lambda one: ~_takes_over(one, "removals")),
            "left": F.filter("removals", lambda one: ~_takes_over(one, "came")),
        }
    )
    number = F.col("number")
    brought = F.filter("resolved", lambda one: _no(one["comes"]))
    rewritten = F.filter("resolved", lambda one: ~_no(one["comes"]))
    named = (
        F.col("upgrades")
        | (F.size("joined") > 0)
        | (F.size("left") > 0)
        | (F.size("resubscribed") > 0)
        | (F.size("resolved") > 0)
        | F.col("matches_others")
    )
    known_before = _no(number["epoch_before"]["is_value"])
    same_hash = known_before & _no(
        number["epoch_before"]["epoch"]["metadata_hash"] == number["hash"]
    )
    other_hash = known_before & _no(
        number["epoch_before"]["epoch"]["metadata_hash"] != number["hash"]
    )
    revote = ~named & (F.size("revoted") > 0) & same_hash & ~F.col("other_topics")
    topics = F.col("matches_others") | (~named & (other_hash | F.col("other_topics")))
    proven = F.array_compact(
        F.array(
            F.when(F.col("upgrades") | F.col("succeeds_classic"), F.lit(MIGRATION)),
            F.when(
                (F.size("resubscribed") > 0) | (F.size(rewritten) > 0), F.lit(SUBSCRIPTION_CHANGE)
            ),
            F.when(revote, F.lit(ASSIGNOR_CHANGE)),
            F.when((F.size("joined") > 0) | (F.size(brought) > 0), F.lit(JOIN)),
            F.when(topics, F.lit(METADATA_CHANGE)),
        )
    )
    is_done = F.when(number["size"] == 0, number["timestamp"]).otherwise(F.col("done.timestamp"))
    return real.select(
        *GROUP,
        F.lit("consumer").alias("group_type"),
        number["epoch"].alias("epoch"),
        F.col("rebalance").alias("offset"),
        number["timestamp"].alias("started_at"),
        number["timestamp"].alias("started_after"),
        number["timestamp"].alias("started_before"),
        "assigned_at",
        is_done.alias("ended_at"),
        number["ends_at"].isNotNull().alias("has_successor"),
        number["size"].alias("members"),
        F.array_distinct(
            F.concat("joined", F.array_compact(F.transform(brought, lambda one: one["who"])))
        ).alias("joined"),
        _several_left("left").alias("removals"),
        F.array_distinct(
            F.concat(
                "resubscribed",
                F.when(revote, F.col("revoted")).otherwise(F.slice("revoted", 1, 0)),
                F.array_compact(F.transform(rewritten, lambda one: one["who"])),
            )
        ).alias("changed"),
        (topics & ~F.col("matches_others") & ~F.col("other_topics")).alias("by_hash_alone"),
        proven.alias("proven"),
        F.array_compact(
            F.array(
                F.when(F.size("joined") > 0, _ids("joined", " joined")),
                F.when(
                    F.size("resubscribed") > 0, _ids("resubscribed", " changed its subscription")
                ),
                F.when(F.size("revoted") > 0, _ids("revoted", " asks for another assignor")),
                F.when(
                    F.size("resolved") > 0,
                    F.array_join(
                        F.transform(
                            "resolved",
                            lambda one: F.concat(
                                one["regular_expression"],
                                F.lit(" was resolved to "),
                                one["topics"].cast("string"),
                                F.lit(" topics for the first time"),
                            ),
                        ),
                        "; ",
                    ),
                ),
                F.when(F.col("matches_others"), F.lit("a regular expression matches other topics")),
                F.when(F.col("upgrades"), F.lit("a classic group was converted")),
                F.when(
                    F.col("succeeds_classic") & ~F.col("upgrades"),
                    F.lit("an empty classic group was converted"),
                ),
                F.when(~named & other_hash, F.lit("only the metadata hash is another")),
                F.when(
                    ~named & same_hash & ~revote,
                    F.lit("nothing but the epoch was written, the metadata hash is the same"),
                ),
            )
        ).alias("facts"),
    )


def _takes_over(one: Column, others: str) -> Column:
    """Whether one of the others is the same static member under another id."""
    return F.exists(
        others, lambda other: _no(other["group_instance_id"] == one["group_instance_id"])
    )


def _several_left(name: str) -> Column:
    """One epoch for several members that are gone: only a request can remove them at once."""
    alone = F.size(name) < 2
    return F.transform(
        name,
        lambda one: F.struct(
            one["member_id"].alias("member_id"),
            one["client_id"].alias("client_id"),
            one["group_instance_id"].alias("group_instance_id"),
            F.when(alone, one["possible"]).otherwise(F.array(F.lit("leave"))).alias("possible"),
            one["evidence"].alias("evidence"),
        ),
    )


def _ids(name: str, text: str) -> Column:
    ids = F.array_join(F.transform(name, lambda one: one["member_id"]), ", ")
    return F.concat(ids, F.lit(text))
