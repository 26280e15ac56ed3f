# SPDX-License-Identifier: Apache-2.0
"""What is kept of commits tells what held and what came last, from a moment on that it names."""

import random

from tests.spark.gold.progress_rows import BEGIN, commit, commits_frame

from kohort.pipeline.columns.times import micros
from kohort.spark.gold.commits import effective
from kohort.spark.gold.lag import committed_at
from kohort.spark.gold.newest import NEWEST, WINDOW, as_effective, newest
from kohort.spark.gold.status import DEFAULTS, _windows, windows_of

BEGIN_US = micros(BEGIN)


def life(group_id, length):
    """Commits and removals in the order of the log; clocks go back now and then."""
    choose = random.Random(group_id)
    second, rows = 0, []
    for offset in range(length):
        second += choose.choice([1, 2, 2, 3, 5, -3])
        committed = None if choose.random() < 0.08 else choose.randrange(1000)
        rows.append(commit(group_id, committed, max(second, 0), offset=offset))
    return rows


def plain(frame):
    return sorted(map(repr, frame.toArrow().to_pylist()))


def test_what_is_kept_is_enough(spark):
    lives = [life(f"g{length}", length) for length in (1, 5, WINDOW, WINDOW + 1, 33, 60)]
    choose = random.Random(7)
    cuts = [choose.randrange(len(one) + 1) for one in lives]
    old = commits_frame(
        spark, [row for one, cut in zip(lives, cuts, strict=True) for row in one[:cut]]
    )
    new = commits_frame(
        spark, [row for one, cut in zip(lives, cuts, strict=True) for row in one[cut:]]
    )
    every = commits_frame(spark, [row for one in lives for row in one])

    kept = newest(every).cache()

    assert plain(newest(new, newest(old))) == plain(kept)
    told = {row["group_id"]: row for row in kept.toArrow().to_pylist()}
    assert {one: len(row["window"]) for one, row in told.items()} == {
        f"g{length}": min(length, WINDOW) for length in (1, 5, WINDOW, WINDOW + 1, 33, 60)
    }
    assert [row["exact_us"] is None for row in told.values()].count(True) == 3
    last = {one[-1]["group_id"]: one[-1]["committed_offset"] for one in lives}
    assert {one: row["committed_offset"] for one, row in told.items()} == last
    first = max(row["exact_us"] for row in told.values() if row["exact_us"] is not None)
    latest = max(row["newest_us"] for row in told.values())
    assert BEGIN_US < first < latest
    taken = effective({"commits": every}).cache()
    for moment in (first, (first + latest) // 2, latest):
        assert plain(windows_of(kept, moment)) == plain(_windows(taken, moment, DEFAULTS)), moment
        assert plain(committed_at(as_effective(kept), [moment])) == plain(
            committed_at(taken, [moment])
        ), moment
    assert plain(committed_at(as_effective(kept, last_only=True), [latest])) == plain(
        committed_at(taken, [latest])
    )
    assert set(kept.columns) == set(NEWEST.names)
