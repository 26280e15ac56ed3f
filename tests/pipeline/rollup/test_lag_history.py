# SPDX-License-Identifier: Apache-2.0
"""The files of the past of lag: what they hold, how many there are, and what is left of a crash."""

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.rollup.test_lag_downsampling import BEGIN, EPOCH, lag_row

from kohort.pipeline.format import manifest
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup import lag_history
from kohort.pipeline.rollup.lag_downsampling import downsample, of_moments
from kohort.pipeline.rollup.lag_history import Origin, recorded_moments, roll_up, with_new_rows
from kohort.pipeline.schemas import LAG_HISTORY
from kohort.pipeline.schemas.progress import LAG
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT, ROLLUP_TIERS

FINE, COARSE = ROLLUP_TIERS
DAY_S = 24 * 3600
GROUPS = ("a", "b", "ß")
PLACES = (
    {"level": "group"},
    {"level": "topic", "topic": "t"},
    {"level": "partition", "topic": "t", "topic_partition": 0},
)


def micros(second):
    return (BEGIN - EPOCH) // timedelta(microseconds=1) + second * 1_000_000


def lag_of(second):
    """The rows of all groups at a moment; a spike now and then."""
    return [
        lag_row(group, second, 900 if second % 7000 < 60 else second % 97, 1.5, **place)
        for group in GROUPS
        for place in PLACES
    ]


def lag_table(seconds):
    """The table `lag` of some moments."""
    return pa.Table.from_pylist([row for one in seconds for row in lag_of(one)], LAG.arrow)


class Runs:
    """Runs one after the other into one directory, and what they were told."""

    def __init__(self, directory):
        self.writer = Writer(directory)
        self.chunks = ()
        self.seen = []
        self._numbers = 0

    def __call__(self, *seconds, now=None):
        """A run that has computed the lag of some moments."""
        self._numbers += 1
        path = self.writer.directory / f"lag-{self._numbers}.parquet"
        pq.write_table(lag_table(seconds), path)
        self.seen += seconds
        origin = Origin([str(path)], LAG.arrow, shape=of_moments)
        grown = with_new_rows(self.writer, self.chunks, [origin])
        self.chunks = roll_up(self.writer, grown, micros(max(seconds) if now is None else now))

    def rows(self, step_us=None):
        chosen = [one for one in self.chunks if step_us in (None, one.step_us)]
        tables = [pq.read_table(self.writer.directory / one.part.path) for one in chosen]
        return pa.concat_tables([LAG_HISTORY.arrow.empty_table(), *tables])

    def whole(self):
        """The rows of all moments, as they would be had they all come at once."""
        return of_moments(lag_table(self.seen))


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_each_age_has_its_step_and_nothing_is_lost(runs):
    for number in range(24 * 6):
        first = number * 4 * 3600
        runs(first, first + 30, first + 200, first + 1200)

    now = micros(max(runs.seen))
    bounds = [0, COARSE.due_before(now), FINE.due_before(now), now + 1]
    steps = [COARSE.step_us, FINE.step_us, ONE_MOMENT]
    for step, first, last in zip(steps, bounds, bounds[1:], strict=False):
        mine = [one for one in runs.seen if first <= micros(one) < last]
        assert mine
        expected = of_moments(lag_table(mine))
        found = downsample(runs.rows(step), ONE_MOMENT)
        assert found.to_pylist() == downsample(expected, step).to_pylist()
    # Single moments of two days in a few files, then a file for each day, then one for each week.
    assert len(runs.chunks) < 2 * manifest.MOST_PARTS + 15 + 4


@settings(max_examples=15, deadline=None)
@given(
    pieces=st.lists(
        st.lists(st.integers(0, 30 * DAY_S), min_size=1, max_size=5), min_size=1, max_size=8
    )
)
def test_in_any_order_each_moment_counts_once(pieces, tmp_path_factory):
    """A run may be for a moment long ago, and a clock may go back: moments come as they like."""
    runs = Runs(tmp_path_factory.mktemp("past"))
    for piece in pieces:
        known = recorded_moments(runs.writer.directory, runs.chunks, [micros(one) for one in piece])
        fresh = sorted({one for one in piece if micros(one) not in known})
        if fresh:
            runs(*fresh, now=max(piece))
        rows = runs.rows().to_pylist()
        keys = [(row["group_id"], row["level"], row["first_at"]) for row in rows]
        assert len(keys) == len(set(keys))
        spans = recorded_moments(runs.writer.directory, runs.chunks, [micros(one) for one in piece])
        assert spans == {micros(one) for one in piece}
    runs.chunks = roll_up(runs.writer, runs.chunks, micros(90 * DAY_S))
    assert {one.step_us for one in runs.chunks} == {COARSE.step_us}

    found = downsample(runs.rows(), ONE_MOMENT)

    assert found.to_pylist() == downsample(runs.whole(), COARSE.step_us).to_pylist()
    files = [one.first_us // COARSE.file_us for one in runs.chunks]
    assert len(files) == len(set(files))


def test_a_row_is_written_a_few_times_and_not_again_and_again(runs, monkeypatch):
    written = []
    monkeypatch.setattr(
        lag_history,
        "downsample",
        lambda rows, step: written.append(rows.num_rows) or downsample(rows, step),
    )
    for day in range(40):
        runs(day * DAY_S, day * DAY_S + 60)

    # When it is seen, in a merge of small files, beside what ages, as a day, as a week.
    assert sum(written) < 5 * runs.whole().num_rows


def test_many_groups_are_thinned_a_few_at_a_time(runs, monkeypatch):
    monkeypatch.setattr(lag_history, "ROWS_AT_ONCE", 5)
    read = []
    monkeypatch.setattr(
        lag_history,
        "downsample",
        lambda rows, step: read.append(rows.num_rows) or downsample(rows, step),
    )
    runs(0, 60, 120, 4000)
    runs(40 * DAY_S)

    assert max(read) <= 5
    expected = downsample(runs.whole(), COARSE.step_us).to_pylist()
    assert downsample(runs.rows(), COARSE.step_us).to_pylist() == expected


def test_many_small_files_become_one_and_large_ones_stay(runs, monkeypatch):
    monkeypatch.setattr(manifest, "FEW_ROWS", 2 * len(GROUPS) * len(PLACES))
    runs(1, 2)
    (large,) = runs.chunks
    for second in range(3, 40):
        runs(second)

    assert large in runs.chunks
    assert len(runs.chunks) < 2 * manifest.MOST_PARTS
    assert runs.rows().num_rows == 39 * len(GROUPS) * len(PLACES)


def test_there_is_what_a_row_is_about_or_around(runs):
    runs(0, 100, 200, 300, 340)
    known = range(-1, 400, 1)

    def found():
        moments = [micros(one) for one in known]
        return [
            one
            for one in known
            if micros(one) in recorded_moments(runs.writer.directory, runs.chunks, moments)
        ]

    assert found() == [0, 100, 200, 300, 340]
    runs.chunks = roll_up(runs.writer, runs.chunks, micros(3 * DAY_S))
    assert found() == [*range(201), *range(300, 341)]


def test_nothing_is_written_of_no_rows(runs):
    assert with_new_rows(runs.writer, (), []) == ()
    assert roll_up(runs.writer, (), micros(0)) == ()
