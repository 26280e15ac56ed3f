# SPDX-License-Identifier: Apache-2.0
"""Tables of progress that are gone on with are those of one run, however a log comes."""

import random
import shutil
import sys
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from tests.spark import rows as made
from tests.spark.feeding import FedDecoded
from tests.spark.gold.test_commits import entry_of, story
from tests.spark.histories import compaction, replay

import kohort.spark
from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import MOST_PARTS, load, to_join
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.end_samples import append_samples
from kohort.pipeline.schemas import DECODED, END_OFFSETS
from kohort.spark import jobs
from kohort.spark.gold.lag import lag_at
from kohort.spark.tables import compute, log_progress, progress, progress_run
from kohort.spark.tables.progress_run import TABLES

AS_OF = replay.AS_OF
NAMES = [table.name for table in TABLES]
STORIES = 20_000
"""The first partition with made-up transactions."""


def decoded(raw):
    return pa.Table.from_batches([decode(ArrowRows(raw))], DECODED.arrow)


@pytest.fixture(scope="module")
def recorded():
    """Partition -> decoded rows, and samples of ends: lives of real clients, what a cleaner has
    left of some, and made-up transactions.
    """
    tables, ends = [], []
    for number, (name, history) in enumerate(replay.histories().items()):
        tables.append(history.rows)
        ends.append(history.end_offsets)
        if number % 5 == 0:
            part = compaction.compacted(history.rows, f"{name} progress")
            tables.append(replay.renamed(part, "~compacted", 10_000))
    for seed in range(12):
        raw = made.raw([entry_of(step, f"g{seed}") for step in story(seed, 60)], STORIES + seed)
        tables.append(decoded(raw))
    rows = replay.merged(tables)
    found = {}
    for partition in rows["partition"].unique().to_pylist():
        found[partition] = rows.filter(pc.field("partition") == partition).sort_by("offset")
    return found, replay.merged([*ends, samples()]).sort_by("sampled_at")


def samples():
    """Of the topic of the stories, every seven seconds."""
    told = [
        {
            "sampled_at": (made.FIRST + 7000 * number) * 1000,
            "topic": "t",
            "topic_partition": index,
            "log_start_offset": 0,
            "end_offset": 1000 + 6 * number,
            "origin": "cluster",
        }
        for number in range(10)
        for index in range(2)
    ]
    return pa.Table.from_pylist(told, END_OFFSETS.arrow)


def told(directory):
    """Every row of every table of progress."""
    tables = Tables(directory)
    return {name: sorted(map(repr, tables.table(name).to_pylist())) for name in NAMES}


def whole(log, directory, spark, as_of=AS_OF):
    """The tables of a directory that has never seen anything else."""
    jobs.run(log, directory, spark=spark, as_of=as_of)
    return told(directory)


def differences(found, expected):
    """A few of the rows that are in one of them only."""
    return {
        name: (
            sorted(set(found[name]) - set(expected[name]))[:3],
            sorted(set(expected[name]) - set(found[name]))[:3],
        )
        for name in NAMES
        if found[name] != expected[name]
    }


@pytest.fixture
def standings(monkeypatch):
    """What each run has found of the log."""
    found = []

    def spied(*args):
        found.append(log_progress.log_progress(*args))
        return found[-1]

    monkeypatch.setattr(compute, "log_progress", spied)
    return found


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1])
def test_cut_anywhere_they_are_the_whole(spark, tmp_path, recorded, standings, seed):
    """Each partition comes in pieces of its own, and so do samples, each for another moment."""
    rows, ends = recorded
    chance = random.Random(seed)
    pieces = 4
    bounds = {
        one: sorted(chance.choices(range(mine.num_rows + 1), k=pieces - 1))
        for one, mine in rows.items()
    }
    looked = sorted(chance.choices(range(ends.num_rows + 1), k=pieces - 1))
    log = FedDecoded({})
    out = tmp_path / "out"
    for number in range(pieces):
        last = number == pieces - 1
        for one, mine in rows.items():
            piece = mine.slice(0, None if last else bounds[one][number])
            if piece.num_rows:
                log.rows[one] = piece
        log.samples = ends.slice(0, None if last else looked[number])
        as_of = AS_OF - timedelta(seconds=30) * (pieces - 1 - number)
        jobs.run(log, out, spark=spark, as_of=as_of)
        if number in (1, 3):
            expected = whole(log, tmp_path / str(number), spark, as_of)
            assert differences(told(out), expected) == {}, number
    ways = [one for one in standings if one.before is not None]
    assert len(ways) == pieces - 1
    assert all(one.incremental - one.completeness_changed for one in ways)
    assert any(one.completeness_changed for one in ways)
    assert not any(one.truncated for one in ways)
    last = load(out)
    assert True in [one.is_open for one in last.gold["commits"].parts]
    assert set(last.progress.open_from) & set(range(STORIES, STORIES + 12))


@pytest.fixture(scope="module")
def few(recorded):
    """Four lives and four stories, in one log, and the samples."""
    rows, ends = recorded
    names = [*replay.histories()]
    chosen = ("consumer-life.kafka", "lag.kafka", "steady.kafka", "transactions.kafka")
    places = {names.index(name) for name in chosen}
    return {
        one: mine
        for one, mine in rows.items()
        if one // replay.SPREAD in places or STORIES <= one < STORIES + 4
    }, ends


def part_of(few, part):
    return {one: mine.slice(0, int(mine.num_rows * part)) for one, mine in few.items()}


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_what_may_not_be_gone_on_with_begins_anew(spark, tmp_path, few, standings, monkeypatch):
    lives, ends = few
    out = tmp_path / "out"
    log = FedDecoded(part_of(lives, 0.6), samples=ends)
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    log.rows = dict(lives)
    expected = whole(log, tmp_path / "whole", spark)

    def run():
        standings.clear()
        jobs.run(log, out, spark=spark, as_of=AS_OF)
        assert differences(told(out), expected) == {}
        return standings[-1]

    found = run()
    assert found.before is not None
    assert found.incremental == set(lives)
    before = load(out)
    found = run()  # nothing is new, and what tells of now is of the same moment
    assert found.touched == frozenset()
    same = [name for name in NAMES if load(out).gold[name] == before.gold[name]]
    assert same == ["group_state", "commits", "offsets", "commit_rates", "lag"]

    for damaged in ("progress", "gold/commit_rates"):
        (path, *_) = (one for one in load(out).paths() if one.startswith(damaged))
        for file in (out / path).glob("*.parquet"):
            file.unlink()
        assert run().before is None

    for owner in (progress, log_progress):
        monkeypatch.setattr(owner, "code", lambda: "of tomorrow")
    assert run().before is None
    assert run().before is not None


@pytest.mark.timeout(900)
def test_a_log_that_was_cut_and_written_on(spark, tmp_path, few, standings):
    """One partition begins anew, with transactions across the cut; the others go on."""
    lives, ends = few
    victim = STORIES + 1
    out = tmp_path / "out"
    log = FedDecoded(part_of(lives, 0.8) | {victim: lives[victim]}, samples=ends)
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    at = lives[victim]["offset"][20].as_py()
    kept = lives[victim].filter(pc.field("offset") < at)
    other = lives[victim].filter(pc.field("offset") >= at + 3)  # as if three were never written
    moved = other.set_column(
        other.schema.get_field_index("offset"), "offset", pc.subtract(other["offset"], 3)
    )
    log.rows = {**lives, victim: pa.concat_tables([kept, moved])}
    log.cut = {victim: at}

    jobs.run(log, out, spark=spark, as_of=AS_OF)

    assert standings[-1].truncated == {victim}
    assert standings[-1].incremental >= set(lives) - {victim}
    log.cut = {}
    assert differences(told(out), whole(log, tmp_path / "whole", spark)) == {}


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_moments_before_what_is_kept_are_read_off_the_commits(spark, tmp_path, few):
    """A run for an earlier moment than the one before it, and samples of long ago."""
    lives, ends = few
    out = tmp_path / "out"
    log = FedDecoded(part_of(lives, 0.9), samples=ends.slice(ends.num_rows // 2))
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    log.rows, log.samples = dict(lives), ends
    earlier = AS_OF - timedelta(seconds=40)

    jobs.run(log, out, spark=spark, as_of=earlier)

    assert differences(told(out), whole(log, tmp_path / "whole", spark, earlier)) == {}


@pytest.mark.timeout(900)
def test_samples_that_came_since_are_no_damage(spark, tmp_path, few):
    """Whoever takes samples every minute is to hear of damage only. What they tell of the moment of
    the run is told by the next run.
    """
    lives, ends = few
    half = ends.num_rows // 2
    jobs.run(
        FedDecoded(dict(lives), samples=ends.slice(0, half)), tmp_path, spark=spark, as_of=AS_OF
    )
    with Writer(tmp_path) as writer:
        append_samples(writer, ends.slice(half))
    found = jobs.verify(tmp_path, every=True, spark=spark)
    assert found.why_not is None
    assert found.findings == ()


HOUR_MS = 3_600_000
DAYS = 24


@pytest.fixture(scope="module")
def long_life():
    """Rows, and samples of two partitions: the brokers are asked of one, the other has a folder.
    One group follows in steps of six hours, one several times in an hour, and one has been stuck
    since the second day. The clock of the log is set back for a while.
    """
    groups = [("steady", hour) for hour in range(0, DAYS * 24, 6)]
    groups += [("busy", third / 3) for third in range(DAYS * 72)]
    entries = [
        entry_of(("plain", index, 0, int(hour * 100) % 50_001, True), group)
        | {"ms": made.FIRST + int((hour if int(hour) % 97 else hour * 0.8) * HOUR_MS)}
        for group, hour in sorted([*groups, ("stuck", 30)], key=lambda one: one[1])
        for index in range(2)
    ]
    ends = [
        {
            "sampled_at": (made.FIRST + minute * HOUR_MS // 60) * 1000,
            "topic": "t",
            "topic_partition": index,
            "log_start_offset": 0,
            "end_offset": 20 + minute * 5 // 3,
            "origin": origin,
        }
        for index, origin, step in ((0, "cluster", 2), (1, "log", 13))
        for minute in range(0, DAYS * 24 * 60, step)
    ]
    samples = pa.Table.from_pylist(ends, END_OFFSETS.arrow).sort_by("sampled_at")
    return decoded(made.raw(entries)), samples


def day(number):
    return datetime.fromtimestamp(made.FIRST / 1000, UTC) + timedelta(days=number)


def between(samples, first, last):
    at = pc.field("sampled_at")
    return samples.filter((at > day(first)) & (at <= day(last)))


def written_by(rows, number):
    """The rows of a log as it was on that day."""
    latest = np.maximum.accumulate(rows["timestamp"].cast(pa.int64()).to_numpy())
    return rows.slice(0, int(np.searchsorted(latest, micros(day(number)), "right")))


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_what_is_thinned_by_and_by_is_the_whole_thinned_at_once(spark, tmp_path, long_life):
    """Runs that are days apart, with snapshots between them, end where one run over all does: gold
    rests on samples that were thinned before, and commits that come late add to merged rates. What
    the past was told stays.
    """
    rows, ends = long_life
    out = tmp_path / "out"
    log, then = FedDecoded({}), -1
    for number in (2, 6.5, 12, 17, DAYS):
        middle = (then + number) / 2
        log.rows = {0: written_by(rows, number)}
        if then >= 0:
            with Writer(out) as writer:
                append_samples(writer, between(ends, then, middle))
        before = past(out, day(then - 1)) if then >= 0 else []
        log.samples = between(ends, middle if then >= 0 else -1, number)
        jobs.run(log, out, spark=spark, as_of=day(number))
        if number == DAYS:
            assert jobs.verify(out, every=True, spark=spark).findings == ()
        after = past(out, day(then - 1))
        assert [row for row in before if row not in after] == []
        assert bool(before) is (then >= 0)
        then = number
    last = load(out)

    jobs.rebuild(out, spark=spark)

    assert load(out).end_offsets == last.end_offsets
    log.samples = ends
    at_once = whole(log, tmp_path / "whole", spark, day(DAYS))
    assert differences(told(out), at_once) == {}
    found, kept = (Tables(one).table("end_offsets") for one in (out, tmp_path / "whole"))
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, kept.to_pylist()))
    assert len(found) < len(ends) / 3
    rates = Tables(out).table("commit_rates")
    assert pc.sum(rates["commits"]).as_py() == rows.num_rows
    assert len(rates) < rows.num_rows / 1.7
    assert known_lag(out, "stuck") == [(0, True, True), (1, True, True)]


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_commits_of_a_time_to_come_make_others_old_when_it_has_come(spark, tmp_path):
    """Of each moment the rates are those of one run: before it, behind it with nothing new, and at
    a moment that goes back.
    """
    hours = sorted([*(hour + more for hour in range(24 * DAYS) for more in (0, 0.02)), 240.5])
    entries = [
        entry_of(("plain", 0, 0, int(hour), True), "steady" if hour != 240.5 else "ahead")
        | {"ms": made.FIRST + int((hour if hour != 240.5 else 20 * 24) * HOUR_MS)}
        for hour in hours
    ]
    rows, log, out = decoded(made.raw(entries)), FedDecoded({}), tmp_path / "out"
    counts = []
    for number, last in ((5, 5), (10.5, 10.5), (16, 16), (21, 16), (18, 16), (18.5, 17), (24, 24)):
        log.rows = {0: rows.slice(0, sum(hour <= last * 24 for hour in hours))}
        jobs.run(log, out, spark=spark, as_of=day(number))
        counts.append(len(told(out)["commit_rates"]))
        if number in (21, 18, 24):  # ahead with nothing new, back, and ahead with more
            expected = whole(log, tmp_path / str(number), spark, day(number))
            assert differences(told(out), expected) == {}, number
    assert counts[3] < counts[2] - 24
    assert counts[4] == counts[2]


def past(out, since):
    """What was told of moments that are not yet merged."""
    return Tables(out).table("lag_history", pc.field("at") > since).to_pylist()


def known_lag(out, group):
    """Of the group's partitions: whether the truth is within the error now, and that it is known
    to be one.
    """
    now = pc.field("at") == day(DAYS)
    of_group = (pc.field("group_id") == group) & (pc.field("level") == "partition")
    rows = Tables(out).table("lag", now & of_group).sort_by("topic_partition").to_pylist()
    told = []
    for row in rows:
        minute = (row["committed_offset"] - 20) * 3 / 5
        truth = (day(DAYS) - day(minute / 1440)).total_seconds()
        error = row["lag_seconds_error"]
        told.append(
            (row["topic_partition"], abs(row["lag_seconds"] - truth) <= error, 0 < error < 4000)
        )
    return told


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("most", [3, MOST_PARTS])
def test_many_runs_leave_few_files_and_the_same_rows(spark, tmp_path, few, monkeypatch, most):
    monkeypatch.setattr(progress_run, "to_join", partial(to_join, most=most))
    lives, ends = few
    out = tmp_path / "out"
    log = FedDecoded({}, samples=ends)
    runs, counts, joined = most + 2, dict.fromkeys(NAMES, 0), set()
    for step in range(1, runs + 1):
        log.rows = part_of(lives, step / runs)
        jobs.run(log, out, spark=spark, as_of=AS_OF)
        for name in NAMES:
            before, counts[name] = counts[name], len(load(out).gold[name].parts)
            assert counts[name] <= most + 1, name
            if counts[name] < before:
                joined.add(name)
    assert joined >= {"commits", "commit_rates"}
    assert differences(told(out), whole(log, tmp_path / "whole", spark)) == {}


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_the_past_is_what_lag_was_and_outlives_gold(spark, tmp_path, few, monkeypatch):
    """Also at samples of which `lag` has no row; whoever computes gold anew adds to what is there,
    and a run that dies adds nothing.
    """
    for name in ("MOMENTS", "_FEWEST"):
        monkeypatch.setattr(sys.modules[lag_at.__module__], name, 3)
    lives, ends = few
    out = tmp_path / "out"
    times = sorted(ends["sampled_at"].unique().to_pylist())[-24:]
    earlier, later = times[8], times[-1] + timedelta(seconds=5)
    ends = ends.filter(pc.field("sampled_at").isin(pa.array(times, ends["sampled_at"].type)))
    log = FedDecoded(dict(lives), samples=ends.filter(pc.field("sampled_at") <= earlier))
    jobs.run(log, out, spark=spark, as_of=earlier)
    first = load(out).past
    log.samples = ends
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "publish", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            jobs.run(log, out, spark=spark, as_of=later)
    assert load(out).past == first
    shutil.rmtree(out / "gold")
    shutil.rmtree(out / "progress")

    for _ in range(2):
        jobs.run(log, out, spark=spark, as_of=later)

    assert load(out).past.lag[: len(first.lag)] == first.lag
    found = Tables(out).table("lag_history")
    moments = sorted(found["at"].unique().to_pylist())
    assert set(moments) < {*times, later}
    assert (len(moments) > 15, moments[-1]) == (True, later)
    assert len(Tables(out).table("lag")["at"].unique()) < 6
    names = ("commits", "members", "end_offsets")
    frames = {name: kohort.spark.read(out, name, spark) for name in names}
    expected = lag_at(frames, [one for one in moments if one > earlier]).toArrow()
    assert facts(found.filter(pc.field("at") > earlier)) == facts(expected)
    lasting = kohort.spark.read(out, "status_history", spark).where("valid_to is null")
    assert lasting.count() == len(Tables(out).table("status", pc.field("level") == "group"))


def facts(rows):
    """What `lag` and `lag_history` both tell, row by row."""
    names = ("group_id", "level", "topic", "topic_partition", "at", "lag_records", "lag_seconds")
    names = (*names, "committed_offset", "end_offset", "reason", "partitions_unknown")
    return sorted(map(repr, rows.select(names).to_pylist()))
