# SPDX-License-Identifier: Apache-2.0
"""Of which moments `lag` tells may depend on how many partitions of groups become new. Then it
waits until that is known.
"""

from datetime import UTC, datetime, timedelta
from importlib import import_module

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from tests.spark import rows as made
from tests.spark.feeding import Fed

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.schemas import END_OFFSETS
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.spark import jobs
from kohort.spark.tables import progress

LAG = import_module("kohort.spark.gold.lag")
AS_OF = datetime.fromtimestamp(made.FIRST / 1000, UTC) + timedelta(days=1)
SAMPLES = pa.Table.from_pylist(
    [
        {
            "sampled_at": (made.FIRST + 1000 * number) * 1000,
            "topic": "t",
            "topic_partition": 0,
            "log_start_offset": 0,
            "end_offset": 1000,
            "origin": "cluster",
        }
        for number in range(64)
    ],
    END_OFFSETS.arrow,
)


def commit(group):
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    return Record(key, OffsetCommitValue(offset=1, metadata="", commit_timestamp=1))


@pytest.mark.parametrize(
    ("room", "known"),
    [(80, False), pytest.param(10_000, True, marks=pytest.mark.prove)],
    ids=["room for some", "room for all"],
)
@pytest.mark.timeout(300)
def test_lag_tells_of_the_moments_of_one_run(spark, tmp_path, monkeypatch, room, known):
    """Of 64 samples 80 rows have room for 32 when two groups commit, and for 16 when five do."""
    monkeypatch.setattr(LAG, "ROWS", room)
    monkeypatch.setattr(LAG, "_FEWEST", 1)
    fresh = ["first", "third", "fourth", "fifth"]
    told = []

    def spied(*args):
        told.append(moments_or_none(*args))
        return told[-1]

    moments_or_none = progress.moments_or_none
    monkeypatch.setattr(progress, "moments_or_none", spied)
    before = [commit("first"), commit("second")]
    log = Fed({0: made.raw(before)}, samples=SAMPLES)
    jobs.run(log, tmp_path / "out", spark=spark, as_of=AS_OF)
    log.rows[0] = made.raw([*before, *map(commit, fresh)])

    jobs.run(log, tmp_path / "out", spark=spark, as_of=AS_OF)

    assert [one is not None for one in told] == [False, known]
    jobs.run(log, tmp_path / "whole", spark=spark, as_of=AS_OF)
    found, whole = (lags(tmp_path / name) for name in ("out", "whole"))
    assert found == whole
    assert len(found) > len({"first", "second", *fresh})  # of more than one moment


def lags(out):
    return sorted(map(repr, Tables(out).table("lag").to_pylist()))
