# SPDX-License-Identifier: Apache-2.0
"""Samples of the ends of topics, taken again and again beside the runs."""

import errno
import os
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.delta_log_writer import DeltaLogs
from kohort.pipeline.format.manifest import TablesError, load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.sources import sampler
from kohort.pipeline.sources.log_position import SourceError

AS_OF = datetime(2026, 11, 22, tzinfo=UTC)


def test_a_cluster_that_does_not_answer_is_asked_again_and_another_one_is_refused(
    tmp_path, monkeypatch
):
    row = {"topic": "t", "topic_partition": 0, "end_offset": 1, "origin": "cluster"}
    sampled = pa.Table.from_pylist([{**row, "sampled_at": AS_OF}], schema=END_OFFSETS.arrow)
    answers = iter([sampled, SourceError("it is down"), sampled])
    failed = []

    def sample(*_):
        answer = next(answers)
        if isinstance(answer, SourceError):
            raise answer
        return answer

    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")
    monkeypatch.setattr(sampler, "sample_cluster", sample)
    taken = sampler.snapshot("h:1", tmp_path, every_s=0.001, count=2, failed=failed.append)

    assert (taken, [str(one) for one in failed]) == (2, ["it is down"])
    assert sum(one.rows for one in load(tmp_path).end_offsets) == 2
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-2")
    monkeypatch.setattr(sampler, "sample_cluster", lambda *_: sampled)
    with pytest.raises(TablesError, match="cluster c-1, and this log is of cluster c-2"):
        sampler.snapshot("h:2", tmp_path)


def test_a_snapshot_adds_samples_and_waits_for_other_writers(tmp_path, monkeypatch):
    row = {"topic": "t", "topic_partition": 0, "end_offset": 1, "origin": "cluster"}
    sampled = pa.Table.from_pylist([{**row, "sampled_at": AS_OF}], schema=END_OFFSETS.arrow)
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")
    monkeypatch.setattr(sampler, "sample_cluster", lambda *_: sampled)
    told, failed = [], []

    def release(number):
        told.append(number)
        if len(told) == 3:
            other.close()

    other = Writer(tmp_path)
    taken = sampler.snapshot(
        "h:1", tmp_path, every_s=0.01, count=4, told=release, failed=failed.append
    )

    assert (taken, told) == (4, [1, 1, 1, 1])
    assert [("is being written by" in str(one)) for one in failed] == [True]  # not each time
    assert Tables(tmp_path).table("end_offsets").num_rows == 4
    with Writer(tmp_path):
        monkeypatch.setattr(sampler, "PATIENCE_S", 0.0)
        with pytest.raises(TablesError, match="is being written by"):
            sampler.snapshot("h:1", tmp_path)


def test_samples_that_wait_stay_few(tmp_path, monkeypatch):
    """Beside a stream nobody else writes for days. Every second time is given up."""
    times = iter(range(1, 12))

    def sample(*_):
        row = {"topic": "t", "topic_partition": 0, "end_offset": next(times), "origin": "cluster"}
        return pa.Table.from_pylist([{**row, "sampled_at": AS_OF}], schema=END_OFFSETS.arrow)

    def release(_):
        if next(left) == 0:
            other.close()

    left = iter(range(10, -1, -1))
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")
    monkeypatch.setattr(sampler, "sample_cluster", sample)
    monkeypatch.setattr(sampler, "MOST_ROWS", 4)
    other = Writer(tmp_path)

    sampler.snapshot("h:1", tmp_path, every_s=0.001, count=11, told=release)

    ends = sorted(Tables(tmp_path).table("end_offsets")["end_offset"].to_pylist())
    assert len(ends) <= 4
    assert (ends[0], ends[-1]) == (1, 11)


def test_tables_that_cannot_be_written_for_a_while(tmp_path, monkeypatch):
    row = {"topic": "t", "topic_partition": 0, "end_offset": 1, "origin": "cluster"}
    sampled = pa.Table.from_pylist([{**row, "sampled_at": AS_OF}], schema=END_OFFSETS.arrow)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    answers = iter([None, TablesError("the disk is full"), full, None, None, None])
    failed = []

    def append(*args):
        if (error := next(answers)) is not None:
            raise error
        append_samples(*args)

    append_samples = sampler.append_samples
    monkeypatch.setattr(sampler, "append_samples", append)
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")
    monkeypatch.setattr(sampler, "sample_cluster", lambda *_: sampled)

    sampler.snapshot("h:1", tmp_path, every_s=0.001, count=4, failed=failed.append)

    words = f"{tmp_path} cannot be written: No space left on device"
    assert [str(one) for one in failed] == ["the disk is full", words]
    assert Tables(tmp_path).table("end_offsets").num_rows == 4
    answers = iter([TablesError("the disk is full")])
    with pytest.raises(TablesError, match="full"):
        sampler.snapshot("h:1", tmp_path, every_s=0.001, failed=failed.append)


def test_samples_whose_logs_of_delta_lag_behind_are_there_once(tmp_path, monkeypatch):
    """The disk is full between the flip and those logs: the samples count already."""
    row = {"topic": "t", "topic_partition": 0, "end_offset": 1, "origin": "cluster"}
    sampled = pa.Table.from_pylist([{**row, "sampled_at": AS_OF}], schema=END_OFFSETS.arrow)
    follow, failures, failed = DeltaLogs.follow, iter([False, False, True]), []

    def follow_or_fail(self, manifest):
        if manifest.number and next(failures, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        follow(self, manifest)

    monkeypatch.setattr(DeltaLogs, "follow", follow_or_fail)
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")
    monkeypatch.setattr(sampler, "sample_cluster", lambda *_: sampled)

    sampler.snapshot("h:1", tmp_path, every_s=0.001, count=3, failed=failed.append)

    assert ["not for readers of Delta" in str(one) for one in failed] == [True]
    assert Tables(tmp_path).table("end_offsets").num_rows == 3
