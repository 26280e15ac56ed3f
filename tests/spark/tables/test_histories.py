"""Histories that are gone on with are those that are replayed as a whole, however a log comes."""

import random

import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from tests.spark.feeding import FedDecoded
from tests.spark.histories import compaction, replay
from tests.spark.measures import compute_only

from kohort.spark import jobs
from kohort.spark.gold import MEASURES
from kohort.spark.gold.replayed import TABLES
from kohort.spark.tables.arrow_reader import Tables
from kohort.spark.tables.manifest import load

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


@pytest.mark.timeout(600)
def test_cut_anywhere_they_are_the_whole(spark, tmp_path, recorded):
    """Each partition comes in pieces of its own, and names of topics become known meanwhile."""
    rows, ends = recorded
    chance = random.Random(12)
    bounds = {
        one: sorted(chance.choices(range(mine.num_rows + 1), k=4)) for one, mine in rows.items()
    }
    log = FedDecoded({})
    steps = []
    for number in range(5):
        for one, mine in rows.items():
            piece = mine.slice(0, bounds[one][number] if number < 4 else None)
            if piece.num_rows:
                log.rows[one] = piece
        log.samples = ends if number >= 2 else None
        jobs.run(log, tmp_path / "out", spark=spark, as_of=AS_OF)
        steps.append(load(tmp_path / "out"))
        if number in (0, 2, 4):
            assert told(tmp_path / "out") == whole(log, tmp_path / str(number), spark), number
    assert sum(map(len, told(tmp_path / "out").values())) > 800
    last = steps[-1]
    for name in NAMES:
        kinds = [one.is_open for one in last.gold[name].parts]
        assert True in kinds, name
        assert False in kinds, name
    assert last.histories.fed == {one: mine["offset"][-1].as_py() + 1 for one, mine in rows.items()}
