# SPDX-License-Identifier: Apache-2.0
"""Histories resume where nothing has come but rows behind the known ones; else they begin anew."""

import pytest

from kohort.pipeline.format.manifest import HistoriesState, Increment
from kohort.pipeline.format.refresh_plan import (
    RefreshPlan,
    full_refresh,
    next_offsets,
    refresh_plan,
    renamed_topics,
)
from kohort.spark.tables.increments import cut

FIRST = Increment(name="a", ranges={0: (0, 10), 1: (0, 5)}, counts={"tombstone": 15})
SECOND = Increment(name="b", ranges={1: (5, 8), 2: (0, 3)}, counts={"tombstone": 6})
WHOLE = (0, 1_000)


def known(*increments, code="c", session_timeout_ms=None, complete=None):
    fed = next_offsets(increments)
    told = dict.fromkeys(fed, WHOLE) if complete is None else complete
    return HistoriesState(code=code, session_timeout_ms=session_timeout_ms, fed=fed, complete=told)


def found(before, there, *, now=None, renamed=(), published=None):
    told = known(*there) if now is None else now
    return refresh_plan(before, told, (FIRST,) if published is None else published, there, renamed)


def some(incremental=(), recompute=()):
    return RefreshPlan(frozenset(incremental), frozenset(recompute))


def test_nothing_is_new():
    assert found(known(FIRST), [FIRST]) == some()
    assert some().touched == frozenset()
    assert full_refresh().touched is None


def test_rows_behind_the_known_ones():
    assert found(known(FIRST), [FIRST, SECOND]) == some(incremental=[1, 2])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"code": "d"}, ""),
        ({"code": ""}, ""),
        ({"session_timeout_ms": 4000}, "the session timeout was unknown and is 4000 ms"),
    ],
)
def test_another_kohort_and_other_settings_replay_everything(changes, why):
    """Of another Kohort the run tells by itself."""
    now = known(FIRST, SECOND, **changes)
    assert found(known(FIRST), [FIRST, SECOND], now=now) == full_refresh(why)


def test_unknown_code_is_never_the_same():
    assert found(known(FIRST, code=""), [FIRST], now=known(FIRST, code="")) == full_refresh()


def test_a_partition_that_was_cut():
    there = [*cut([FIRST], {0: 6}), Increment(name="b", ranges={0: (6, 7)}, counts={})]
    assert found(known(FIRST), there) == some(recompute=[0])


def test_a_partition_that_was_cut_and_has_nothing_new():
    assert found(known(FIRST), list(cut([FIRST], {0: 6}))) == some(recompute=[0])


def test_a_cut_of_before_is_no_news():
    (before,) = cut([FIRST], {0: 6})
    there = [before, Increment(name="b", ranges={0: (6, 7)}, counts={})]
    assert found(known(before), there, published=[before]) == some(incremental=[0])


def test_rows_that_came_late():
    late = Increment(name="b", ranges={0: (4, 12), 1: (5, 6)}, counts={})
    assert found(known(FIRST), [FIRST, late]) == some(incremental=[1], recompute=[0])


def test_an_increment_that_is_gone():
    """Its history was dropped as too old; a merge is published before, with what it changes."""
    left = Increment(name="b", ranges=FIRST.ranges, counts={}, compacted=True)
    assert found(known(FIRST), [left]) == some(recompute=[0, 1])
    assert found(known(FIRST), [left], published=[left]) == some()


def test_an_increment_of_which_nothing_is_left():
    now = known(complete=dict.fromkeys((0, 1), WHOLE))
    assert found(known(FIRST), [], now=now) == some(recompute=[0, 1])


def test_a_partition_that_is_complete_from_elsewhere():
    for other in ((7, 1_000), (0, 2_000), (None, 1_000)):
        now = known(FIRST, SECOND, complete={0: other, 1: WHOLE, 2: WHOLE})
        assert found(known(FIRST), [FIRST, SECOND], now=now) == some(
            incremental=[1, 2], recompute=[0]
        )


def test_a_partition_that_is_gone():
    now = known(FIRST, complete={1: WHOLE})
    assert found(known(FIRST), [FIRST], now=now) == some(recompute=[0])


def test_what_reached_further_than_was_known():
    before = known(FIRST).with_(fed={0: 10, 1: 4})
    assert found(before, [FIRST]) == some(recompute=[1])


def test_a_topic_with_another_name():
    assert found(known(FIRST), [FIRST, SECOND], renamed=[1]) == some(incremental=[2], recompute=[1])


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        ({}, {}, set()),
        ({"1": "a"}, {"1": "a"}, set()),
        ({}, {"1": "a"}, {"1", "a"}),
        ({"1": "a"}, {}, {"1", "a"}),
        ({"1": "a", "2": "b"}, {"1": "c", "2": "b"}, {"1", "a", "c"}),
        ({"1": "a"}, {"1": "a", "2": "a"}, {"2", "a"}),
    ],
)
def test_topics_whose_names_or_ids_are_others(before, now, names):
    assert renamed_topics(before, now) == names
