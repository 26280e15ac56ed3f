# SPDX-License-Identifier: Apache-2.0
"""Few rows are read and written without Spark, and are the same rows in the same tables."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.spark.contents import contents
from tests.spark.feeding import Fed
from tests.spark.measures import compute_only
from tests.spark.rows import FIRST, raw

from kohort.errors import Broken
from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.format.manifest import load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import DECODED
from kohort.records.codec import encode_commit_value
from kohort.records.schemas import OffsetCommitValue
from kohort.spark import jobs
from kohort.spark.engine import small_runs
from kohort.spark.engine.frames import struct_of
from kohort.spark.gold import MEASURES
from kohort.spark.sources.feed_source import FeedSource
from kohort.spark.sources.registry import source
from kohort.spark.tables import (
    driver_write,
    histories,
    increments,
    parts,
    row_counts,
    spark_reader,
)

AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
_OF_HISTORIES = ("members", "assignments", "rebalances")
COMMIT = encode_commit_value(OffsetCommitValue(offset=7, metadata="", commit_timestamp=FIRST))
LOGS = [name for name in golden_logs.NAMES if not name.startswith("user")]


def damaged(folder):
    """The log with a byte in the middle of each segment that is another."""
    for file in folder.glob("__consumer_offsets-*/*.log"):
        data = bytearray(file.read_bytes())
        if data:
            data[len(data) // 2] ^= 0xFF
            file.write_bytes(data)
    return folder


@pytest.mark.parametrize("broken", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_a_log_gives_the_same_increment_both_ways(spark, tmp_path, broken):
    differing = []
    kinds = set()
    for name in LOGS:
        folder = golden_logs.unpack(name, tmp_path)
        log = source(f"log:{damaged(folder) if broken else folder}")
        plan = log.plan({})
        if not plan.ranges:  # the damage has torn its only batch
            continue
        with Writer(tmp_path / f"{name} tables") as writer:
            here = increments.write(spark, writer, log.few_or_none(plan), plan.ranges)
            there = increments.write(spark, writer, log.frame(spark, plan), plan.ranges)
            written = [
                spark_reader.rows(spark, writer.directory, writer.manifest, [one.increment])
                for one in (here, there)
            ]
        if told(here) != told(there) or rows(written[0]) != rows(written[1]):
            differing.append(name)
        kinds |= here.increment.counts.keys()

    assert differing == []
    assert kinds > {"offset_commit", "tombstone", "quarantine", "other_record"}


def told(written):
    """All that is said of an increment, but for its name."""
    one = written.increment
    return one.counts, one.ranges, one.oldest_ms, one.newest_ms, written.following


def rows(frame):
    return sorted(map(repr, frame.toArrow().cast(DECODED.arrow).to_pylist()))


def test_a_run_over_few_rows_asks_no_executor_for_them(spark, tmp_path, monkeypatch):
    compute_only(monkeypatch, ())
    folder = golden_logs.unpack("1-written", tmp_path)
    jobs.run(f"log:{folder}", tmp_path / "there", spark=without_few(spark, monkeypatch))
    monkeypatch.undo()
    compute_only(monkeypatch, ())
    monkeypatch.setattr(FeedSource, "frame", lambda *_: pytest.fail("Spark was asked"))

    jobs.run(f"log:{folder}", tmp_path / "here", spark=spark)

    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert load(tmp_path / "here").positions == load(tmp_path / "there").positions


@pytest.mark.parametrize("name", ["1-written"])
def test_tables_of_few_rows_are_those_of_many(spark, tmp_path, monkeypatch, name):
    """Computed and written by this process, and by jobs of Spark's."""
    folder = golden_logs.unpack(name, tmp_path)
    jobs.run(f"log:{folder}", tmp_path / "here", spark=spark, as_of=AS_OF)
    monkeypatch.setattr(small_runs, "DRIVER_TABLE_ROWS", -1)
    monkeypatch.setattr(small_runs, "DRIVER_REPLAY_ROWS", -1)
    monkeypatch.setattr(small_runs, "ONE_FILE_ROWS", -1)
    monkeypatch.setattr(small_runs, "ONE_FILE_REBALANCES", -1)
    monkeypatch.setattr(driver_write, "here", lambda *_: pytest.fail("written by this process"))
    monkeypatch.setattr(parts, "here", driver_write.here)
    jobs.run(f"log:{folder}", tmp_path / "there", spark=spark, as_of=AS_OF)

    told = contents(tmp_path / "here")
    assert told == contents(tmp_path / "there")
    assert all(told[one] for one in ("members", "rebalances", "offsets", "status"))


def test_a_log_without_members_has_no_histories_to_look_for(spark, tmp_path, monkeypatch):
    compute_only(monkeypatch, [one for one in MEASURES if one.table.name in _OF_HISTORIES])
    monkeypatch.setattr(histories, "replay_in_driver", lambda *_: pytest.fail("it was replayed"))
    monkeypatch.setattr(small_runs, "DRIVER_REPLAY_RECORDS", 10)  # more than there are
    key = b"\0\x01\0\x01g\0\x01t\0\0\0\0"
    log = Fed({0: raw([(n, key, None, FIRST) for n in range(5)])})
    with pytest.raises(pytest.fail.Exception, match="it was replayed"):  # a tombstone may be of one
        jobs.run(log, tmp_path / "tombstones", spark=spark)

    log = Fed({0: raw([(n, key, COMMIT, FIRST) for n in range(5)])})
    jobs.run(log, tmp_path / "commits", spark=spark)
    told = contents(tmp_path / "commits")
    assert [told[one] for one in _OF_HISTORIES] == [[], [], []]
    assert load(tmp_path / "commits").histories.states == ()


def without_few(spark, monkeypatch):
    monkeypatch.setattr(FeedSource, "few_or_none", lambda *_: None)
    return spark


@pytest.mark.parametrize(("name", "limit"), [("DRIVER_LOG_BYTES", 25), ("DRIVER_READ_BYTES", 1000)])
def test_many_rows_are_left_to_the_executors(tmp_path, monkeypatch, name, limit):
    log = source(f"log:{golden_logs.unpack('1-written', tmp_path)}")
    plan = log.plan({})
    assert log.few_or_none(plan) is not None
    monkeypatch.setattr(small_runs, name, limit)
    assert log.few_or_none(plan) is None


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda table: table.take([0, 1, 2, 3, 4, 2]), "has offset 2 more than once"),
        (lambda table: table, r"was read at offsets 0 to 4, expected 0 to 3"),
        (lambda table: of_kind(table, "nothing"), "has 5 rows of a kind that no table has"),
        (lambda table: of_kind(table, None), "has 5 rows of a kind that no table has"),
    ],
)
def test_rows_that_should_not_be_are_found_both_ways(spark, tmp_path, spoil, words):
    key = b"\0\x01\0\x01g\0\x01t\0\0\0\0"
    batch = decode(ArrowRows(raw([(n, key, None, FIRST) for n in range(5)])))
    table = spoil(pa.Table.from_batches([batch]))
    end = 4 if "expected" in words else 5
    with Writer(tmp_path) as writer:
        for one in (table, spark.createDataFrame(table, struct_of(DECODED))):
            with pytest.raises(Broken, match=words):
                increments.write(spark, writer, one, {0: (0, end)})


def of_kind(table, kind):
    at = table.schema.get_field_index("kind")
    return table.set_column(at, "kind", pa.array([kind] * table.num_rows, pa.string()))


def test_bytes_that_are_none_stand_where_the_next_record_does():
    """They may share their place with it and with each other."""
    table = pa.table(
        {
            "kind": ["quarantine", "quarantine", "tombstone"],
            "partition": pa.array([0, 0, 0], pa.int32()),
            "offset": [7, 7, 7],
            "timestamp": pa.array([None, None, -1500], pa.timestamp("us", "UTC")),
        }
    )

    counted = row_counts.of_table(table, {0: (7, 8)})

    assert counted == ({"tombstone": 1, "quarantine": 2}, {0: (7, 8)}, -2, -2)
