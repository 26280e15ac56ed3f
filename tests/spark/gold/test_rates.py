# SPDX-License-Identifier: Apache-2.0
"""Rates as they get coarser: cut anywhere, they are the same, and no commit of them is lost."""

import random
from collections import defaultdict

import pyarrow as pa
import pytest
from tests.spark.gold.progress_rows import at, commit, commits_frame, seconds

from kohort.pipeline.columns.times import micros
from kohort.pipeline.schemas.progress import COMMIT_RATES
from kohort.pipeline.schemas.rollup_tiers import ROLLUP_TIERS
from kohort.spark.gold.measure import Context
from kohort.spark.gold.rate_rollup import newest_of, roll_up_rates
from kohort.spark.gold.rates import commit_rates, held_back, rates

FINE, COARSE = ROLLUP_TIERS
DAY_S = 24 * 3600
DAYS = 30
EVER = at(10**9)


def life(seed, group):
    """Commits of a group for a month, now and then in a burst: with resets, removals and a clock
    that goes back.
    """
    choose = random.Random(seed)
    rows, second, offset = [], choose.randrange(DAY_S), 0
    while second < DAYS * DAY_S:
        second += choose.choice([1, 7, 40, 900, 20_000])
        offset = max(0, offset + choose.choice([0, 1, 5, 900, 1 << 41, -30]))
        told = None if choose.random() < 0.05 else offset
        late = second - choose.choice([0] * 20 + [3, 90_000])
        when = {
            "effective_at": at(late),
            "timestamp": at(late),
            "complete_from": at(5 * DAY_S + 77),
        }
        rows.append(commit(group, told, second, offset=len(rows), **when))
    return rows


@pytest.fixture(scope="module")
def lives():
    return [row for seed in range(6) for row in life(seed, f"g{seed}")]


def told(frame):
    return sorted(map(repr, frame.toArrow().to_pylist()))


@pytest.fixture(scope="module")
def single(spark, lives):
    """A row of each commit, and the time of the newest."""
    frame = commits_frame(spark, lives)
    found = rates(frame, held_back(frame)).toArrow()
    return found, newest_of(frame, EVER).toArrow()


@pytest.mark.parametrize("seed", range(3))
def test_cut_anywhere_and_merged_by_and_by_they_are_the_whole(spark, single, seed):
    """Each piece is merged when its own newest commit was the newest of all."""
    rows, newest = single
    choose = random.Random(seed)
    whole = told(roll_up_rates(spark.createDataFrame(rows), spark.createDataFrame(newest)))
    kept = spark.createDataFrame(rows.slice(0, 0))
    order = choose.sample(range(rows.num_rows), rows.num_rows)
    cuts = sorted(choose.sample(range(rows.num_rows), 3))
    (last,) = newest["newest_us"].to_pylist()
    for first, end in zip([0, *cuts], [*cuts, rows.num_rows], strict=True):
        piece = kept.unionByName(spark.createDataFrame(rows.take(order[first:end])))
        now = last if end == rows.num_rows else last - choose.randrange(20 * DAY_S) * 1_000_000
        then = spark.createDataFrame([(0, now)], "partition int, newest_us bigint")
        kept = spark.createDataFrame(roll_up_rates(piece, then).toArrow())

    assert told(kept) == whole


def test_a_step_keeps_every_sum_the_extremes_and_the_last(spark, lives, single):
    rows, newest = single
    (last,) = newest["newest_us"].to_pylist()
    steps = defaultdict(list)
    for row in rows.to_pylist():
        now = micros(row["effective_at"])
        tier = (
            COARSE
            if now < COARSE.due_before(last)
            else FINE
            if now < FINE.due_before(last)
            else None
        )
        huge = row["records"] is not None and abs(row["records"]) > 1 << 40
        step = row["offset"] if tier is None or huge else (tier.step_us, now // tier.step_us)
        is_complete = row["effective_at"] >= row["complete_from"]
        steps[row["group_id"], step, is_complete, row["is_reset"]].append(row)

    found = commit_rates({"commits": commits_frame(spark, lives)}, Context(EVER)).toArrow()

    assert found.schema.names == COMMIT_RATES.names
    by_last = {(row["group_id"], row["offset"]): row for row in found.to_pylist()}
    assert len(by_last) == found.num_rows == len(steps) < rows.num_rows / 1.5
    for mine in steps.values():
        one = max(mine, key=lambda row: row["offset"])
        row = by_last[one["group_id"], one["offset"]]
        assert row["commits"] == len(mine)
        assert row["committed_offset"] == one["committed_offset"]
        times = [each["effective_at"] for each in mine]
        assert (row["first_at"], row["effective_at"]) == (min(times), max(times))
        for name in ("records", "seconds"):
            known = [each[name] for each in mine if each[name] is not None]
            assert row[name] == (sum(known) if known else None)
        speeds = [
            each["records_per_second"] for each in mine if each["records_per_second"] is not None
        ]
        assert row["records_per_second_min"] == min(speeds, default=None)
        assert row["records_per_second_max"] == max(speeds, default=None)
        if row["records_per_second"] is not None:
            assert row["records_per_second"] == row["records"] / row["seconds"]
    assert sum(row["commits"] for row in by_last.values()) == rows.num_rows


def test_a_month_of_a_commit_a_minute_is_a_few_thousand_rows(spark):
    """The newest commit counts, whenever that was: 24 rows a day, then 288, then each commit."""
    rows = [commit("g", minute, minute * 60) for minute in range(DAYS * 1440)]
    found = commit_rates({"commits": commits_frame(spark, rows)}, Context(EVER)).toArrow()

    young = [row for row in found.to_pylist() if row["commits"] == 1]
    assert len(young) == 1 + 2 * 1440  # nothing is before the first
    assert found.num_rows <= 1 + 2 * 1440 + 13 * 288 + 20 * 24
    assert {row["records_per_second"] for row in found.to_pylist()} == {None, 1 / 60}
    assert max(seconds(row["effective_at"]) for row in young) == DAYS * DAY_S - 60


def test_a_commit_of_a_time_to_come_makes_no_other_old(spark):
    """It stands alone, and the others are merged as without it; until its time has come."""
    rows = [commit("g", minute, minute * 60) for minute in range(3 * 1440)]
    ahead = commit("ahead", 1, 400 * DAY_S)

    def found(rows, now):
        frame = commits_frame(spark, rows)
        return commit_rates({"commits": frame}, Context(at(now))).toArrow().to_pylist()

    without = found(rows, 3 * DAY_S)
    both = found([*rows, ahead], 3 * DAY_S)
    assert sorted(map(repr, both)) == sorted(
        map(repr, [*without, *(row for row in both if row["group_id"] == "ahead")])
    )
    assert len(both) == len(without) + 1 > 2 * 1440
    assert len(found([*rows, ahead], 400 * DAY_S)) <= 3 * 24 + 2
    assert len(found([*rows, ahead], -1)) == len(rows) + 1  # nothing is known of any age


def test_many_commits_in_a_row_are_compared_without_overflow(spark, single):
    rows, newest = single
    merged = rows.slice(rows.num_rows - 1, 1).to_pylist()
    frames = []
    for commits, records in ((1 << 30, 1 << 62), (1 << 30, -(1 << 62)), (3, 3 << 40)):
        row = merged[0] | {"commits": commits, "records": records, "effective_at": at(60)}
        frames.append(row | {"offset": len(frames), "first_at": at(0), "is_reset": False})
    frame = spark.createDataFrame(pa.Table.from_pylist(frames, COMMIT_RATES.arrow))

    (found,) = roll_up_rates(frame, spark.createDataFrame(newest)).toArrow().to_pylist()

    assert (found["commits"], found["records"]) == ((1 << 31) + 3, 3 << 40)
