"""Rebalances of consumer groups: what was written together with each new epoch, and how long the
members took to get there.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.windows.history import (
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
    in_order,
    is_known,
    so_far,
)
from tests.spark.windows.removals import Session, with_removals

from kohort.history.rows import (
    ASSIGNOR_CHANGE,
    JOIN,
    METADATA_CHANGE,
    MIGRATION,
    SUBSCRIPTION_CHANGE,
)
from kohort.spark.gold.measure import Frames, kept


def epochs(frames: Frames, session: Session) -> DataFrame:
    """A row per epoch of a consumer group, with `proven` triggers and `removals`, each of which has
    the causes that are possible for it.
    """
    events = kept(_with_progress(_with_changes(consumer_events(frames))))
    rows = _per_epoch(events)
    return _explained(with_removals(rows, _removals(events, session), frames))


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
    known = is_known(F.col("was.is_value"))
    names = F.sort_array("was.member.subscribed_topic_names")
    subscription = (F.sort_array("member.subscribed_topic_names") != names) | ~F.col(
        "member.subscribed_topic_regex"
    ).eqNullSafe(F.col("was.member.subscribed_topic_regex"))
    wish = ~F.col("member.server_assignor").eqNullSafe(F.col("was.member.server_assignor"))
    described = is_member & F.col("is_value")
    return linked.withColumns(
        {
            "known": known,
            "comes": is_known(
                described
                & ~known
                & F.col("gets.is_value")
                & (F.col("gets.current.previous_member_epoch") == 0)
            ),
            "goes": is_member & ~F.col("is_value") & known,
            "resubscribes": is_known(described & known & subscription),
            "revotes": is_known(described & known & wish),
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
    counted = events.withColumn("begun_at", F.col("begun.offset")).withColumns(
        {
            "size": F.sum(step).over(so_far()),
            "arrived": F.sum(moved).over(so_far("begun_at")),
            "subscriber": F.last(subscriber, ignorenulls=True).over(before()),
            "epoch_before": F.last(number, ignorenulls=True).over(before()),
            "life_before": F.last(life, ignorenulls=True).over(before()),
            "ends_at": F.first(next_begin, ignorenulls=True).over(after()),
        }
    )
    return _with_ends(counted)


def _with_ends(events: DataFrame) -> DataFrame:
    """When the target of the epoch that has begun was there, and when all members had reached it;
    known at each of its records.
    """
    is_target = (F.col("type") == TARGET_EPOCH) & (
        F.col("target_epoch.assignment_epoch") == F.col("begun.epoch")
    )
    is_done = (F.col("type") == CURRENT) & F.col("is_value") & (F.col("arrived") == F.col("size"))
    whole = in_order("begun_at").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return events.withColumns(
        {
            "assigned_at": F.min(F.when(is_target, F.col("timestamp"))).over(whole),
            "done": F.first(F.when(is_done, F.col("timestamp")), ignorenulls=True).over(whole),
        }
    )


def _reached(is_value: Column, current: Column, epoch: Column) -> Column:
    return is_known(is_value & (current["state"] == "stable") & (current["member_epoch"] == epoch))


def _who(member: str = "member") -> Column:
    return F.struct(
        F.col("member_id").alias("member_id"),
        F.col(f"{member}.client_id").alias("client_id"),
        F.col(f"{member}.instance_id").alias("group_instance_id"),
    ).alias("who")


def _removals(events: DataFrame, session: Session) -> DataFrame:
    """Who was removed together with a new epoch, and what is known of its last hours."""
    told = F.col("was.member")
    is_classic = told["classic_protocols"].isNotNull()
    session_ms = F.coalesce(told["classic_session_timeout_ms"], session.ms)
    gives_up = is_known(F.col("had_value.current.state") == "unrevoked_partitions")
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
        (~is_classic & session.assumed).alias("session_assumed"),
        told["rebalance_timeout_ms"].alias("rebalance_timeout_ms"),
        F.lit(False).alias("commits_prolong"),
        F.when(is_classic, F.col("seen_at"))
        .when(gives_up, F.col("had_value.timestamp"))
        .alias("waits_since"),
        (gives_up & ~is_classic).alias("waits_exactly"),
        is_known(F.col("had_value.current.member_epoch") == AWAY).alias("is_away"),
    )


def _per_epoch(events: DataFrame) -> DataFrame:
    """What led to each epoch, and what came of it."""
    leads = F.col("leads_to")
    after_classic = is_known(F.col("life_before.is_value") & (F.col("life_before.type") == CLASSIC))
    ends_classic = (F.col("type") == CLASSIC) & ~F.col("is_value")
    return (
        events.where(F.col("rebalance").isNotNull())
        .groupBy(*GROUP, "rebalance")
        .agg(
            F.first(_number(), ignorenulls=True).alias("number"),
            _list(F.when(leads & F.col("comes"), _who())).alias("came"),
            _list(F.when(leads & F.col("resubscribes"), _who())).alias("resubscribed"),
            _list(F.when(leads & F.col("revotes"), _who())).alias("revoted"),
            F.max(leads & F.col("upgrading")).alias("upgrades"),
            F.max(leads & ends_classic & after_classic).alias("succeeds_classic"),
            F.sort_array(F.collect_list(_first_resolution())).alias("resolved"),
            F.max(_matches_others()).alias("matches_others"),
            F.max(leads & (F.col("type") == TOPICS) & F.col("is_value")).alias("other_topics"),
        )
        .where(F.col("number").isNotNull())
    )


def _number() -> Column:
    """Of the record that raises the epoch: what it says, and what is known from there on."""
    return F.when(
        (F.col("type") == EPOCH) & ~F.col("converted") & F.col("is_value"),
        F.struct(
            "timestamp",
            F.col("epoch.epoch").alias("epoch"),
            F.col("epoch.metadata_hash").alias("hash"),
            "epoch_before",
            "size",
            "ends_at",
            "assigned_at",
            "done",
        ),
    )


def _first_resolution() -> Column:
    """An expression that had no topics before, and the member that brought it, if that is the last
    one that spoke of an expression.
    """
    is_first = (
        (F.col("type") == REGEX)
        & F.col("is_value")
        & F.col("leads_to")
        & ~is_known(F.col("was_resolved.is_value"))
    )
    subscriber = F.when(
        F.col("subscriber.regex") == F.col("regular_expression"), F.col("subscriber")
    )
    return F.when(
        is_first,
        F.struct(
            "regular_expression",
            F.size("regex.topics").alias("topics"),
            subscriber["who"].alias("who"),
            subscriber["comes"].alias("comes"),
        ),
    )


def _matches_others() -> Column:
    """Whether an expression that had topics has others now."""
    return is_known(
        (F.col("type") == REGEX)
        & F.col("is_value")
        & F.col("leads_to")
        & F.col("was_resolved.is_value")
        & (F.sort_array("regex.topics") != F.sort_array("was_resolved.regex.topics"))
    )


def _list(who: Column) -> Column:
    return F.sort_array(F.collect_set(who))


def _explained(rows: DataFrame) -> DataFrame:
    """The rows with their causes and the facts behind them."""
    real = rows.withColumns(
        {
            "joined": F.filter("came", lambda one: ~_takes_over(one, "removals")),
            "left": F.filter("removals", lambda one: ~_takes_over(one, "came")),
            "brought": F.filter("resolved", lambda one: is_known(one["comes"])),
            "rewritten": F.filter("resolved", lambda one: ~is_known(one["comes"])),
        }
    )
    named = (
        F.col("upgrades")
        | (F.size("joined") > 0)
        | (F.size("left") > 0)
        | (F.size("resubscribed") > 0)
        | (F.size("resolved") > 0)
        | F.col("matches_others")
    )
    hash_before = F.col("number.epoch_before.epoch.metadata_hash")
    known_before = is_known(F.col("number.epoch_before.is_value"))
    judged = real.withColumns(
        {
            "named": named,
            "same_hash": known_before & is_known(hash_before == F.col("number.hash")),
            "other_hash": known_before & is_known(hash_before != F.col("number.hash")),
        }
    )
    alone = ~F.col("named")
    return _as_rebalances(
        judged.withColumn(
            "by_hash_alone", alone & F.col("other_hash") & ~F.col("other_topics")
        ).withColumn(
            "by_vote",
            alone & (F.size("revoted") > 0) & F.col("same_hash") & ~F.col("other_topics"),
        )
    )


def _as_rebalances(rows: DataFrame) -> DataFrame:
    number = F.col("number")
    ended = F.when(number["size"] == 0, number["timestamp"]).otherwise(number["done"])
    voters = F.when(F.col("by_vote"), F.col("revoted")).otherwise(F.slice("revoted", 1, 0))
    return rows.select(
        *GROUP,
        F.lit("consumer").alias("group_type"),
        number["epoch"].alias("epoch"),
        F.col("rebalance").alias("offset"),
        number["timestamp"].alias("started_at"),
        number["timestamp"].alias("started_after"),
        number["timestamp"].alias("started_before"),
        number["assigned_at"].alias("assigned_at"),
        ended.alias("ended_at"),
        number["ends_at"].isNotNull().alias("has_successor"),
        number["size"].alias("members"),
        F.array_distinct(F.concat("joined", _subscribers("brought"))).alias("joined"),
        _several_left("left").alias("removals"),
        F.array_distinct(F.concat("resubscribed", voters, _subscribers("rewritten"))).alias(
            "changed"
        ),
        "by_hash_alone",
        _proven().alias("proven"),
        _facts().alias("facts"),
    )


def _subscribers(name: str) -> Column:
    return F.array_compact(F.transform(name, lambda one: one["who"]))


def _proven() -> Column:
    """Nothing but an epoch, and topics that are not what they were, is a change of topics. A wish
    for an assignor that stands alone must be why the epoch was raised.
    """
    return F.array_compact(
        F.array(
            F.when(F.col("upgrades") | F.col("succeeds_classic"), F.lit(MIGRATION)),
            F.when(
                (F.size("resubscribed") > 0) | (F.size("rewritten") > 0),
                F.lit(SUBSCRIPTION_CHANGE),
            ),
            F.when(F.col("by_vote"), F.lit(ASSIGNOR_CHANGE)),
            F.when((F.size("joined") > 0) | (F.size("brought") > 0), F.lit(JOIN)),
            F.when(
                F.col("matches_others")
                | F.col("by_hash_alone")
                | (~F.col("named") & F.col("other_topics")),
                F.lit(METADATA_CHANGE),
            ),
        )
    )


def _facts() -> Column:
    resolutions = F.transform(
        "resolved",
        lambda one: F.format_string(
            "%s was resolved for the first time, to %d topics",
            one["regular_expression"],
            one["topics"],
        ),
    )
    only_epoch = ~F.col("named") & F.col("same_hash") & ~F.col("by_vote")
    return F.array_compact(
        F.array(
            _ids("joined", "joined"),
            _ids("resubscribed", "changed the subscription"),
            _ids("revoted", "asks for another assignor"),
            F.when(F.size("resolved") > 0, F.array_join(resolutions, "; ")),
            F.when(F.col("matches_others"), F.lit("a regular expression matches other topics")),
            F.when(F.col("upgrades"), F.lit("a classic group was converted")).when(
                F.col("succeeds_classic"), F.lit("an empty classic group was converted")
            ),
            F.when(F.col("by_hash_alone"), F.lit("only the metadata hash is another")),
            F.when(only_epoch, F.lit("only the epoch is another, not the metadata hash")),
        )
    )


def _takes_over(one: Column, others: str) -> Column:
    """Whether one of the others is the same static member under another id."""
    return F.exists(
        others, lambda other: is_known(other["group_instance_id"] == one["group_instance_id"])
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
    return F.when(F.size(name) > 0, F.concat(ids, F.lit(f" {text}")))
