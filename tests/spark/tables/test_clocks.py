# SPDX-License-Identifier: Apache-2.0
"""A log whose clocks go back, or are not told: it is complete from the same moment, however many
runs have read it.
"""

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark")

from tests.spark import rows as made
from tests.spark.feeding import Fed

from kohort.pipeline.format.arrow_reader import Tables
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.spark import jobs
from kohort.spark.engine import small_runs

AS_OF = datetime.fromtimestamp(made.FIRST / 1000, UTC) + timedelta(days=1)
NAMES = ("group_state", "commits", "commit_rates", "status")


def commit(group, ms):
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    return {"record": Record(key, OffsetCommitValue(offset=1, metadata="", commit_timestamp=1))} | {
        "ms": ms
    }


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.prove)])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0, 1000], [-5_000_000, 2000], 0),
        pytest.param([None, None], [3000, 2000], 3000, marks=pytest.mark.prove),
    ],
    ids=["it went back", "at first none was told"],
)
@pytest.mark.timeout(300)
def test_complete_from_the_first_record_that_has_a_time(
    spark, tmp_path, monkeypatch, before, after, expected, few
):
    if not few:
        monkeypatch.setattr(small_runs, "DRIVER_SCAN_ROWS", 0)
    records = [
        commit(group, None if ms is None else made.FIRST + ms)
        for group, ms in zip("abab", [*before, *after], strict=True)
    ]
    log = Fed({0: made.raw(records[:2])})
    jobs.run(log, tmp_path / "out", spark=spark, as_of=AS_OF)
    log.rows[0] = made.raw(records)

    jobs.run(log, tmp_path / "out", spark=spark, as_of=AS_OF)

    jobs.run(log, tmp_path / "whole", spark=spark, as_of=AS_OF)
    found, whole = (
        {name: told(tmp_path / out, name) for name in NAMES} for out in ("out", "whole")
    )
    assert found == whole
    moment = datetime.fromtimestamp((made.FIRST + expected) / 1000, UTC)
    states = Tables(tmp_path / "out").table("group_state")
    assert set(states["complete_from"].to_pylist()) == {moment}


def told(out, name):
    return sorted(map(repr, Tables(out).table(name).to_pylist()))
