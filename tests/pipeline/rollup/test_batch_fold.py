# SPDX-License-Identifier: Apache-2.0
"""What is read piece by piece tells the same as what is read at once. Needs no Spark."""

import random

import pyarrow as pa
import pytest
from tests.spark.gold.progress_rows import sample
from tests.tables.published import publish

from kohort.pipeline.format.manifest import load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup import batch_fold
from kohort.pipeline.rollup.batch_fold import folded
from kohort.pipeline.rollup.end_samples import new_samples, walk_positions
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.sources.samples import last_seen
from kohort.spark.tables.observed_history import _sample_times
from kohort.spark.tables.sample_delta import find_sample_delta

NUMBERS = pa.schema([("number", pa.int64())])


def distinct(rows):
    return rows.group_by("number").aggregate([])


def test_however_many_pieces_there_are_few_rows_are_held(monkeypatch):
    monkeypatch.setattr(batch_fold, "ROWS_AT_ONCE", 10)
    held = []

    def fold(rows):
        held.append(rows.num_rows)
        return distinct(rows)

    pieces = (pa.record_batch([[number % 7, number % 5]], NUMBERS) for number in range(1000))
    assert sorted(folded(pieces, NUMBERS, fold)["number"].to_pylist()) == [*range(7)]
    assert max(held) <= 2 * 10
    assert folded([], NUMBERS, distinct).num_rows == 0


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_fold, "ROWS_AT_ONCE", 3)
    chance = random.Random(5)
    rows = []
    for number in range(200):
        topic = chance.choice("abc")
        row = sample(chance.randrange(50), number, topic=topic)
        row["origin"] = chance.choice(["log", "log", "broker"])
        row["topic_id"] = chance.choice([None, f"{topic}-1", f"{topic}-2"])
        rows.append(row)
    for begin in range(0, 200, 40):
        publish(tmp_path, {"end_offsets": rows[begin : begin + 40]})
    return tmp_path, pa.Table.from_pylist(rows, END_OFFSETS.arrow)


def test_samples_tell_the_same_in_pieces(samples):
    directory, rows = samples
    manifest = load(directory)
    every = sorted({*rows["sampled_at"].cast(pa.int64()).to_pylist()})

    assert walk_positions(directory, manifest) == last_seen(rows)
    assert [*_sample_times(directory, manifest, every[-3])] == every[:-2]
    assert sorted(find_sample_delta(directory, manifest, None).times) == every


def test_samples_that_are_there_are_found_again(samples):
    directory, rows = samples
    with Writer(directory) as writer:
        assert new_samples(writer, writer.manifest, rows.slice(30, 70)) == ()
        assert new_samples(writer, writer.manifest, rows.slice(0, 0)) == ()
        other = pa.Table.from_pylist([sample(7, 999)], END_OFFSETS.arrow)
        (part,) = new_samples(writer, writer.manifest, pa.concat_tables([rows, other]))
        assert part.rows == 1
