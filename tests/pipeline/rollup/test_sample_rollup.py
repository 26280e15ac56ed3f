# SPDX-License-Identifier: Apache-2.0
"""The files of samples as they get old: few, small, and the same however runs have come."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.gold.progress_rows import at, sample
from tests.tables.published import publish

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import Part, load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup import batch_fold
from kohort.pipeline.rollup.end_samples import (
    append_samples,
    merge_samples,
    new_samples,
    walk_positions,
)
from kohort.pipeline.rollup.sample_downsampling import ORDER
from kohort.pipeline.rollup.sample_rollup import roll_up, without_known_samples
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.rollup_tiers import ROLLUP_TIERS

DAY_S = 24 * 3600
FINE, COARSE = ROLLUP_TIERS


class Runs:
    """Runs without gold: each thins the samples that are there."""

    def __init__(self, directory):
        self.directory = directory

    def __call__(self, rows=(), *, second=None):
        """A run at a second, or at the time of the last of its samples, which it adds."""
        now = micros(max(row["sampled_at"] for row in rows) if second is None else at(second))
        if rows:
            publish(self.directory, {"end_offsets": rows})
        with Writer(self.directory) as writer:
            parts = roll_up(writer, writer.manifest.end_offsets, now)
            changed = parts != writer.manifest.end_offsets
            if changed:
                writer.publish(writer.manifest.with_(end_offsets=parts))
            merge_samples(writer)
            return changed

    def snapshot(self, rows):
        with Writer(self.directory) as writer:
            append_samples(writer, pa.Table.from_pylist(rows, END_OFFSETS.arrow))

    def samples(self):
        return Tables(self.directory).table("end_offsets").sort_by(ORDER).to_pylist()

    def parts(self):
        return load(self.directory).end_offsets


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path / "out")


def every(step_s, first, last, **more):
    return [sample(second, second // 7, **more) for second in range(first, last, step_s)]


def test_samples_stay_for_a_day_then_one_for_five_minutes_then_one_for_an_hour(runs):
    runs(every(60, 0, 20 * DAY_S))

    found = runs.samples()

    young = [row for row in found if row["sampled_at"] >= at(18 * DAY_S)]
    until = COARSE.due_before(micros(at(20 * DAY_S)))
    coarse = [row for row in found if micros(row["sampled_at"]) < until]
    assert len(young) == 2 * 24 * 60
    assert {row["samples"] for row in young} == {None}
    assert len(coarse) == 12 * 24 + 2  # the first sample of each week
    assert len(found) - len(young) - len(coarse) == 6 * 24 * 12 + 6
    assert sum(row["samples"] or 1 for row in found) == 20 * 24 * 60
    assert {part.step_us for part in runs.parts()} == {0, FINE.step_us, COARSE.step_us}
    assert sum(part.rows for part in runs.parts()) == len(found)


@pytest.mark.parametrize("seed", range(6))
def test_runs_and_snapshots_in_any_order_leave_the_samples_of_one_run(tmp_path, seed, monkeypatch):
    """Some come late, and some of another folder, which is found later."""
    monkeypatch.setattr(batch_fold, "ROWS_AT_ONCE", 50)
    chance = random.Random(seed)
    rows = every(1800 + 97 * seed, 0, 24 * DAY_S)
    rows += every(149, 9 * DAY_S, 9 * DAY_S + 9000, topic="busy", origin="log", topic_id="A")
    late = [row for row in rows if chance.random() < 0.1]
    others = sorted((row for row in rows if row not in late), key=lambda row: row["sampled_at"])
    by_and_by, at_once = Runs(tmp_path / "by-and-by"), Runs(tmp_path / "at-once")
    begin = 0
    while begin < len(others):
        size = chance.randrange(1, 200)
        piece = others[begin : begin + size]
        if chance.random() < 0.4:
            by_and_by.snapshot(piece)
        else:
            by_and_by(piece)
        begin += size
    by_and_by(late, second=24 * DAY_S)
    at_once(rows, second=24 * DAY_S)

    assert by_and_by.samples() == at_once.samples()
    assert len(by_and_by.parts()) < 40
    assert not by_and_by(second=24 * DAY_S)  # there is nothing left to do


def test_a_year_of_samples_every_minute_stays_small(runs):
    """Rows of each partition: of the last days one a minute, of two weeks 288 a day, then 24."""
    days = 365
    for day in range(0, days, 5):
        runs(every(60, day * DAY_S, (day + 5) * DAY_S))

    rows = len(runs.samples())
    assert rows <= 3 * 1440 + 14 * 289 + days * 24 + 53 < days * 1440 / 30
    assert len(runs.parts()) <= 54 + 14 + 2


def test_the_age_of_a_copy_is_that_of_its_newest_sample(runs):
    rows = every(60, 0, DAY_S)
    assert not runs(rows, second=500 * DAY_S)
    assert len(runs.samples()) == len(rows)
    assert not runs(second=-5)  # a moment before all of them
    runs([sample(9 * DAY_S, 20_000)], second=2 * DAY_S)  # a moment before the last of them
    assert len(runs.samples()) == len(rows) + 1
    assert runs(second=9 * DAY_S)
    assert len(runs.samples()) < len(rows) / 4


def test_one_run_with_a_wrong_clock_thins_the_others_and_no_later_ones(runs):
    """As the docs say. What is told stays true, if coarser."""
    rows = every(60, 0, 5 * DAY_S)
    runs(rows)
    runs([sample(35 * DAY_S, 9 * DAY_S)])
    found = runs.samples()
    assert len(found) <= 5 * 24 + 3
    known = {(row["sampled_at"], row["end_offset"]) for row in rows}
    assert {(row["sampled_at"], row["end_offset"]) for row in found[:-1]} <= known

    more = every(60, 5 * DAY_S, 6 * DAY_S)
    runs(more)

    assert len(runs.samples()) == len(found) + len(more)


def test_the_newest_sample_of_each_partition_stays(runs):
    """A folder in which nothing is written is walked on from there, also a year later."""
    rows = every(11, 0, 3000, topic="idle", origin="log", topic_id="A")
    runs(rows)
    seen = walk_positions(runs.directory, load(runs.directory))
    runs([sample(400 * DAY_S, 9)])

    assert walk_positions(runs.directory, load(runs.directory)) == seen
    assert len(runs.samples()) < 5


def test_old_samples_are_read_once(runs):
    """What is thinned is read again only when more comes into the time of its file."""
    runs(every(600, 0, 30 * DAY_S + 601))
    thin = [part for part in runs.parts() if part.step_us]
    runs(every(600, 30 * DAY_S + 1200, 30 * DAY_S + 3600))
    assert [part for part in runs.parts() if part.step_us] == thin
    late = sample(9 * DAY_S + 5, 1, topic="late")
    runs([late], second=31 * DAY_S)
    left = [part for part in runs.parts() if part in thin]
    assert len(left) == len(thin) - 1
    assert sum(row["topic"] == "late" for row in runs.samples()) == 1


def test_what_was_left_out_is_no_news_when_it_is_told_again(runs):
    """Of an older copy, which is walked from its begin each time. What was never known is news."""
    rows = every(60, 0, 20 * DAY_S)
    runs(rows)
    known = runs.samples()
    again = pa.Table.from_pylist([row | {"samples": 1} for row in rows], END_OFFSETS.arrow)
    late = [sample(5 * DAY_S + 7, 1, topic="late"), sample(20 * DAY_S + 7, 10**6)]
    both = pa.concat_tables([again, pa.Table.from_pylist(late, END_OFFSETS.arrow)])

    with Writer(runs.directory) as writer:
        there = writer.manifest.end_offsets
        assert (
            without_known_samples(writer, there, new_samples(writer, writer.manifest, again)) == ()
        )
        (part,) = without_known_samples(writer, there, new_samples(writer, writer.manifest, both))
        assert part.rows == len(late)
        assert without_known_samples(writer, (), (part,)) == (part,)
        young = new_samples(writer, writer.manifest, both.slice(len(rows) + 1))
        assert without_known_samples(writer, there, young) == young
    assert runs.samples() == known


def test_files_of_an_earlier_kohort_have_no_such_column(runs):
    for begin in range(0, 25 * 300, 300):
        rows = pa.Table.from_pylist(every(60, begin, begin + 300), END_OFFSETS.arrow)
        with Writer(runs.directory) as writer:
            name = f"end_offsets/{writer.new_name('')}"
            (writer.directory / name).mkdir(parents=True)
            file = writer.directory / name / "samples.parquet"
            pq.write_table(rows.drop_columns("samples"), file)
            parts = (*writer.manifest.end_offsets, Part(path=name, rows=rows.num_rows))
            writer.publish(writer.manifest.with_(end_offsets=parts))
    with Writer(runs.directory) as writer:
        merge_samples(writer)
    assert len(runs.parts()) < 10
    assert {row["samples"] for row in runs.samples()} == {None}

    runs([sample(3 * DAY_S, 5000)])

    assert [row["samples"] for row in runs.samples()][:3] == [1, 4, 5]
