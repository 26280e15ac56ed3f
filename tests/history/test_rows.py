# SPDX-License-Identifier: Apache-2.0
"""What rows share."""

from kohort.history.rows import TRIGGERS, Who, distinct, null_first, seconds


def test_what_is_null_comes_first():
    rows = [
        Who("b", "x", None, None),
        Who("a", "x", "i", None),
        Who("a", None, "i", None),
        Who("a", "x", None, None),
    ]
    assert sorted(rows, key=null_first) == [rows[2], rows[3], rows[1], rows[0]]


def test_each_member_once():
    rows = [Who("b", None, None, None), Who("a", None, None, None), Who("b", None, None, None)]
    assert distinct(rows) == rows[:2]


def test_seconds_between_times_that_are_known():
    assert seconds(1_000_000, 2_500_000) == 1.5
    assert seconds(None, 1) is seconds(1, None) is None


def test_no_trigger_comes_twice():
    assert len({*TRIGGERS}) == len(TRIGGERS)
