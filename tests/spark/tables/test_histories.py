# SPDX-License-Identifier: Apache-2.0
"""Histories that are resumed are those that are replayed as a whole, however a log comes."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from tests.spark.feeding import FedDecoded
from tests.spark.histories import compaction, replay
from tests.spark.measures import compute_only

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import MOST_PARTS, load
from kohort.pipeline.format.refresh_plan import MISSING, RefreshPlan, full_refresh, refresh_plan
from kohort.spark import jobs
from kohort.spark.gold import MEASURES
from kohort.spark.gold.history_replay import TABLES
from kohort.spark.tables import histories

AS_OF = replay.AS_OF
NAMES = [table.name for table in TABLES.values()]


@pytest.fixture(autouse=True)
def only_histories(monkeypatch):
    compute_only(monkeypatch, [one for one in MEASURES if one.table.name in NAMES])


@pytest.fixture(scope="module")
def recorded():
    """Partition -> decoded rows, and samples of ends: lives of real clients, side by side, and what
    a cleaner has left of some.
    """
    tables, ends = [], []
    for number, (name, history) in enumerate(replay.histories().items()):
        tables.append(history.rows)
        ends.append(history.end_offsets)
        if number % 4 == 0:
            part = compaction.compacted(history.rows, f"{name} increments")
            tables.append(replay.renamed(part, "~compacted", 10_000))
    rows = replay.merged(tables)
    found = {}
    for partition in rows["partition"].unique().to_pylist():
        mine = rows.filter(pc.field("partition") == partition)
        found[partition] = mine.sort_by("offset")
    return found, replay.merged(ends)


def told(directory):
    """Every row of the three tables."""
    tables = Tables(directory)
    return {name: sorted(map(repr, tables.table(name).to_pylist())) for name in NAMES}


def whole(log, directory, spark):
    """The tables of a directory that has never seen anything else."""
    jobs.run(log, directory, spark=spark, as_of=AS_OF)
    return told(directory)


@pytest.fixture
def decided(monkeypatch):
    """What each run has found: where histories go on, and where they begin anew."""
    found = []

    def spied(*args):
        found.append(refresh_plan(*args))
        return found[-1]

    monkeypatch.setattr(histories, "refresh_plan", spied)
    return found


@pytest.mark.parametrize("cuts", [1, pytest.param(4, marks=pytest.mark.prove)])
@pytest.mark.timeout(600)
def test_cut_anywhere_they_are_the_whole(spark, tmp_path, recorded, decided, cuts):
    """Each partition comes in pieces of its own, and names of topics become known meanwhile."""
    rows, ends = recorded
    chance = random.Random(12)
    bounds = {
        one: sorted(chance.choices(range(mine.num_rows + 1), k=cuts)) for one, mine in rows.items()
    }
    log = FedDecoded({})
    out = tmp_path / "out"
    for number in range(cuts + 1):
        for one, mine in rows.items():
            piece = mine.slice(0, bounds[one][number] if number < cuts else None)
            if piece.num_rows:
                log.rows[one] = piece
        log.samples = ends if number >= cuts / 2 else None
        jobs.run(log, out, spark=spark, as_of=AS_OF)
        if number == cuts or (cuts > 1 and number % 2 == 0):
            assert told(out) == whole(log, tmp_path / str(number), spark), number
    assert sum(map(len, told(out).values())) > 800
    last = load(out)
    for name in NAMES:
        kinds = [one.is_open for one in last.gold[name].parts]
        assert True in kinds, name
        assert False in kinds, name
    assert last.histories.fed == {one: mine["offset"][-1].as_py() + 1 for one, mine in rows.items()}
    assert all(one.incremental for one in decided)
    assert any(one.recompute for one in decided)


@pytest.fixture(scope="module")
def few(recorded):
    """Four lives, in one log."""
    rows, _ = recorded
    names = [*replay.histories()]
    chosen = ("consumer-life.kafka", "crash.kafka", "classic-life.kafka", "migration-up.kafka")
    return {
        one: mine
        for name in chosen
        for one, mine in rows.items()
        if one // replay.SPREAD == names.index(name)
    }


def log_of(few, part):
    return FedDecoded({one: mine.slice(0, int(mine.num_rows * part)) for one, mine in few.items()})


def grow(log, few, part=1.0):
    log.rows = log_of(few, part).rows


def seen(directory):
    """What a manifest says of histories, without what any run changes."""
    found = load(directory)
    return found.histories, {name: found.gold[name] for name in NAMES}


@pytest.mark.timeout(600)
def test_what_may_not_be_gone_on_with_begins_anew(spark, tmp_path, few, decided, monkeypatch):
    out = tmp_path / "out"
    log = log_of(few, 0.6)
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    grow(log, few)
    expected = whole(log, tmp_path / "whole", spark)

    notes = []

    def run(source=log, **more):
        decided.clear()
        summary = jobs.run(source, out, spark=spark, as_of=AS_OF, **more)
        notes[:] = [note.text for note in summary.notes]
        return decided[-1] if decided else None

    assert run() == RefreshPlan(frozenset(few), frozenset())
    assert told(out) == expected
    before = seen(out)
    assert run() == RefreshPlan(frozenset(), frozenset())  # nothing is new, and nothing is written
    assert seen(out) == before

    jobs.run(log, tmp_path / "other", spark=spark, as_of=AS_OF, session_timeout_ms=4000)
    why = "the session timeout was unknown and is 4000 ms"
    assert run(session_timeout_ms=4000) == full_refresh(why)
    assert notes == [f"histories of groups were recomputed: {why}"]
    assert told(out) == told(tmp_path / "other") != expected
    assert run() == full_refresh("the session timeout was 4000 ms and is unknown")
    assert told(out) == expected

    for damaged in ("histories", "gold/rebalances"):
        (path, *_) = (one for one in load(out).paths() if one.startswith(damaged))
        for file in (out / path).glob("*.parquet"):
            file.unlink()
        assert run() is None  # nothing to decide: it is not whole
        assert notes == [f"histories of groups were recomputed: {MISSING}"]
        assert told(out) == expected

    monkeypatch.setattr(histories, "code", lambda: "of tomorrow")
    assert run() == full_refresh()
    assert told(out) == expected


@pytest.mark.timeout(600)
def test_a_log_that_was_cut_and_written_on(spark, tmp_path, few, decided):
    out = tmp_path / "out"
    log = log_of(few, 1.0)
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    victim = min(few)
    at = few[victim]["offset"][few[victim].num_rows // 2].as_py()
    kept = few[victim].filter(pc.field("offset") < at)
    other = few[victim].filter(pc.field("offset") >= at + 3)  # as if three had never been written
    moved = other.set_column(
        other.schema.get_field_index("offset"), "offset", pc.subtract(other["offset"], 3)
    )
    log.rows[victim] = pa.concat_tables([kept, moved])
    log.cut = {victim: at}

    jobs.run(log, out, spark=spark, as_of=AS_OF)

    assert decided[-1].recompute == {victim}
    log.cut = {}
    assert told(out) == whole(log, tmp_path / "whole", spark)


@pytest.mark.parametrize("step", [25, pytest.param(4, marks=pytest.mark.prove)])
@pytest.mark.timeout(600)
def test_commits_before_the_first_member_belong_to_its_history(spark, tmp_path, few, decided, step):
    """And many runs leave few files."""
    out = tmp_path / "out"
    (life,) = [mine for one, mine in few.items() if mine.num_rows == 51]
    commits = life.filter(pc.field("kind") == "offset_commit").slice(0, 3)
    assert commits.num_rows == 3
    early = renumbered(commits, 0)
    rest = renumbered(life, 3)
    whole_life = pa.concat_tables([early, rest])
    partition = life["partition"][0].as_py()
    log = FedDecoded({})
    for end in (2, *range(4, 54, step), 54):
        log.rows[partition] = whole_life.slice(0, end)
        jobs.run(log, out, spark=spark, as_of=AS_OF)
        for name in NAMES:
            parts = load(out).gold[name].parts
            assert sum(one.is_open for one in parts) <= 1
            assert len(parts) <= MOST_PARTS
        assert len(load(out).histories.states) == (end > 2)  # before, nobody has members
    assert all(one == RefreshPlan({partition}, frozenset()) for one in decided[1:])
    assert told(out) == whole(log, tmp_path / "whole", spark)


def renumbered(rows, begin):
    offsets = pa.array(range(begin, begin + rows.num_rows), pa.int64())
    return rows.set_column(rows.schema.get_field_index("offset"), "offset", offsets)
