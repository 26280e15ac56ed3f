# SPDX-License-Identifier: Apache-2.0
"""Of which moments new samples tell something new, and what footers tell. Needs no Spark."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.gold.progress_rows import BEGIN, at, sample

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.footers import has_transactions, largest
from kohort.pipeline.format.manifest import Increment, Manifest, Part, ProgressState
from kohort.pipeline.schemas import END_OFFSETS
from kohort.spark.tables import sample_delta
from kohort.spark.tables.sample_delta import find_sample_delta
from kohort.spark.tables.topic_names import named

OLD = [sample(0, 5), sample(60, 9), sample(30, 7, topic="idle")]
EVER, NEVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@pytest.fixture
def without_known_samples(tmp_path):
    """What new samples tell, beside those of OLD."""

    def told(new, *, known=("old",), there=("old", "new"), old=OLD):
        parts = {"old": old, "new": new}
        for name in there:
            (tmp_path / name).mkdir(exist_ok=True)
            rows = pa.Table.from_pylist(parts[name], END_OFFSETS.arrow)
            pq.write_table(rows, tmp_path / name / "samples.parquet")
        manifest = Manifest(end_offsets=tuple(Part(path=one, rows=1) for one in there))
        return find_sample_delta(tmp_path, manifest, progress(known))

    return told


def progress(samples):
    return ProgressState(
        code="c",
        fed={},
        extents={},
        held_back={},
        open_from={},
        newest=(),
        records=(),
        names=Part(path="n", rows=0),
        exact_us=None,
        newest_us=None,
        moments=(),
        samples=tuple(samples),
    )


def since(seconds):
    return micros(at(seconds))


def test_a_sample_tells_of_the_time_behind_the_one_before_it(without_known_samples):
    assert without_known_samples([sample(90, 9)]).since_us == since(60)
    assert without_known_samples([sample(90, 9), sample(95, 9, topic="idle")]).since_us == since(30)
    assert without_known_samples([sample(40, 1, topic="fresh")]).since_us == since(
        40
    )  # nothing was known of it
    assert without_known_samples([]).since_us == NEVER


def test_samples_that_came_late_or_are_gone_tell_of_every_moment(without_known_samples):
    assert without_known_samples([sample(60, 9)]).since_us == EVER
    assert without_known_samples([sample(90, 9)], there=("new",)).since_us == EVER
    assert without_known_samples([sample(90, 9)], known=()).since_us == since(0)


def test_a_folder_whose_samples_are_thinned_tells_of_every_moment(
    without_known_samples, monkeypatch
):
    monkeypatch.setattr(sample_delta, "NOT_DOWNSAMPLED_BELOW", 3)
    old = [sample(1, 1, origin="log"), sample(2, 2, origin="log")]
    assert without_known_samples([sample(3, 3)], old=old).since_us == since(2)
    assert without_known_samples([sample(3, 3, origin="log")], old=old).since_us == EVER


def test_times_are_told_once(without_known_samples):
    times = without_known_samples([sample(90, 9), sample(90, 9, topic="idle")]).times
    assert sorted(times.tolist()) == [since(one) for one in (0, 30, 60, 90)]
    assert BEGIN.tzinfo is not None


def test_footers_tell_the_largest(tmp_path):
    for name, values in {"one": [3, 7, None], "two": [None, None], "three": []}.items():
        (tmp_path / name).mkdir()
        pq.write_table(
            pa.table({"at": pa.array(values, pa.int64())}), tmp_path / name / "a.parquet"
        )
    parts = {name: Part(path=name, rows=0) for name in ("one", "two", "three")}
    assert largest(tmp_path, parts.values(), "at") == 7
    assert largest(tmp_path, [parts["two"], parts["three"]], "at") is None


@pytest.mark.parametrize("statistics", [True, False])
def test_transactions_show_in_footers_and_else_in_rows(tmp_path, statistics):
    for name, values in {"plain": [-1, -1], "in": [-1, 7]}.items():
        folder = tmp_path / "rows" / name / "kind=offset_commit"
        folder.mkdir(parents=True)
        rows = pa.table({"producer_id": pa.array(values, pa.int64())})
        pq.write_table(rows, folder / "a.parquet", write_statistics=statistics)
    plain, in_one = (Increment(name=one, ranges={}, counts={}) for one in ("plain", "in"))
    assert not has_transactions(tmp_path, [plain])
    assert has_transactions(tmp_path, [plain, in_one])


def test_an_id_with_two_names_has_none():
    assert named(frozenset({("a", "x"), ("b", "y"), ("b", "z")})) == {"a": "x"}
