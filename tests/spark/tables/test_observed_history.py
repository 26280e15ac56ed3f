# SPDX-License-Identifier: Apache-2.0
"""What runs add to the past, however often, for whichever moment and by whatever clock they run."""

import shutil
from datetime import timedelta

import pyarrow.compute as pc
import pytest
from tests.pipeline.rollup.test_episodes import status
from tests.pipeline.rollup.test_lag_downsampling import BEGIN, lag_row
from tests.spark.gold.progress_rows import sample
from tests.tables.published import write

from kohort.errors import KohortError
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import Gold, load_or_none
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.progress import LAG, STATUS
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT
from kohort.spark.tables import observed_history
from kohort.spark.tables.observed_history import Observation, refresh

HOUR_S = 3600
DAY_S = 24 * HOUR_S


def at(second):
    return BEGIN + timedelta(seconds=second)


class Runs:
    """Runs whose lag and status a test knows: the lag at a second is what `lag` says of it."""

    def __init__(self, directory, lag=lambda second: second % 60):
        self.directory = directory
        self.lag = lag
        self.words = "OK"
        self.asked = []
        self._sampled = set()

    def __call__(self, second, *, samples=(), clocked=True, crash=False):
        """A run at a second, with samples of these seconds."""
        with Writer(self.directory) as writer:
            manifest = writer.manifest
            moments = sorted({*samples, second})
            rows = [lag_row("a", one, self.lag(one), self.lag(one) / 2) for one in moments]
            rows += [{**row, "level": "partition", "topic": "t"} for row in rows]
            judged = [] if self.words is None else [status(self.words, self.lag(second))]
            judged = [{**one, "level": "group", "at": at(second)} for one in judged]
            gold = {
                table.name: Gold(columns="", parts=(write(writer, table, contents),))
                for table, contents in ((LAG, rows), (STATUS, judged))
            }
            fresh = [sample(0, one) | {"sampled_at": at(one)} for one in samples]
            fresh = [one for one in fresh if one["sampled_at"] not in self._sampled]
            ends = (*manifest.end_offsets, *([write(writer, END_OFFSETS, fresh)] if fresh else []))
            manifest = manifest.with_(end_offsets=ends)
            observation = Observation(gold, at(second), self.asked.append, clocked)
            told = refresh(writer, manifest, observation)
            if not crash:
                writer.publish(manifest.with_(gold=gold, past=told.history))
                self._sampled |= {one["sampled_at"] for one in fresh}
            return told

    def rows(self, name="lag_history", **only):
        found = Tables(self.directory).table(name)
        for column, value in only.items():
            found = found.filter(pc.field(column) == value)
        order = "at" if name == "lag_history" else "valid_from"
        return found.sort_by(order).to_pylist()

    def moments(self):
        return [(row["at"] - BEGIN).total_seconds() for row in self.rows(level="group")]

    def files(self):
        """Files of the past, of those that count and of others."""
        return sum(1 for _ in (self.directory / "past").rglob("*.parquet"))


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path / "out")


def test_each_run_adds_its_moment_and_the_samples_since_the_one_before(runs):
    runs(100, samples=[40, 70])
    assert runs.moments() == [40, 70, 100]

    runs(200, samples=[40, 70, 110, 190])
    assert runs.moments() == [40, 70, 100, 110, 190, 200]
    assert len(runs.rows()) == 12

    runs(300, samples=[40, 70, 110, 190])
    assert runs.moments()[-1] == 300


def test_the_same_run_twice_adds_nothing(runs):
    runs(100, samples=[40])
    before = load_or_none(runs.directory).past

    again = runs(100, samples=[40])

    assert again.history == before
    assert runs.moments() == [40, 100]


def test_what_is_damaged_is_told_and_the_rest_stays(runs):
    runs(100)
    runs(200)
    held = load_or_none(runs.directory).past
    cut = next((runs.directory / held.lag[0].part.path).glob("groups*"))
    cut.write_bytes(cut.read_bytes()[:-20])
    (runs.directory / held.status[-1].path / "part-0.parquet").unlink()

    told = runs(300)

    texts = sorted(note.text for note in told.notes)
    assert len(texts) == 2
    assert all(text.endswith("is gone or damaged") for text in texts)
    assert runs.moments() == [200, 300]


def test_the_worst_of_a_status_is_not_from_before_it(runs):
    runs(100)
    runs.lag = lambda second: 1000 if second < 100 else 1
    runs(200, samples=[50, 150])  # a sample that was learned of late

    (row,) = runs.rows("status_history")
    assert row["worst_lag_records"] == 100 % 60


def test_a_run_that_dies_before_the_flip_leaves_nothing(runs):
    runs(100)
    before, files = runs.rows(), runs.files()
    runs.words = "WARN"

    runs(200, samples=[150], crash=True)
    assert runs.rows() == before
    assert runs.files() > files
    with Writer(runs.directory):  # whoever writes next tidies up
        assert runs.files() == files

    runs(200, samples=[150])
    assert runs.moments() == [100, 150, 200]
    assert len(runs.rows("status_history")) == 2


def test_a_moment_that_was_passed_adds_its_lag_once_and_no_status(runs):
    for second in (100, 900, 1700):
        runs(second)
    runs.words = "WARN"

    for _ in range(2):
        runs(300, clocked=False)

    assert runs.moments() == [100, 300, 900, 1700]
    (row,) = runs.rows("status_history")
    assert (row["status"], row["runs"], row["last_seen_at"]) == ("OK", 3, at(1700))
    runs.words = "OK"
    runs(2000)
    assert runs.rows("status_history")[0]["runs"] == 4


def test_within_what_was_thinned_a_moment_is_not_told_from_those_that_are_there(runs):
    for second in (0, 120, 280, 5 * DAY_S, 6 * DAY_S):
        runs(second)
    (row,) = (one for one in runs.rows(level="group") if one["moments"] > 1)
    assert (row["first_at"], row["at"], row["moments"]) == (at(0), at(280), 3)

    runs(200, clocked=False)
    assert (row in runs.rows(level="group"), len(runs.moments())) == (True, 3)
    runs(295, clocked=False)  # beside it: it was not there
    runs(7 * DAY_S)
    (row,) = (one for one in runs.rows(level="group") if one["moments"] > 1)
    assert (row["at"], row["moments"]) == (at(295), 4)


def test_a_clock_that_goes_wrong_once_loses_nothing(runs):
    for hour in range(5):
        runs(hour * HOUR_S)
    before = runs.moments()

    runs(900 * DAY_S)
    assert runs.moments() == [*before, 900 * DAY_S]
    there = load_or_none(runs.directory).past.lag
    assert {one.step_us for one in there} == {ONE_MOMENT}, "nothing is thinned by one clock"

    runs.words = "WARN"
    for hour in range(5, 9):
        runs(hour * HOUR_S, samples=[hour * HOUR_S - 60])
    assert runs.moments() == sorted({*before, *(one * HOUR_S for one in range(9))} | {900 * DAY_S}
                                    | {one * HOUR_S - 60 for one in range(6, 9)})  # fmt: skip
    ended, lasts = runs.rows("status_history")
    assert (ended["status"], ended["valid_to"]) == ("OK", at(900 * DAY_S))
    assert (lasts["status"], lasts["valid_from"], lasts["valid_to"]) == (
        "WARN",
        at(5 * HOUR_S),
        None,
    )
    assert (lasts["runs"], lasts["last_seen_at"]) == (4, at(8 * HOUR_S))


def test_a_copy_of_a_log_tells_of_the_time_since_the_copy_before(runs):
    """Each copy ends a while before its run."""
    runs(100, samples=[40])
    runs(200, samples=[40, 60, 120])

    assert runs.moments() == [40, 60, 100, 120, 200]


def test_of_many_samples_some_are_looked_at(runs, monkeypatch):
    runs(0)
    monkeypatch.setattr(observed_history, "ROWS", 0)

    runs(HOUR_S, samples=[*range(60, HOUR_S, 30)])

    assert observed_history.FEWEST // 2 <= len(runs.moments()) - 2 <= observed_history.FEWEST
    runs(2 * HOUR_S)
    assert len(runs.moments()) <= observed_history.FEWEST + 3, "those left out are not taken later"


def test_a_spike_of_ten_minutes_is_seen_next_year(tmp_path):
    def lag(second):
        return 5000 if 7 * HOUR_S + 600 <= second < 7 * HOUR_S + 1200 else 3

    runs = Runs(tmp_path, lag)
    for hour in range(12):
        runs(hour * HOUR_S, samples=[*range((hour - 1) * HOUR_S + 120, hour * HOUR_S, 120)])
    for day in (2, 12, 365, 366):
        runs(day * DAY_S)

    rows = {
        row["at"] - timedelta(minutes=row["at"].minute): row for row in runs.rows(level="group")
    }
    spike = rows[at(7 * HOUR_S)]
    assert (spike["lag_records"], spike["lag_records_min"], spike["lag_records_max"]) == (
        3,
        3,
        5000,
    )
    assert spike["lag_seconds_max"] == 2500
    assert spike["moments"] == 30
    assert max(one["lag_records_max"] for one in rows.values() if one is not spike) == 3
    (episode,) = runs.rows("status_history")
    assert (episode["worst_lag_records"], episode["worst_lag_seconds"]) == (5000, 2500)
    assert (episode["runs"], episode["status"], episode["valid_to"]) == (16, "OK", None)


def test_a_status_lasts_until_the_group_has_another_or_is_gone(runs):
    for second, word in enumerate(("OK", "OK", "ERR", "OK", None)):
        runs.words = word
        runs(second * 60)

    rows = runs.rows("status_history")
    spans = [(one["status"], one["valid_from"], one["valid_to"]) for one in rows]
    assert spans == [
        ("OK", at(0), at(120)),
        ("ERR", at(120), at(180)),
        ("OK", at(180), at(240)),
    ]


def test_many_runs_leave_few_files_of_statuses(runs):
    for number in range(40):
        runs.words = ("OK", "WARN")[number % 2]
        runs(number * 60)

    assert len(runs.rows("status_history")) == 40
    assert len(load_or_none(runs.directory).past.status) <= 11
    assert sum(one["valid_to"] is None for one in runs.rows("status_history")) == 1


def test_files_that_are_lost_are_told_and_the_rest_goes_on(runs):
    runs.words = "OK"
    runs(0)
    runs(60)
    there = load_or_none(runs.directory).past
    shutil.rmtree(runs.directory / there.lag[0].part.path)
    shutil.rmtree(runs.directory / there.status[0].path)
    with pytest.raises(KohortError, match="gone"):
        runs.rows()

    told = runs(120)

    assert [one.text.partition(" is lost: ")[0] for one in told.notes] == [
        "the past of lag from 2026-11-20 00:00:00+00:00 to 2026-11-20 00:00:00+00:00",
        "some of the past of statuses",
    ]
    assert runs.moments() == [60, 120]
    assert [one["valid_from"] for one in runs.rows("status_history")] == [at(120)]
