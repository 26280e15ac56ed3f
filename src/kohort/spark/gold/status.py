# SPDX-License-Identifier: Apache-2.0
"""Does each group keep up? Burrow's rules over stored history, and a set without its false alarms.

Each set is a list of rules; the first one that holds decides. The text of the table's column `rule`
tells what a rule means.
"""

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.schemas.progress import REMOVED, STATUS
from kohort.spark.engine.frames import conform
from kohort.spark.gold import ends
from kohort.spark.gold.commits import KEY, effective, offset_or_null
from kohort.spark.gold.lag import bounds_of_several, of_several, reason_number
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.gold.moments import not_below_zero

WINDOWS = "windows"
"""The name under which the frames have the last commits of each partition, where older ones are
missing.
"""

MEMBERS = "members"
"""The name of the table of members, which is only needed where the log goes on behind the moment.
"""

_GROUP = ["partition", "group_id"]
_SECOND = 1e6


class Limits(NamedTuple):
    """The parameters of the rules. The first two are Burrow's, with its defaults."""

    intervals: int = 10
    """Commits in the window, and end offsets that count as recent."""
    allowed_lag: int = 0
    patience_s: float = 60.0
    """How long records may wait without a commit before a consumer may be called stopped."""
    pauses: float = 2.0
    """It may also wait this many times the longest pause between its last commits."""
    unknown_pause_s: float = 300.0
    """What counts as that pause after a single commit."""
    trend: float = 0.6
    """Lag grows if so large a share of the pairs of commits grew, less those that sank. Of ten
    commits without a trend one in a hundred windows does.
    """


DEFAULTS = Limits()


class Rule(NamedTuple):
    """If `holds`, the partition has this status, for this reason."""

    name: str
    status: str
    holds: Callable[[Limits], Column]


_SEVERITY = ("NOTFOUND", "OK", "UNKNOWN", "WARN", "STOP", "STALL", "REWIND", "LOST")
_WARN = _SEVERITY.index("WARN")
_CODES = 100  # a verdict is one number: 100 times the severity, and the rule's place in its list


def _lag() -> Column:
    return F.col("lag_records")


def _window() -> Column:
    return F.col("window")


def _first() -> Column:
    return F.element_at("window", 1)


def _last() -> Column:
    return F.element_at("window", -1)


def _silent_us() -> Column:
    return F.col("now_us") - _last()["at"]


def _waited_s() -> Column:
    """How long the next record has been there at least."""
    return F.col("lag_seconds") - F.coalesce("lag_seconds_error", F.lit(0.0))


def _pairs() -> Column:
    """Each commit of the window, but the first, with the one before it."""
    return F.arrays_zip(
        F.slice(_window(), 1, F.size(_window()) - 1).alias("before"),
        F.slice(_window(), 2, F.size(_window())).alias("after"),
    )


def _rewound(_: Limits) -> Column:
    return F.exists(
        _pairs(),
        lambda pair: (
            (pair["after"]["offset"] < pair["before"]["offset"])
            & ~F.exists(
                _window(),
                lambda later: (
                    (later["position"] > pair["before"]["position"])
                    & (later["offset"] >= pair["before"]["offset"])
                ),
            )
        ),
    )


def _lag_sinks() -> Column:
    return F.exists(
        _pairs(),
        lambda pair: F.coalesce(pair["after"]["lag"] < pair["before"]["lag"], F.lit(col=False)),
    )


def _all_equal() -> Column:
    return F.forall(_window(), lambda commit: commit["offset"] == _first()["offset"])


def _caught_up(limits: Limits) -> Column:
    return F.exists(
        _window(), lambda commit: F.coalesce(commit["lag"] <= limits.allowed_lag, F.lit(col=False))
    )


def _burrow_stopped(_: Limits) -> Column:
    silent = _silent_us() > _last()["at"] - _first()["at"]
    return silent & ~F.coalesce(F.col("recent_end") <= _last()["offset"], F.lit(col=False))


def _stopped(limits: Limits) -> Column:
    pauses = F.transform(_pairs(), lambda pair: pair["after"]["at"] - pair["before"]["at"])
    longest_s = F.coalesce(F.array_max(pauses) / _SECOND, F.lit(limits.unknown_pause_s))
    patience = F.greatest(F.lit(limits.patience_s), longest_s * limits.pauses)
    return F.least(_silent_us() / _SECOND, _waited_s()) > patience


def _stalled(_: Limits) -> Column:
    waited_through = _waited_s() * _SECOND >= F.col("now_us") - _first()["at"]
    return (F.size(_window()) > 1) & _all_equal() & waited_through


def _known_lags() -> Column:
    """The lag at those commits of the window for which an end before and one behind is known."""
    lags = F.transform(_window(), lambda commit: commit["known_lag"])
    return F.filter(lags, lambda lag: lag.isNotNull())


def _trend(lags: Column) -> Column:
    """Of all pairs of these, the share that grew, less that which sank: Kendall's test."""
    size = F.size(lags)
    of_each = F.transform(
        lags,
        lambda lag, place: F.aggregate(
            F.slice(lags, place + 2, size),
            F.lit(0.0),
            lambda sum_, later: sum_ + F.signum(later - lag),
        ),
    )
    return F.aggregate(of_each, F.lit(0.0), lambda sum_, one: sum_ + one) / (size * (size - 1) / 2)


def _slowing(limits: Limits) -> Column:
    """Lag grows: from each commit to the next, or, where the next record has waited for long, on
    the whole. Consumers read in batches, so lag goes down now and then although they fall behind.
    """
    lags = _known_lags()
    sank = F.exists(
        _pairs(),
        lambda pair: F.coalesce(
            pair["after"]["known_lag"] < pair["before"]["known_lag"], F.lit(col=False)
        ),
    )
    grew = F.try_element_at(lags, F.lit(-1)) > F.try_element_at(lags, F.lit(1))
    for_long = F.coalesce(_waited_s() > limits.patience_s, F.lit(col=False))
    grows = grew & (~sank | (for_long & (_trend(lags) >= limits.trend)))
    return F.when(F.size(lags) > 1, grows & ~_caught_up(limits)).otherwise(F.lit(col=False))


def _without_pace(limits: Limits) -> Column:
    """One commit tells no pace, so nobody knows whether a reader is at work or long gone."""
    return (F.size(_window()) == 1) & (_waited_s() > limits.patience_s)


BURROW = (
    Rule("lag_unknown", "NOTFOUND", lambda _: _lag().isNull()),
    Rule("lag_allowed", "OK", lambda limits: _lag() <= limits.allowed_lag),
    Rule("stopped", "STOP", _burrow_stopped),
    Rule("rewound", "REWIND", _rewound),
    Rule("caught_up", "OK", _caught_up),
    Rule("stalled", "STALL", lambda _: _all_equal()),
    Rule("slowing", "WARN", lambda _: ~_lag_sinks()),
    Rule("progress", "OK", lambda _: F.lit(col=True)),
)
KOHORT = (
    Rule("lag_unknown", "UNKNOWN", lambda _: _lag().isNull()),
    Rule("beyond_end", "WARN", lambda _: F.col("reason") == "beyond_end"),
    Rule("records_lost", "LOST", lambda _: F.col("records_lost") > 0),
    Rule("lag_allowed", "OK", lambda limits: _lag() <= limits.allowed_lag),
    Rule("no_members", "STOP", lambda _: F.col("is_deserted")),
    Rule("rewound", "REWIND", _rewound),
    Rule("stopped", "STOP", _stopped),
    Rule("stalled", "STALL", _stalled),
    Rule("slowing", "WARN", _slowing),
    Rule("single_commit", "UNKNOWN", _without_pace),
    Rule("progress", "OK", lambda _: F.lit(col=True)),
)
RULES = {"burrow": BURROW, "kohort": KOHORT}


def status(frames: Frames, context: Context, limits: Limits = DEFAULTS) -> DataFrame:
    """The table `status`. Needs the rows of `lag` for the moment of the context."""
    now = micros(context.as_of)
    lag = frames["lag"].where(
        (F.col("level") == "partition")
        & (F.unix_micros("at") == now)
        & F.col("committed_offset").isNotNull()
    )
    samples = ends.eras(frames["end_offsets"]).where(F.col("sampled_us") <= now)
    windows = frames[WINDOWS] if WINDOWS in frames else _windows(effective(frames), now, limits)
    facts = (
        _with_lag_then(lag.join(windows, KEY, "left"), samples, limits)
        .join(_recent_ends(samples, limits), ends.PLACE, "left")
        .join(_deserted(frames, now), _GROUP, "left")
        .withColumn("now_us", F.lit(now))
    )
    # Behind this no row has its window any more: there are four times as many.
    judged = facts.select(
        *KEY,
        "now_us",
        "lag_records",
        "lag_seconds",
        "lag_seconds_error",
        reason_number().alias("reason"),
        F.coalesce(F.size("window"), F.lit(0)).alias("size"),
        _first()["at"].alias("first_us"),
        _last()["at"].alias("last_us"),
        F.explode(
            F.array(
                *(
                    F.struct(F.lit(name).alias("rules"), _verdict(rules, limits).alias("verdict"))
                    for name, rules in RULES.items()
                )
            )
        ).alias("judged"),
    ).select("*", "judged.*")
    return conform(STATUS, _levels(judged, limits))


def _verdict(rules: tuple[Rule, ...], limits: Limits) -> Column:
    """The first rule that holds, as a number."""
    whens = [
        F.when(rule.holds(limits), F.lit(_SEVERITY.index(rule.status) * _CODES + place))
        for place, rule in enumerate(rules)
    ]
    return F.coalesce(*whens)


def _windows(taken: DataFrame, now: int, limits: Limits) -> DataFrame:
    """The last commits of each partition by then, in order, as `window`; none for an offset that
    was removed since.
    """
    at = F.unix_micros("effective_at")
    newest_first = Window.partitionBy(*KEY).orderBy(F.desc("offset"))
    last = (
        taken.where(at <= now)
        .select(*KEY, "offset", "state", "committed_offset", at.alias("at_us"))
        .withColumn("age", F.row_number().over(newest_first))
        .where(F.col("age") <= limits.intervals)
        .withColumn("removals", F.count_if(F.col("state") == REMOVED).over(newest_first))
        .where(F.col("removals") == 0)
    )
    commit = F.struct(
        F.col("offset").alias("position"),
        F.col("at_us").alias("at"),
        F.col("committed_offset").alias("offset"),
    )
    return last.groupBy(*KEY).agg(F.array_sort(F.collect_list(commit)).alias("window"))


def windows_of(kept: DataFrame, now: int) -> DataFrame:
    """The same from rows of `gold.newest.NEWEST`, without sorting them."""
    by_then = F.filter("window", lambda commit: commit["at_us"] <= now)
    last = F.slice(
        F.col("by_then"),
        F.greatest(F.size("by_then") - DEFAULTS.intervals + 1, F.lit(1)),
        DEFAULTS.intervals,
    )
    removed = F.transform(
        "last", lambda commit: offset_or_null(commit["committed_offset"]).isNull()
    )
    from_behind = F.array_position(F.reverse(removed), F.lit(True)).cast("int")
    since = F.when(from_behind > 0, F.size("last") - from_behind + 2).otherwise(F.lit(1))
    commits = F.transform(
        F.slice(F.col("last"), F.col("since"), DEFAULTS.intervals),
        lambda commit: F.struct(
            commit["offset"].alias("position"),
            commit["at_us"].alias("at"),
            commit["committed_offset"].alias("offset"),
        ),
    )
    return (
        kept.select(*KEY, "window")
        .withColumn("by_then", by_then)
        .withColumn("last", last)
        .withColumn("since", since)
        .select(*KEY, commits.alias("window"))
        .where(F.size("window") > 0)
    )


def _with_lag_then(rows: DataFrame, samples: DataFrame, limits: Limits) -> DataFrame:
    """The rows with the lag that was known at each of their commits. Only rules for partitions that
    lag now ask for it, so for the others it is not looked up.
    """
    lag = not_below_zero(F.col("end_then") - F.greatest("committed", F.lit(0)))
    commit = F.struct(
        *("position", "at", F.col("committed").alias("offset"), lag.alias("lag")),
        F.when(F.col("is_between"), lag).alias("known_lag"),
    )
    behind = rows.where(_lag() > limits.allowed_lag).select(*KEY, F.explode("window").alias("one"))
    each = behind.select(*KEY, "one.position", "one.at", F.col("one.offset").alias("committed"))
    looked_up = (
        ends.end_at(each, samples, F.col("at"))
        .groupBy(*KEY)
        .agg(F.array_sort(F.collect_list(commit)).alias("with_lag"))
    )
    not_looked_up = F.transform(
        "window",
        lambda entry: F.struct(
            entry["position"].alias("position"),
            entry["at"].alias("at"),
            entry["offset"].alias("offset"),
            F.lit(None).cast("bigint").alias("lag"),
            F.lit(None).cast("bigint").alias("known_lag"),
        ),
    )
    return (
        rows.join(looked_up, KEY, "left")
        .withColumn("window", F.coalesce("with_lag", not_looked_up))
        .drop("with_lag")
    )


def _recent_ends(samples: DataFrame, limits: Limits) -> DataFrame:
    """The lowest of the last end offsets of each partition."""
    newest_first = Window.partitionBy(*ends.PLACE).orderBy(F.desc("sampled_us"))
    return (
        samples.withColumn("age", F.row_number().over(newest_first))
        .where(F.col("age") <= limits.intervals)
        .groupBy(*ends.PLACE)
        .agg(F.min("end_offset").alias("recent_end"))
    )


def _deserted(frames: Frames, now: int) -> DataFrame:
    """Whether a group that has members at other times has none at the moment. A group that only
    commits never has any. Of a group whose last record is later than the moment, `members` tells
    who was there then, as far as the log is complete.
    """
    states = frames["group_state"].select(
        *_GROUP,
        ((F.col("members") == 0) & (F.col("protocol_type") != "")).alias("is_deserted"),
        (F.unix_micros("timestamp") > now).alias("is_later"),
        F.unix_micros("complete_from").alias("complete_us"),
    )
    if MEMBERS not in frames:
        return states.select(*_GROUP, "is_deserted")
    began = F.coalesce(F.unix_micros("valid_from") <= now, F.lit(True))
    lasts = F.coalesce(F.unix_micros("valid_to") > now, F.lit(True))
    there = frames[MEMBERS].groupBy(*_GROUP).agg(F.count_if(began & lasts).alias("there"))
    was_deserted = (F.col("there") == 0) & ~F.coalesce(F.col("complete_us") > now, F.lit(col=False))
    deserted = F.when(F.col("is_later"), was_deserted).otherwise(F.col("is_deserted"))
    return states.join(there, _GROUP, "left").select(*_GROUP, deserted.alias("is_deserted"))


def _levels(judged: DataFrame, limits: Limits) -> DataFrame:
    """Each partition by itself, and its group, which is as bad as its worst partition."""
    whole = F.col("level") == "partition"
    size = F.col("size")
    rows = (
        judged.withColumn("level", F.explode(F.array(F.lit("group"), F.lit("partition"))))
        .withColumns({name: F.when(whole, F.col(name)) for name in ("topic", "topic_partition")})
        .groupBy("partition", "group_id", "rules", "level", "topic", "topic_partition", "now_us")
        .agg(
            F.max("verdict").alias("verdict"),
            F.sum(size).alias("commits"),
            F.avg(size / limits.intervals).alias("share"),
            F.avg((size >= limits.intervals).cast("double")).alias("full"),
            F.min("first_us").alias("first_us"),
            F.max("last_us").alias("last_us"),
            *of_several(),
        )
    )
    severity = F.floor(F.col("verdict") / _CODES).cast("int")
    place = F.col("verdict") % _CODES
    names = {
        rules: F.element_at(F.array(*(F.lit(rule.name) for rule in listed)), place + 1)
        for rules, listed in RULES.items()
    }
    of_severity = F.element_at(F.array(*map(F.lit, _SEVERITY)), severity + 1)
    rule = F.when(F.col("rules") == "burrow", names["burrow"]).otherwise(names["kohort"])
    return rows.withColumns(
        {
            "status": F.when(~whole & (severity > _WARN), "ERR").otherwise(of_severity),
            "rule": rule,
            **bounds_of_several(),
            "complete": F.when(whole, F.col("share")).otherwise(F.col("full")),
            "at": F.timestamp_micros("now_us"),
            "first_commit_at": F.timestamp_micros("first_us"),
            "last_commit_at": F.timestamp_micros("last_us"),
        }
    )
