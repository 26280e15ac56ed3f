# SPDX-License-Identifier: Apache-2.0
"""Lag in records and seconds: rows worked out by hand, and random histories against the truth."""

import bisect
import math
import random
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.gold.progress_rows import (
    at,
    commit,
    commits_frame,
    frame,
    sample,
    samples_frame,
    seconds,
)

from kohort.pipeline.columns.times import micros
from kohort.pipeline.rollup.sample_downsampling import downsample
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.membership import MEMBERS
from kohort.pipeline.schemas.rollup_tiers import RollupTier
from kohort.pipeline.sources import sampling
from kohort.spark.gold.lag import lag, lag_at, sampled_times
from kohort.spark.gold.measure import Context
from kohort.spark.gold.newest import as_effective, newest
from kohort.spark.gold.rates import held_back, rates
from kohort.wire.batch import build

BEGIN_US = micros(at(0))
NEW_ID, OLD_ID = "A" * 22, "B" * 22

SAMPLES = [
    sample(0, 100),
    sample(60, 200),
    sample(120, 200),
    sample(180, 300),
    # a topic whose batches are known, one of them at 90
    *(sample(when, end, topic="folder", origin="log") for when, end in ((30, 10), (90, 20))),
    # between two walks over its folder retention has removed offsets 10 and 11
    sample(30, 10, topic="gap", origin="log"),
    sample(90, 20, topic="gap", origin="log", log_start_offset=12),
    # retention has removed the first 50
    sample(0, 80, topic="short", log_start_offset=50),
    sample(100, 90, topic="short", log_start_offset=50),
    # deleted and made anew between the samples
    sample(0, 500, topic="anew", topic_id=OLD_ID),
    sample(100, 7, topic="anew", topic_id=NEW_ID),
    # the same, in folders that know no id
    *(
        sample(when, end, topic="nameless", origin="log")
        for when, end in ((10, 50), (20, 100), (100, 5), (120, 60))
    ),
    # two partitions more, of which one is empty
    sample(60, 40, topic_partition=1),
    sample(60, 0, topic_partition=2),
]
COMMITS = [
    commit("behind", 150, 50),
    commit("behind", 100, 130, offset=140),
    commit("level", 300, 190),
    commit("early", 50, 10),
    commit("beyond", 900, 20),
    commit("ahead", 310, 190, offset=191),
    commit("removed", 100, 5),
    commit("removed", None, 100),
    commit("batches", 15, 40, topic="folder"),
    commit("batches", 20, 95, topic="folder"),
    commit("batches", 10, 40, topic="gap", offset=41),
    commit("same", 200, 70),
    commit("lost", 10, 1, topic="short"),
    commit("old", 450, 2, topic="anew", topic_id=OLD_ID),
    commit("again", 40, 115, topic="nameless"),
    commit("unknown", 5, 3, topic="elsewhere"),
    commit("odd", -3, 4),
]
SUBSCRIBED = [
    {
        "partition": 0,
        "group_id": "reader",
        "subscribed_topics": ["folder", "not there"],
        "valid_from": at(70),
        "valid_to": at(150),
    },
    {"partition": 0, "group_id": "reader", "subscribed_topics": ["short"], "valid_from": at(150)},
]


def computed(spark, times):
    frames = {
        "commits": commits_frame(spark, COMMITS),
        "end_offsets": samples_frame(spark, SAMPLES),
        "members": frame(spark, MEMBERS, SUBSCRIBED),
    }
    found = defaultdict(dict)
    for row in lag_at(frames, [at(time) for time in times]).collect():
        key = (row.group_id, row.topic, row.topic_partition, row.level)
        found[seconds(row.at)][key] = row
    return found


def told(row):
    numbers = (row.lag_seconds, row.lag_seconds_error)
    return (
        row.lag_records,
        *(one if one is None else round(one, 6) for one in numbers),
        row.reason,
    )


def test_rows_worked_out_by_hand(spark):
    found = computed(spark, [55, 89, 90, 119, 150, 200])
    now = found[200]

    def of(group_id, topic="t", index=0, level="partition", time=200):
        return found[time].get((group_id, topic, index, level))

    # offset 100 is the first of the 100 records that came between 0 and 60
    behind = of("behind")
    with_bracket = 60 * 0.5 / 100
    assert told(behind) == (200, 200 - with_bracket, 60 - with_bracket, None)
    assert (behind.committed_offset, behind.end_offset) == (100, 300)
    assert (seconds(behind.committed_at), seconds(behind.end_sampled_at)) == (130, 180)
    assert told(of("behind", time=55)) == (0, 0.0, 55.0, None)  # the sample is 55 s old
    assert told(of("behind", time=90)) == (50, 90 - 30.3, 30.3, None)
    assert told(of("level")) == (0, 0.0, 20.0, None)
    assert told(of("early")) == (250, 200.0, None, "before_samples")  # there at 0 already
    assert told(of("beyond")) == (0, 0.0, 20.0, "beyond_end")
    assert told(of("ahead")) == (0, 0.0, 20.0, None)  # committed after the sample: all is well
    assert told(of("odd")) == (300, 200.0, None, "before_samples")
    assert of("removed", time=90).committed_offset == 100
    assert of("removed") is None

    # the batch at 90 had offset 15, and nothing was written between 30 and 90
    assert told(of("batches", "folder", time=89)) == (0, 0.0, 0.0, None)
    assert told(of("batches", "folder", time=90)) == (5, 0.0, 0.0, None)
    # but nobody knows until when the folder was as it is: it may be a copy
    assert told(of("batches", "folder", time=150)) == (0, 0.0, 60.0, None)
    assert told(of("batches", "folder")) == (0, 0.0, 110.0, None)
    # what was removed before the folder was walked again may have been anything
    assert told(of("batches", "gap", time=89)) == (0, 0.0, 59.0, None)
    # the end was the same before and after
    assert told(of("same", time=119)) == (0, 0.0, 0.0, None)

    lost = of("lost", "short")
    assert told(lost) == (40, 200.0, None, "before_samples")
    assert lost.records_lost == 40
    assert told(of("old", "anew", time=90)) == (50, 90.0, None, "before_samples")
    assert told(of("old", "anew")) == (None, None, None, "topic_recreated")
    assert told(of("again", "nameless", time=150)) == (20, 30.0, 0.0, None)
    assert told(of("unknown", "elsewhere")) == (None, None, None, "no_end_offset")

    # the other partitions of a topic that a group has committed for
    assert told(of("level", index=1)) == (None, None, None, "never_committed")
    assert told(of("level", index=2)) == (0, 0.0, 140.0, "never_committed")
    assert of("level", index=1, time=55) is None

    # nor for what a member subscribes to, as long as it does
    assert told(of("reader", "folder", time=90)) == (None, None, None, "never_committed")
    assert of("reader", "folder", time=55) is None
    assert of("reader", "folder", time=150) is None
    assert of("reader", "short", time=150).end_offset == 90

    topic = now["behind", "t", None, "topic"]
    assert told(topic) == (200, 199.7, None, "never_committed")
    assert (topic.partitions, topic.partitions_unknown) == (3, 1)
    group = now["unknown", None, None, "group"]
    assert told(group) == (None, None, None, "no_end_offset")
    assert (group.partitions, group.partitions_unknown) == (1, 1)


def test_no_end_offsets_at_all(spark):
    frames = {
        "commits": commits_frame(spark, [commit("g", 1, 0)]),
        "end_offsets": frame(spark, END_OFFSETS, []),
    }
    rows = lag(frames, Context(at(10))).collect()
    assert {(row.level, row.reason, row.lag_records) for row in rows} == {
        (level, "no_end_offset", None) for level in ("partition", "topic", "group")
    }


def test_moments_asked_for(spark):
    """In a list, as elsewhere here, or a frame."""
    samples = samples_frame(spark, [sample(second, 5) for second in range(100)])
    frames = {"commits": commits_frame(spark, [commit("g", 1, 0)]), "end_offsets": samples}
    some = frame(spark, END_OFFSETS, [sample(7, 0), sample(11, 0)]).select("sampled_at")
    asked = lag_at(frames, some).where("level = 'group'").collect()
    assert sorted(seconds(row.at) for row in asked) == [7, 11]


def test_moments_of_the_table():
    """The latest sample in each of a few equal steps that begin at multiples of their length."""
    assert sampled_times(np.arange(64), 63, 4) == [15, 31, 47, 63]
    assert sampled_times(np.arange(64), 40, 4) == [15, 31, 40]
    assert sampled_times(np.array([70, 3, 3, 90]), 100, 10) == [3, 70, 90]
    assert sampled_times(np.array([], np.int64), 100, 10) == []
    assert sampled_times(np.array([7]), 6, 10) == []


@pytest.mark.parametrize("seed", range(20))
def test_moments_that_were_chosen_once_are_enough(seed):
    """With more samples, and more to tell of each moment, no earlier one is needed that was not."""
    choose = random.Random(seed)
    times = np.unique(
        [BEGIN_US + choose.randrange(10 ** choose.randrange(3, 10)) for _ in range(300)]
    )
    chosen = {int(one) for one in times}
    most = 40
    for end in sorted(choose.sample(range(1, len(times) + 1), 12)):
        known = times[:end]
        most = max(10, most - choose.randrange(5))
        now = sampled_times(known, int(known[-1]), most)
        assert len(now) <= most
        assert now[-1] == known[-1]
        assert {one for one in now if one <= max(chosen)} <= chosen
        chosen = {*now}


def history(seed):
    """When records were appended, when the end was looked at, what was committed, and moments."""
    choose = random.Random(seed)
    appended = sorted(round(choose.uniform(0, 1000), 3) for _ in range(choose.randrange(1, 60)))
    if seed % 3 == 0:  # a topic with a long pause
        appended = sorted([*(one / 10 for one in appended), *(900 + one / 10 for one in appended)])
    looked = sorted(round(choose.uniform(0, 1000), 3) for _ in range(choose.randrange(1, 25)))
    commits = [
        (time, choose.randrange(bisect.bisect_right(appended, time) + 1))
        for time in sorted(round(choose.uniform(0, 1000), 3) for _ in range(6))
    ]
    return appended, looked, commits


def copy_of(number, looked):
    """When a folder was copied: every other one long before anybody reads it."""
    return looked[-1] if number % 2 else math.inf


def rows_of(stories):
    """Samples and commits of random topics, each seen from outside and in its folder."""
    samples, commits = [], []
    for number, (appended, looked, done) in enumerate(stories):
        name = {"topic": f"t{number}"}
        samples += [sample(time, bisect.bisect_right(appended, time), **name) for time in looked]
        commits += [
            commit("g", offset, time, **name, offset=position)
            for position, (time, offset) in enumerate(done)
        ]
        folder = {"topic": f"folder{number}", "origin": "log"}
        copied = copy_of(number, looked)
        samples += [
            sample(time, end + 1, **folder) for end, time in enumerate(appended) if time <= copied
        ]
        commits += [
            row | {"topic": folder["topic"]}
            for (time, _), row in zip(done, commits[-len(done) :], strict=True)
            if time <= copied
        ]
    return samples, commits


def truth_of(stories, row):
    """For how long the next record had been there, as every record knows."""
    kind, number = row.topic.rstrip("0123456789"), int(row.topic.lstrip("abcdefghijklmnopqrst"))
    appended, looked, done = stories[number]
    now, copied = seconds(row.at), copy_of(number, looked) if kind == "folder" else math.inf
    held = [offset for time, offset in done if time <= min(now, copied)][-1]
    assert row.committed_offset == held
    there = bisect.bisect_right(appended, now)
    return max(now - appended[held], 0.0) if held < there else 0.0


def check_truth(stories, row):
    truth = truth_of(stories, row)
    assert row.lag_seconds >= 0
    if row.lag_seconds_error is None:
        assert row.reason == "before_samples"
        assert truth >= row.lag_seconds - 1e-5
    else:
        assert abs(truth - row.lag_seconds) <= row.lag_seconds_error + 1e-5, row


def test_the_truth_is_within_the_error(spark):
    """Random topics, sampled at random: pure SQL against what every record knows."""
    stories = [history(seed) for seed in range(80)]
    samples, commits = rows_of(stories)
    frames = {
        "commits": commits_frame(spark, commits),
        "end_offsets": samples_frame(spark, samples),
    }
    rows = lag_at(frames, [at(time) for time in range(0, 1200, 100)]).collect()
    checked = 0
    for row in (row for row in rows if row.level == "partition"):
        checked += 1
        kind, number = row.topic.rstrip("0123456789"), int(row.topic.lstrip("abcdefghijklmnopqrst"))
        appended, looked, _ = stories[number]
        now, copied = seconds(row.at), copy_of(number, looked) if kind == "folder" else math.inf
        sampled_at = [time for time in (appended if kind == "folder" else looked) if time <= copied]
        known = [time for time in sampled_at if time <= now]
        if not known:
            assert row.reason == "no_end_offset"
            continue
        end = bisect.bisect_right(appended, known[-1])
        assert row.lag_records == max(end - row.committed_offset, 0)
        check_truth(stories, row)
        if kind == "folder":
            error = 0 if row.lag_records else max(0, now - sampled_at[-1])
            assert abs(row.lag_seconds_error - error) < 1e-5
    assert checked > 1000


@pytest.mark.parametrize("step", [50, 200])
def test_samples_that_were_left_out_make_the_error_larger_and_nothing_wrong(spark, step):
    """The lag of now rests on the newest sample, so in records it is the same."""
    stories = [history(seed) for seed in range(80)]
    samples, commits = rows_of(stories)
    tier = RollupTier(step * 1_000_000, 0, 400 * 1_000_000)
    every = pa.Table.from_pylist(samples, END_OFFSETS.arrow)
    few = downsample(every, tier)
    assert few.num_rows < len(samples) / 2
    times = [at(time) for time in range(0, 1200, 100)]
    found = {}
    for rows in (every, few):
        frames = {
            "commits": commits_frame(spark, commits),
            "end_offsets": spark.createDataFrame(rows),
        }
        found[rows.num_rows] = {
            (row.topic, seconds(row.at)): row
            for row in lag_at(frames, times).where("level = 'partition'").collect()
        }
    exact, coarse = found[every.num_rows], found[few.num_rows]
    assert exact.keys() == coarse.keys()
    errors = Counter()
    for key, row in coarse.items():
        other = exact[key]
        if row.reason == "no_end_offset":  # the first sample is the same
            assert other.reason == "no_end_offset"
            continue
        check_truth(stories, row)
        errors[row.lag_seconds_error == 0, other.lag_seconds_error == 0] += 1
        assert row.end_sampled_at <= other.end_sampled_at
        if row.lag_seconds_error is not None:
            assert abs(row.lag_seconds - other.lag_seconds) <= row.lag_seconds_error + 1e-5
        if key[1] >= 1000:
            assert (row.lag_records, row.end_offset) == (other.lag_records, other.end_offset)
    assert errors[True, True] > 0
    assert errors[False, True] > 0


def test_lag_is_found_without_sorting_strings(spark, capsys):
    frames = {
        "commits": commits_frame(spark, COMMITS),
        "end_offsets": samples_frame(spark, SAMPLES),
    }
    for times in ([at(1)], [at(1), at(2)]):
        lag_at(frames, times).explain()
        plan = capsys.readouterr().out
        assert "HashAggregate" in plan
        assert "SortAggregate" not in plan


def test_a_commit_of_minus_one_is_none(spark):
    """As an offset it would be a lag of all records, and a rate of all of them at the next one."""
    commits = [
        *(commit("g", -1, 10), commit("g", 40, 10, topic_partition=1)),
        *(commit("again", -1, 10), commit("again", 90, 20)),
        *(commit("gone", 90, 10), commit("gone", -1, 20)),
    ]
    samples = [sample(0, 100), sample(0, 100, topic_partition=1), sample(60, 100)]
    frames = {
        "commits": commits_frame(spark, commits),
        "end_offsets": samples_frame(spark, samples),
    }

    rows = lag_at(frames, [at(60)]).where("level = 'partition'").collect()
    moved = rates(frames["commits"], held_back(frames["commits"])).collect()
    kept = as_effective(newest(frames["commits"])).collect()

    found = {(row.group_id, row.topic_partition): (row.lag_records, row.reason) for row in rows}
    assert found["g", 0] == (None, "never_committed")
    assert found["g", 1][0] == 60
    assert found["again", 0][0] == 10
    assert ("gone", 0) not in found
    assert {(row.group_id, row.records) for row in moved} == {
        *(("g", None), ("again", None), ("gone", None))
    }
    assert {row.state for row in kept if row.committed_offset is None} == {"removed"}
    assert -1 not in {row.committed_offset for row in kept}


def test_a_clock_that_ran_ahead_in_the_past_gives_a_lag_with_a_bound(spark, tmp_path):
    """One record of an hour ahead, and a thousand of then behind it: up to that hour nobody knows
    when they came, so who has read none of them is not told to be level with them.
    """
    begin_ms = BEGIN_US // 1000
    folder = tmp_path / "t-0"
    folder.mkdir()
    times = [0, 3600, *(number / 10 for number in range(1, 1001))]
    batches = [
        build([(None, b"x")], begin_ms + int(1000 * second), base_offset=number)
        for number, second in enumerate(times)
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    samples = sampling.sample_folders(str(tmp_path))
    frames = {
        "commits": commits_frame(spark, [commit("g", 1, 1)]),
        "end_offsets": spark.createDataFrame(samples),
    }
    later = (1800, 3599, 3601)
    rows = lag_at(frames, map(at, later)).where("level = 'partition'").orderBy("at").collect()
    for row, second in zip(rows, later, strict=True):
        low, high = (row["lag_seconds"] + sign * row["lag_seconds_error"] for sign in (-1, 1))
        assert low <= second <= high  # since the record ahead had come, right behind the first
    assert [row["lag_records"] for row in rows] == [0, 0, 1001]
