# SPDX-License-Identifier: Apache-2.0
"""What a check finds in tables: values against thresholds, and what is not known."""

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark")

from tests.tables.published import publish

import kohort.tables
from kohort.errors import KohortError
from kohort.pipeline.format.manifest import HistoriesState
from kohort.tables.judging import _WORDS, judge
from kohort.tables.thresholds import RULES, Groups, Limit, Rules, State

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
NOW = AT + timedelta(minutes=10)
OK, WARNING, CRITICAL, UNKNOWN = State


def publish_at(directory, rows):
    return publish(directory, rows, as_of_ms=int(AT.timestamp() * 1000))


def judged(directory, *, groups=(), judges="kohort", by_group=(), window_s=3600.0, **limits):
    rules = Rules(limits, window_s, judges, tuple(by_group))
    return judge(kohort.tables.snapshot(directory), rules, NOW, groups)


def states(verdict):
    return {one.group: one.state for one in verdict.findings}


def lag(group, records, **more):
    return {
        "group_id": group,
        "level": "group",
        "at": AT,
        "lag_records": records,
        "partitions": 3,
        "partitions_unknown": 0,
    } | more


def test_lag_in_records(tmp_path):
    old = lag("gone", 10**6, at=AT - timedelta(hours=1))
    part = lag("fine", 10**6, level="partition")
    rows = [
        *(lag("fine", 9), lag("slow", 10), lag("bad", 20), old, part),
        lag("dark", None, partitions_unknown=3, reason="no_end_offset"),
        lag("dim", 5, partitions_unknown=1, reason="never_committed"),
        lag("dim-slow", 15, partitions_unknown=1),
    ]
    publish_at(tmp_path, {"lag": rows})

    verdict = judged(tmp_path, lag_records=Limit(10, 20))

    assert states(verdict) == {
        "fine": OK,
        "slow": WARNING,
        "bad": CRITICAL,
        "dark": UNKNOWN,
        "dim": UNKNOWN,
        "dim-slow": WARNING,
    }
    assert verdict.state is CRITICAL
    first = verdict.findings[0]
    assert (first.group, first.value, first.why) == ("bad", 20, "20 records behind")
    whys = {one.group: one.why for one in verdict.findings}
    assert whys["dark"] == "its lag is unknown (no_end_offset); 3 of 3 partitions are not known"
    told = "at least 5 records behind (never_committed); 1 of 3 partitions are not known"
    assert whys["dim"] == told


def test_lag_in_time(tmp_path):
    def timed(group, seconds, error, **more):
        return lag(group, 1, lag_seconds=seconds, lag_seconds_error=error, **more)

    rows = [
        *(timed("fine", 50.0, 9.0), timed("slow", 60.0, 0.0), timed("bad", 700.0, 0.0)),
        *(timed("perhaps", 50.0, 10.0), timed("bound", 5.0, None, reason="before_samples")),
        *(timed("bound-bad", 900.0, None), timed("dark", None, None)),
        timed("partly", 5.0, 0.0, partitions_unknown=1),
    ]
    publish_at(tmp_path, {"lag": rows})

    verdict = judged(tmp_path, lag_seconds=Limit(60, 600))

    assert states(verdict) == {
        "fine": OK,
        "slow": WARNING,
        "bad": CRITICAL,
        "perhaps": UNKNOWN,
        "bound": UNKNOWN,
        "bound-bad": CRITICAL,
        "dark": UNKNOWN,
        "partly": UNKNOWN,
    }
    whys = {one.group: one.why for one in verdict.findings}
    assert whys["bound"] == "at least 5 s behind (before_samples)"
    assert whys["perhaps"] == "50 s \u00b1 10 s behind"
    assert whys["bad"] == "11 min 40 s behind"


def status(group, status, level="group", rules="kohort"):
    return {"group_id": group, "level": level, "rules": rules, "status": status, "rule": "stopped"}


def test_status(tmp_path):
    rows = [
        *(status("fine", "OK"), status("slow", "WARN"), status("bad", "ERR")),
        *(status("dark", None), status("half", "OK"), status("half", "UNKNOWN", "partition")),
        *(status("fine", "ERR", rules="burrow"), status("half", "OK", rules="burrow")),
        status("half", "NOTFOUND", "partition", "burrow"),
        status("fine", "STOP", "partition"),
    ]
    publish_at(tmp_path, {"status": rows})

    verdict = judged(tmp_path, status=Limit(1, 2))
    by_burrow = judged(tmp_path, status=Limit(1, 2), judges="burrow")

    assert states(verdict) == {
        "fine": OK,
        "slow": WARNING,
        "bad": CRITICAL,
        "dark": UNKNOWN,
        "half": UNKNOWN,
    }
    assert states(by_burrow) == {"fine": CRITICAL, "half": UNKNOWN}
    assert verdict.findings[0].why == "records wait, and it commits nothing any more (ERR, stopped)"


@pytest.mark.parametrize(
    ("left_for", "grace_s", "state", "why"),
    [
        (40, 300.0, OK, ", for 40 s only, of 5 min that it has"),
        (301, 300.0, CRITICAL, "records wait, and it has no members (ERR, no_members)"),
        (301, 600.0, OK, ", for 5 min 1 s only, of 10 min that it has"),
        (0, 0.0, OK, ", for 0 s only, of 0 s that it has"),
        (None, 300.0, CRITICAL, "records wait, and it has no members (ERR, no_members)"),
        (-60, 300.0, CRITICAL, "records wait, and it has no members (ERR, no_members)"),
    ],
)
def test_a_deployment_alarms_nobody(tmp_path, left_for, grace_s, state, why):
    """A group is empty for a while when all its members are replaced."""
    since = None if left_for is None else AT - timedelta(seconds=left_for)
    rows = [status("g", "ERR") | {"rule": "no_members"}, status("other", "ERR")]
    groups = [{"group_id": "g", "state": "Empty", "members": 0, "timestamp": since}]
    publish_at(tmp_path, {"status": rows, "group_state": groups})
    rules = Rules({"status": Limit(1, 2)}, grace_s=grace_s)

    verdict = judge(kohort.tables.snapshot(tmp_path), rules, NOW)

    found = {one.group: one for one in verdict.findings}
    assert (found["g"].state, found["other"].state) == (state, CRITICAL)
    assert found["g"].why.endswith(why)


def test_every_rule_of_status_has_words():
    from kohort.spark.gold.status import RULES as OF_STATUS

    assert {rule.name for rules in OF_STATUS.values() for rule in rules} == {*_WORDS}


def test_rebalances_are_counted_in_a_window(tmp_path):
    def rebalances(group, count, **more):
        at = AT - timedelta(minutes=5)
        return [{"group_id": group, "started_at": at, **more}] * count

    early = AT - timedelta(minutes=61)
    state = [
        {"group_id": one, "state": "Stable", "complete_from": AT - timedelta(days=1)}
        for one in ("calm", "classic", "storm", "before")
    ]
    state += [
        {"group_id": "new", "state": "Stable", "complete_from": AT - timedelta(minutes=30)},
        {"group_id": "holes", "state": "Stable"},
        {"group_id": "new-storm", "state": "Stable"},
        {"group_id": "gone", "state": "Dead"},
    ]
    rows = [
        *(rebalances("calm", 1) + rebalances("storm", 5) + rebalances("new-storm", 5)),
        *rebalances("classic", 3, started_at=None, started_before=AT),
        *rebalances("before", 9, started_at=early),
        *rebalances("calm", 9, started_at=AT + timedelta(seconds=1)),
    ]
    publish_at(tmp_path, {"rebalances": rows, "group_state": state})

    verdict = judged(tmp_path, rebalances=Limit(2, 5))

    assert states(verdict) == {
        "calm": OK,
        "classic": WARNING,
        "storm": CRITICAL,
        "before": OK,
        "new": UNKNOWN,
        "holes": UNKNOWN,
        "new-storm": CRITICAL,
    }
    whys = {one.group: one.why for one in verdict.findings}
    assert whys["classic"] == "3 rebalances in 1 h"
    assert whys["new"] == "at least 0 rebalances in 1 h: the log does not tell all of that time"
    assert states(judged(tmp_path, rebalances=Limit(2, 5), window_s=7200.0))["before"] is CRITICAL


def test_before_the_first_record_of_a_log_there_was_no_rebalance(tmp_path):
    young = AT - timedelta(minutes=1)
    state = [
        {"group_id": group, "state": "Stable", "complete_from": young, "partition": index}
        for index, group in enumerate(("whole", "cleaned", "nowhere"))
    ]
    complete = {0: (0, 1), 1: (40, 1), 2: (None, None)}
    histories = HistoriesState(code="c", session_timeout_ms=None, fed={}, complete=complete)
    rows = {"rebalances": [{"group_id": "whole", "started_at": AT}], "group_state": state}
    publish(tmp_path, rows, as_of_ms=int(AT.timestamp() * 1000), histories=histories)

    verdict = judged(tmp_path, rebalances=Limit(2, 5))

    assert states(verdict) == {"whole": OK, "cleaned": UNKNOWN, "nowhere": UNKNOWN}
    assert "1 rebalance in 1 h" in {one.why for one in verdict.findings}


def test_groups_that_the_broker_will_forget(tmp_path):
    def group(name, hours, *blockers):
        expires = None if hours is None else NOW + timedelta(hours=hours)
        return {"group_id": name, "expires_at": expires, "blockers": list(blockers)}

    rows = [
        *(group("later", 100), group("soon", 20), group("now", 1), group("due", -3)),
        *(group("busy", None, "members"), group("dark", None), group("who", None, "recent_commit")),
    ]
    publish_at(tmp_path, {"deletable_groups": rows})

    verdict = judged(tmp_path, expiring=Limit(48 * 3600, 12 * 3600))

    assert states(verdict) == {
        "later": OK,
        "soon": WARNING,
        "now": CRITICAL,
        "due": CRITICAL,
        "busy": OK,
        "dark": UNKNOWN,
        "who": UNKNOWN,
    }


def test_the_age_of_the_tables(tmp_path):
    publish_at(tmp_path, {"lag": []})

    assert judged(tmp_path, age=Limit(601)).state is OK
    verdict = judged(tmp_path, age=Limit(600))
    assert verdict.state is WARNING
    (found,) = verdict.findings
    assert (found.group, found.value) == (None, 600)
    told = "lag, status and the like are those of 2026-11-21 07:00:00 UTC, 10 min ago"
    assert found.why == told


def test_tables_without_gold_are_unknown(tmp_path):
    publish(tmp_path, {})

    verdict = judged(tmp_path, **dict.fromkeys(RULES, Limit(1, 2)))

    assert {one.state for one in verdict.findings} == {UNKNOWN}
    assert {one.rule for one in verdict.findings} == set(RULES)
    assert judged(tmp_path).state is UNKNOWN


def test_groups_by_name_and_by_pattern(tmp_path):
    rows = [lag("a", 50), lag("b", 50), lag("test-1", 50)]
    known = [{"group_id": one} for one in ("a", "b", "test-1", "silent")]
    publish_at(tmp_path, {"lag": rows, "group_state": known, "status": []})
    by_group = (Groups("test-*", ignore=True), Groups("b", limits={"lag_records": Limit(90)}))

    every = judged(tmp_path, lag_records=Limit(10), by_group=by_group)
    some = judged(tmp_path, lag_records=Limit(10), status=Limit(1, 2), groups=["a", "silent"])
    only = judged(tmp_path, by_group=by_group)

    assert states(every) == {"a": WARNING, "b": OK}
    assert {(one.rule, one.group, one.state) for one in some.findings} == {
        ("lag_records", "a", WARNING),
        ("lag_records", "silent", UNKNOWN),
        ("status", "a", UNKNOWN),
        ("status", "silent", UNKNOWN),
    }
    assert states(only) == {"b": OK}
    with pytest.raises(KohortError, match=r"no group is called 'silnt' in .*did you mean silent"):
        judged(tmp_path, lag_records=Limit(10), groups=["silnt"])


def test_from_a_program(tmp_path):
    publish_at(tmp_path, {"lag": [lag("a", 50), lag("b", 5)]})
    (tmp_path / "rules.toml").write_text(
        "age = false\nstatus = false\nrebalances = false\n[lag_records]\nwarning = 10\n"
    )

    found = kohort.tables.check(tmp_path, tmp_path / "rules.toml")
    assert states(found) == {"a": WARNING, "b": OK}
    assert states(kohort.tables.check(tmp_path, str(tmp_path / "rules.toml"), group="b")) == {
        "b": OK
    }
    assert kohort.tables.check(tmp_path, Rules({"lag_records": Limit(1, 2)})).state is CRITICAL
    assert {one.rule for one in kohort.tables.check(tmp_path).findings} == {
        *("age", "rebalances", "status")
    }


def test_all_is_of_one_moment(tmp_path, monkeypatch):
    publish_at(tmp_path, {"lag": [lag("a", 50)]})
    snapshot = kohort.tables.snapshot(tmp_path)
    publish_at(tmp_path, {"lag": [lag("a", 0)]})

    rules = Rules({"lag_records": Limit(10)})
    assert judge(snapshot, rules, NOW).state is WARNING
    assert judge(kohort.tables.snapshot(tmp_path), rules, NOW).state is OK
