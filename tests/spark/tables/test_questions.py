# SPDX-License-Identifier: Apache-2.0
"""The questions of docs/sql.md: each query runs over the tables of recorded logs, and what it
answers is held against what the tables say otherwise, or against what was done to the clients.
"""

import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

from tests.spark.histories.replay import AS_OF
from tests.spark.tables import recorded

import kohort.tables

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
QUESTIONS = {
    int(number): (title, query)
    for number, title, query in re.findall(
        r"^### (\d+)\. ([^\n]+)\n\n```sql\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}
KILLED = {f"{group}-{client}" for group in ("classic", "coop", "new") for client in "ab"}
"""Clients that were killed; in each of these groups c and d left, d after it had hung."""


@pytest.fixture(scope="module")
def out(spark, tmp_path_factory):
    return recorded.write(spark, tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def ask(out):
    def answer(number):
        _, query = QUESTIONS[number]
        rows = kohort.tables.sql(out, query).to_pylist()
        assert rows
        return rows

    return answer


@pytest.fixture
def table(out):
    return lambda name: kohort.tables.read(out, name).to_pylist()


def by(rows, *names):
    """The rows by some of their columns; each has its own."""
    found = {tuple(row[name] for name in names): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_each_question_is_tested():
    assert list(QUESTIONS) == list(range(1, 23))
    tested = {int(name.split("_")[1]) for name in globals() if re.match(r"test_\d+_", name)}
    assert tested == set(QUESTIONS)
    assert PAGE.read_text(encoding="utf-8").count("```sql") == len(QUESTIONS)
    assert all(title.endswith("?") for title, _ in QUESTIONS.values())


def test_1_groups(ask, table):
    rows = by(ask(1), "group_id")
    assert rows.keys() == {(one["group_id"],) for one in table("group_state")}
    assert (rows["crash-kafka-g",]["state"], rows["crash-kafka-g",]["members"]) == ("Stable", 1)
    assert rows["classic",]["state"] == "Empty"


def test_2_who_reads_what(ask, table):
    rows = by(ask(2), "topic")
    assert rows.keys() == {(one["topic"],) for one in table("offsets")}
    assert rows["orders",]["groups"] == ["classic", "coop", "new"]
    assert rows["crash-kafka-orders",]["groups"] == ["crash-kafka-g", "crash-kafka-old"]


def test_3_what_nobody_reads(ask):
    assert ask(3) == [{"topic": recorded.UNREAD, "records": 7}]


def test_4_hosts(ask, table):
    rows = ask(4)
    assert sum(one["members"] for one in rows) == sum(
        one["members"] for one in table("group_state")
    )
    assert {one["client_host"] for one in rows} == {"/127.0.0.1"}
    assert all(one["since"] < AS_OF for one in rows)


def test_5_the_furthest_behind(ask, table):
    rows = ask(5)
    lags = [one["lag_records"] for one in rows if one["lag_records"] is not None]
    assert lags == sorted(lags, reverse=True)
    assert rows[0] == {**rows[0], "group_id": "steady-kafka-stalled", "lag_records": 60}
    assert len(rows) == len({one["group_id"] for one in table("lag") if one["at"] == AS_OF})
    unknown = [one for one in rows if one["lag_records"] is None]
    assert {"classic", "coop", "new"} <= {one["group_id"] for one in unknown}
    assert all(one["reason"] for one in unknown)


def test_6_partitions_of_a_lag(ask):
    rows = ask(6)
    assert [one["lag_records"] for one in rows] == [7, 5, 0]
    for one in rows:
        assert one["end_offset"] - one["committed_offset"] == one["lag_records"]
    (whole,) = (one for one in ask(5) if one["group_id"] == "lag-kafka-g")
    assert whole["lag_records"] == 12


def test_7_lag_over_time(ask, table):
    rows = by(ask(7), "group_id", "second")
    expected = {}
    for one in table("lag"):
        if one["level"] == "group" and one["lag_records"] is not None:
            second = one["group_id"], one["at"].replace(microsecond=0)
            expected[second] = max(expected.get(second, 0), one["lag_records"])
    assert {second: one["most"] for second, one in rows.items()} == expected
    stopped = [one["most"] for (group, _), one in rows.items() if group == "steady-kafka-stopped"]
    assert len(stopped) > 3
    assert stopped[-1] == 50
    assert stopped[-3:] == sorted(stopped[-3:])


def test_8_lag_that_is_not_known(ask):
    rows = by(ask(8), "reason")
    assert rows["no_end_offset",] == {
        "reason": "no_end_offset",
        "partitions": 12,
        "groups": ["classic", "coop", "new"],
    }


def test_9_speed(ask):
    rows = by(ask(9), "group_id", "topic")
    for one in rows.values():
        if one["lag_records"] and one["per_second"]:
            to_go = one["lag_records"] / one["per_second"]
            assert one["seconds_to_go"] == pytest.approx(to_go)
    assert rows["steady-kafka-stopped", "steady-kafka-orders"]["lag_records"] == 50
    assert 10 < rows["classic", "orders"]["per_second"] < 100
    assert rows["classic", "orders"]["seconds_to_go"] is None


def test_10_who_does_not_keep_up(ask):
    rules = {one["group_id"]: one["rule"] for one in ask(10)}
    assert rules["steady-kafka-stalled"] == "stalled"
    assert rules["steady-kafka-stopped"] == "stopped"
    assert rules["steady-kafka-reset"] == "rewound"
    assert rules["classic"] == "lag_unknown"
    assert "steady-kafka-up" not in rules


def test_11_why_they_rebalance(ask, table):
    rows = by(ask(11), "trigger")
    every = Counter(one["trigger"] for one in table("rebalances"))
    assert {trigger: one["rebalances"] for (trigger,), one in rows.items()} == every
    assert rows["session timeout",]["rebalances"] == len(KILLED)
    assert rows["session timeout",]["unread"] > rows["join",]["unread"]


def test_12_the_costliest(ask, table):
    rows = ask(12)
    costs = sorted((one["unread_seconds"] or 0 for one in table("rebalances")), reverse=True)
    assert [one["unread_seconds"] or 0 for one in rows] == costs[:10]
    assert {one["trigger"] for one in rows[:6]} == {"session timeout", "leave"}
    assert all(one["longest_unread_seconds"] > 5 for one in rows[:6])


def test_13_who_has_crashed(ask):
    rows = [one for one in ask(13) if one["group_id"] in ("classic", "coop", "new")]
    assert {one["client_id"] for one in rows if one["trigger"] == "session timeout"} == KILLED
    for one in rows:
        if one["client_id"] in KILLED:
            assert one["likely"] == "went silent"
            assert one["silent_seconds"] > 3 * one["usual_seconds"]
        elif one["client_id"].endswith("-c"):
            assert one["likely"] == "left at work"


def test_14_what_nobody_read(ask, table):
    rows = ask(14)
    assert len(rows) == sum(len(one["unread"] or ()) for one in table("rebalances"))
    known = [one["seconds"] for one in rows if one["seconds"] is not None]
    assert known == sorted(known, reverse=True)
    assert known[0] > 6
    assert all((one["seconds"] is None) == bool(one["unknown"]) for one in rows)


def test_15_rebalances_by_minute(ask, table):
    rows = by(ask(15), "minute", "group_id")
    assert sum(one["rebalances"] for one in rows.values()) == len(table("rebalances"))
    assert all(one["minute"].second == 0 for one in rows.values())


def test_16_owners_at_a_moment(ask):
    rows = by(ask(16), "group_id", "topic", "topic_partition")
    for group in ("classic", "coop", "new"):
        owners = {one["client_id"] for (name, *_), one in rows.items() if name == group}
        assert owners == {f"{group}-d"}, "a was killed half a minute before, d has taken over"
        assert len([key for key in rows if key[0] == group]) == 4


def test_17_how_even(ask):
    rows = by(ask(17), "group_id")
    assert rows["crash-kafka-g",] == {
        "group_id": "crash-kafka-g",
        "owners": 1,
        "fewest": 4,
        "most": 4,
    }
    assert ("classic",) not in rows


def test_18_changes_of_owner(ask, table):
    rows = by(ask(18), "group_id", "topic", "topic_partition")
    assert sum(one["periods"] for one in rows.values()) == len(table("assignments"))
    assert all(one["owners"] <= one["periods"] for one in rows.values())
    assert rows["classic", "orders", 2]["owners"] >= 4


def test_19_commits(ask, table):
    rows = ask(19)
    assert sum(one["commits"] for one in rows) == len(table("commits"))
    states = {one["state"] for one in rows if one["in_transaction"]}
    assert {"committed", "aborted"} <= states
    assert {one["state"] for one in rows if not one["in_transaction"]} <= {"committed", "removed"}


def test_20_what_may_be_deleted(ask, table):
    rows = by(ask(20), "group_id")
    state = {one["group_id"]: one["state"] for one in table("group_state")}
    assert rows.keys() == {(one,) for one in state}
    for (group,), one in rows.items():
        assert (one["expires_at"] is not None) == (state[group] == "Empty"), group
        if one["expires_at"] is not None:
            assert AS_OF < one["expires_at"] <= AS_OF + timedelta(days=7)
        assert one["reason"]


def test_21_lag_in_the_past(ask, table):
    rows = by(ask(21), "group_id", "hour")
    expected = {}
    for one in table("lag"):
        if one["level"] == "group":
            hour = one["group_id"], one["at"].replace(minute=0, second=0, microsecond=0)
            most, moments, unknown = expected.get(hour, (None, 0, 0))
            known = [each for each in (most, one["lag_records"]) if each is not None]
            missing = unknown + (one["lag_records"] is None)
            expected[hour] = max(known, default=None), moments + 1, missing
    found = {key: (one["most"], one["moments"], one["unknown"]) for key, one in rows.items()}
    assert found == expected
    assert rows["steady-kafka-stalled", max(hour for _, hour in rows)]["longest"] > 0


def test_22_who_was_not_well(ask, table):
    rows = by(ask(22), "group_id")
    bad = [one for one in table("status") if one["rules"] == "kohort" and one["level"] == "group"]
    bad = {one["group_id"]: one for one in bad if one["status"] not in ("OK", "UNKNOWN")}
    assert rows.keys() == {(group,) for group in bad}
    stalled = rows["steady-kafka-stalled",]
    assert (stalled["reasons"], stalled["worst_lag_records"]) == (["stalled"], 60)
    assert all((one["valid_from"], one["valid_to"]) == (AS_OF, None) for one in rows.values())
