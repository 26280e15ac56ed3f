# SPDX-License-Identifier: Apache-2.0
"""Every figure of a table has a bound and a reason, and its text says both."""

from datetime import UTC, datetime, timedelta

import pytest

from kohort.figures import (
    FIGURES,
    Bound,
    Figure,
    beside,
    counted,
    duration,
    figure,
    longest_unowned,
    of_partition,
)


@pytest.mark.parametrize(
    ("told", "text", "bounds"),
    [
        (Figure(5), "5 s", (5, 5)),
        (Figure(5, error=1), "5 s \u00b1 1 s", (4, 6)),
        (Figure(5, error=9, reason="lost"), "5 s \u00b1 9 s (lost)", (0, 14)),
        (
            Figure(5, Bound.AT_LEAST, None, "before_samples"),
            "at least 5 s (before_samples)",
            (5, None),
        ),
        (Figure(5, Bound.AT_MOST), "at most 5 s", (None, 5)),
        (Figure(5, Bound.ABOUT, None), "about 5 s", (None, None)),
        (Figure(5, Bound.RANGE, 70), "5 s to 1 min 15 s", (5, 75)),
        (
            Figure(None, Bound.UNKNOWN, None, "no_end_offset"),
            "unknown (no_end_offset)",
            (None, None),
        ),
        (Figure(None, Bound.UNKNOWN), "unknown", (None, None)),
        (Figure(None, Bound.NONE, None, "nothing moved"), "none (nothing moved)", (None, None)),
    ],
)
def test_a_figure_says_its_bound_and_its_reason(told, text, bounds):
    assert told.text(duration) == text
    assert (told.low, told.high) == bounds


def test_words_stand_between_a_value_and_its_reason():
    told = Figure(5, Bound.AT_LEAST, None, "before_samples")

    assert told.text(duration, " behind") == "at least 5 s behind (before_samples)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 s"), (0.0421, "42 ms"), (12.34, "12.3 s"), (60, "1 min"), (82, "1 min 22 s")),
        *((3600, "1 h"), (90_000, "1 d 1 h"), (-5, "-5 s")),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert duration(seconds) == text


LAG = {"lag_seconds_error": 0.0, "reason": None, "partitions_unknown": 0}
PAST = LAG | {"moments": 1, "moments_unknown": 0, "moments_timeless": 0}
TOOK = {"seconds": None, "seconds_at_least": None, "seconds_at_most": None, "outcome": "open"}
SEVERAL = {"moments": 9}
NEVER = {"partitions_unknown": 1, "reason": "never_committed"}


def unread(*of_partitions):
    names = ("seconds", "error_seconds", "unknown")
    found = [dict(zip(names, one, strict=True)) for one in of_partitions]
    return {"unread": found}


CASES = [  # table, column, row, text
    ("lag", "lag_records", LAG | {"lag_records": 7}, "7"),
    ("lag", "lag_records", LAG | {"lag_records": 7, "reason": "before_samples"}, "7"),
    ("lag", "lag_records", LAG | {"lag_records": 0, "reason": "beyond_end"}, "0 (beyond_end)"),
    ("lag", "lag_records", LAG | NEVER | {"lag_records": 7}, "at least 7 (never_committed)"),
    ("lag", "lag_records", LAG | NEVER | {"lag_records": None}, "unknown (never_committed)"),
    ("lag", "records_lost", LAG | NEVER | {"records_lost": 7}, "at least 7 (never_committed)"),
    ("lag", "lag_seconds", LAG | {"lag_seconds": 5}, "5"),
    ("lag", "lag_seconds", LAG | {"lag_seconds": 5, "lag_seconds_error": 1}, "5 \u00b1 1"),
    (
        *("lag", "lag_seconds"),
        LAG | {"lag_seconds": 5, "lag_seconds_error": None, "reason": "before_samples"},
        "at least 5 (before_samples)",
    ),
    ("lag", "lag_seconds", LAG | NEVER | {"lag_seconds": 5}, "at least 5 (never_committed)"),
    ("lag", "lag_seconds", LAG | NEVER | {"lag_seconds": None}, "unknown (never_committed)"),
    ("status", "lag_seconds", LAG | {"lag_seconds": 5, "lag_seconds_error": None}, "at least 5"),
    ("status", "lag_records", LAG | NEVER | {"lag_records": 7}, "at least 7 (never_committed)"),
    ("lag_history", "lag_records_max", PAST | {"lag_records_max": 7}, "7"),
    (
        "lag_history",
        "lag_records_max",
        PAST | NEVER | {"lag_records_max": 7},
        "at least 7 (never_committed)",
    ),
    (
        "lag_history",
        "lag_records_max",
        PAST | {"lag_records_max": 7, "moments_unknown": 1},
        "at least 7",
    ),
    (
        "lag_history",
        "lag_records_min",
        PAST | {"lag_records_min": 7, "moments_unknown": 1},
        "at most 7",
    ),
    (
        *("lag_history", "lag_records_min"),
        PAST | NEVER | {"lag_records_min": 7, "moments_unknown": 1},
        "unknown (never_committed)",
    ),
    (
        "lag_history",
        "lag_seconds_max",
        PAST | {"lag_seconds_max": 5, "lag_seconds_error": 1},
        "5 \u00b1 1",
    ),
    (
        "lag_history",
        "lag_seconds_max",
        PAST | {"lag_seconds_max": 5, "lag_seconds_error": None},
        "at least 5",
    ),
    ("lag_history", "lag_seconds_max", PAST | SEVERAL | {"lag_seconds_max": 5}, "about 5"),
    (
        "lag_history",
        "lag_seconds_min",
        PAST | {"lag_seconds_min": 5, "moments_timeless": 2},
        "at most 5",
    ),
    (
        "lag_history",
        "lag_seconds",
        PAST | SEVERAL | {"lag_seconds": 5, "lag_seconds_error": 1},
        "5 \u00b1 1",
    ),
    (
        *("status_history", "worst_lag_records"),
        {"worst_lag_records": 7},
        "at least 7 (between runs nobody looks)",
    ),
    ("status_history", "worst_lag_seconds", {"worst_lag_seconds": None}, "unknown"),
    ("rebalances", "seconds", TOOK | {"seconds": 5}, "5"),
    ("rebalances", "seconds", TOOK | {"seconds_at_least": 5}, "at least 5"),
    ("rebalances", "seconds", TOOK | {"seconds_at_most": 5}, "at most 5"),
    ("rebalances", "seconds", TOOK | {"seconds_at_least": 5, "seconds_at_most": 7}, "5 to 7"),
    ("rebalances", "seconds", TOOK, "unknown (open)"),
    (
        "rebalances",
        "unread_seconds",
        {"unread_seconds": 7} | unread((3, 1, None), (4, 2, None)),
        "7 \u00b1 3",
    ),
    (
        "rebalances",
        "longest_unread_seconds",
        {"longest_unread_seconds": 4} | unread((3, 1, None), (4, 2, None)),
        "4 \u00b1 2",
    ),
    (
        "rebalances",
        "unread_seconds",
        {"unread_seconds": 3} | unread((3, 1, None), (None, None, "idle")),
        "at least 3 (idle)",
    ),
    (
        "rebalances",
        "unread_seconds",
        {"unread_seconds": None} | unread((None, None, "idle")),
        "unknown (idle)",
    ),
    (
        "rebalances",
        "unread_seconds",
        {"unread_seconds": None} | unread(),
        "none (no partition lost its owner)",
    ),
]


@pytest.mark.parametrize(("table", "column", "row", "text"), CASES)
def test_a_figure_of_a_table_has_the_bound_that_its_row_tells(table, column, row, text):
    assert figure(table, column, row).text(str) == text
    assert {*beside(table, [column])} <= row.keys()


def test_every_column_that_may_be_a_bound_is_looked_at():
    """A new column of that kind needs a line in FIGURES, or a reason to be exact in this list."""
    pytest.importorskip("pyarrow")
    from kohort.pipeline.format.catalog import known_tables

    exact = {
        ("lag", "lag_seconds_error"): "is itself the bound",
        ("lag_history", "lag_seconds_error"): "is itself the bound",
        ("status", "lag_seconds_error"): "is itself the bound",
        ("rebalances", "seconds_at_least"): "is itself a bound, as its name says",
        ("rebalances", "seconds_at_most"): "is itself a bound, as its name says",
        ("commit_rates", "seconds"): "times of two records, which are there",
        ("commit_rates", "records"): "offsets of two records, which are there",
        ("commit_rates", "records_per_second"): "of these two",
        ("commit_rates", "records_per_second_min"): "of these two",
        ("commit_rates", "records_per_second_max"): "of these two",
        ("assignments", "lost_by"): "the offset of a record",
        ("deletable_groups", "days_idle"): "since a record that is there; null where none is",
    }
    words = ("lag_", "seconds", "records", "lost", "unread_", "days")
    found = {
        (table.name, column.name)
        for table in known_tables().values()
        if table.layer in ("gold", "past")
        for column in table.columns
        if str(column.type) in ("int64", "double") and any(word in column.name for word in words)
    }
    told = {(table, column) for table, columns in FIGURES.items() for column in columns}

    assert found == told | exact.keys()
    for table, columns in FIGURES.items():
        names = known_tables()[table].names
        for column in columns:
            assert {column, *beside(table, [column])} <= {*names}, (table, column)


def test_a_new_partition_makes_a_lower_bound_whatever_the_rebalance_was_about():
    began = datetime(2026, 11, 28, tzinfo=UTC)
    new = {
        "seconds": None,
        "error_seconds": None,
        "unknown": "new",
        "since": began,
        "until": began + timedelta(seconds=4),
    }

    def said(total, *partitions):
        row = {"unread_seconds": total, "unread": [*partitions]}
        return figure("rebalances", "unread_seconds", row).text(str)

    (moved,) = unread((3, 1, None))["unread"]
    assert said(7, moved, new) == "at least 7 (new)"
    assert said(4, new) == "at least 4 (new)"
    assert said(None, new | {"until": began}) == "unknown (new)"
    assert said(3, moved) == "3 \u00b1 1"
    assert of_partition(new).text(duration) == "at least 4 s (new)"
    assert of_partition(new | {"until": began}).text(duration) == "unknown (new)"
    assert of_partition(moved).text(duration) == "3 s \u00b1 1 s"


def test_a_partition_that_has_no_owner_yet_is_a_lower_bound():
    def longest(*seconds):
        found = longest_unowned({"unowned": [{"seconds": one} for one in seconds]})
        return None if found is None else found.text(duration)

    assert longest() is None
    assert longest(0.0) is None
    assert longest(3.0, 5.0) == "5 s"
    assert longest(3.0, None) == "at least 3 s (a partition has no owner yet)"
    assert longest(None) == "unknown (a partition has no owner yet)"


def test_an_interval_is_no_longer_than_a_rhythm_of_commits_off():
    told = {"seconds": 30.0, "error_seconds": 5.0, "unknown": None}

    assert of_partition(told).text(duration) == "30 s \u00b1 5 s"
    assert of_partition({"seconds": None, "unknown": "idle"}).text(duration) == "unknown (idle)"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 batches"), (1, "1 batch"), (2, "2 batches"), (12_345, "12,345 batches")],
)
def test_things_are_counted(number, text):
    assert counted(number, "batch", "batches") == text
