# SPDX-License-Identifier: Apache-2.0
"""For how long groups had a status: run by run it is what all runs together saw."""

from datetime import UTC, datetime, timedelta
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from kohort.pipeline.rollup.episodes import update_episodes
from kohort.pipeline.schemas import STATUS_HISTORY

BEGIN = datetime(2026, 11, 20, tzinfo=UTC)


def at(number):
    return BEGIN + timedelta(minutes=number)


def status(word, records=0, *, rule="progress", group="a", rules="kohort"):
    """What a run says of a group."""
    return {
        "partition": 7,
        "group_id": group,
        "rules": rules,
        "status": word,
        "rule": rule,
        "lag_records": records,
        "lag_seconds": None if records is None else records / 2,
    }


def told(runs):
    """All rows after some runs: of each its statuses and the worst lag between it and the one
    before.
    """
    over, still, last = [], [], None
    for number, (statuses, between) in enumerate(runs):
        done, still = update_episodes(still, statuses, at(number), last, between)
        over += done
        last = at(number)
    return over, still


seen = st.none() | st.tuples(st.sampled_from(["OK", "WARN"]), st.none() | st.integers(0, 9))
between = st.none() | st.integers(0, 9)


@given(st.lists(st.tuples(seen, between), min_size=1, max_size=12))
def test_runs_with_the_same_status_are_one_row(drawn):
    runs = [
        (
            [] if one is None else [status(*one)],
            {} if worst is None else {(7, "a"): (worst, worst / 2)},
        )
        for one, worst in drawn
    ]

    over, still = told(runs)

    expected = []
    number = 0
    for word, group in groupby(drawn, lambda one: one[0] and one[0][0]):
        mine = list(group)
        first, number = number, number + len(mine)
        if word is None:
            continue
        known = [one[1] for one, _ in mine] + [worst for _, worst in mine[1:]]
        known += [drawn[number][1]] if number < len(drawn) else []
        expected.append(
            {
                "valid_from": at(first),
                "valid_to": at(number) if number < len(drawn) else None,
                "started_after": at(first - 1) if first else None,
                "last_seen_at": at(number - 1),
                "status": word,
                "runs": len(mine),
                "runs_unknown": sum(one[1] is None for one, _ in mine),
                "worst_lag_records": max((one for one in known if one is not None), default=None),
            }
        )
    rows = [{name: row[name] for name in one} for row, one in zip([*over, *still], expected)]  # noqa: B905
    assert rows == expected
    assert len(over) + len(still) == len(expected)
    assert len(still) == (drawn[-1][0] is not None)
    assert all(set(row) == set(STATUS_HISTORY.names) for row in [*over, *still])


def test_the_rules_that_decided_are_told_once_each():
    runs = [[status("ERR", rule=rule)] for rule in ("stopped", "stalled", "stopped")]

    _, (row,) = told([(one, {}) for one in runs])

    assert (row["reasons"], row["runs"]) == (["stopped", "stalled"], 3)


def test_groups_and_judges_go_on_by_themselves():
    both = [status("OK"), status("OK", rules="burrow"), status("OK", group="b")]
    later = [status("WARN"), *both[1:]]

    over, still = told([(both, {}), (later, {})])

    assert [(one["group_id"], one["rules"], one["valid_to"]) for one in over] == [
        ("a", "kohort", at(1))
    ]
    assert {(one["group_id"], one["rules"]): one["runs"] for one in still} == {
        ("a", "kohort"): 1,
        ("a", "burrow"): 2,
        ("b", "kohort"): 2,
    }


def test_a_clock_that_was_set_back_ends_what_it_saw_and_begins_anew():
    _, before = update_episodes([], [status("OK", 3), status("WARN", group="b")], at(9), None, {})

    over, still = update_episodes(before, [status("OK", 5)], at(4), at(9), {})

    assert {(one["group_id"], one["valid_to"]) for one in over} == {("a", at(9)), ("b", at(9))}
    (row,) = still
    assert (row["valid_from"], row["started_after"], row["runs"]) == (at(4), None, 1)
    assert row["worst_lag_records"] == 5
