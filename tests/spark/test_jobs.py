# SPDX-License-Identifier: Apache-2.0
"""Runs: each adds what is new, once, and computes gold where something has changed."""

import errno
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F  # noqa: N812
from tests import golden_logs
from tests.spark.feeding import Fed
from tests.spark.measures import compute_only
from tests.spark.rows import FIRST, golden, raw

import kohort.spark
from kohort.errors import Broken
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import DAY_MS, TablesError, load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup import end_samples
from kohort.pipeline.schemas import ALL_KINDS, END_OFFSETS, SILVER, Column, Table
from kohort.pipeline.schemas.rows import BATCH
from kohort.pipeline.sources import fingerprint
from kohort.pipeline.sources.log_position import Identity, Position, SourceError
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.spark import jobs
from kohort.spark.engine import small_runs
from kohort.spark.engine.frames import conform
from kohort.spark.engine.session import SessionError
from kohort.spark.gold import Measure
from kohort.spark.gold.completeness import complete_from
from kohort.spark.sources.registry import source as source_of
from kohort.spark.tables import compute, increments, ingest, spark_reader
from kohort.spark.tables.ingest import Batch, Options, add
from kohort.spark.tables.silver import views

AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
SHOWN = ("offset_commit", "consumer_group_current_member_assignment", "group_metadata")
COUNTS = Table(
    "counts",
    "gold",
    "Rows by partition.",
    (
        Column("partition", pa.int32(), ""),
        Column("rows", pa.int64(), ""),
        Column("as_of", pa.timestamp("us", "UTC"), ""),
    ),
)
TOTAL = Table("total", "gold", "Rows.", (Column("rows", pa.int64(), ""),))
MEASURES = (
    Measure(
        COUNTS,
        lambda frames, context: conform(
            COUNTS,
            frames["records"]
            .groupBy("partition")
            .agg(F.count("*").alias("rows"))
            .withColumn("as_of", F.lit(context.as_of)),
        ),
    ),
    Measure(
        TOTAL,
        lambda frames, _: conform(TOTAL, frames["counts"].agg(F.sum("rows").alias("rows"))),
        whole=True,
    ),
)


@pytest.fixture(autouse=True)
def small_gold(monkeypatch):
    """Gold that tells when it was computed."""
    compute_only(monkeypatch, MEASURES)


def keyed(count, *, start=0, partition=0, ms=FIRST):
    """Tombstones of ten different keys."""
    keys = [b"\0\x01\0\x01g\0\x01t" + bytes([0, 0, 0, n % 10]) for n in range(start, start + count)]
    return raw([(start + n, key, None, ms) for n, key in enumerate(keys)], partition)


def joined(*batches):
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def by_partition(directory):
    return {row["partition"]: row for row in Tables(directory).table("counts").to_pylist()}


def offsets(directory, partition=0):
    rows = Tables(directory).table("records").to_pylist()
    return sorted(row["offset"] for row in rows if row["partition"] == partition)


def test_a_real_log_is_read_once_and_shown_the_same_by_spark_and_by_arrow(spark, tmp_path):
    folder = golden_logs.unpack("1-written", tmp_path)
    out = tmp_path / "out"
    heard = []

    first = jobs.run(f"log:{folder}", out, spark=spark, as_of=AS_OF, progress=heard.append)
    second = jobs.run(f"log:{folder}", out, spark=spark, as_of=AS_OF)

    dumped = [
        one
        for one in golden_logs.dump("1-written")
        if one["kind"] == "record" and one["file"].startswith("__consumer_offsets")
    ]
    assert sum(first.rows.values()) == len(dumped) == golden("1-written").num_rows
    assert (second.rows, first.gold) == ({}, {"counts": 4, "total": 1})
    assert {one.what for one in heard} >= {"reading", "computing"}
    assert load(out).added == {kind: first.rows.get(kind, 0) for kind in ALL_KINDS}
    tables = Tables(out)
    for table in (*(one for one in SILVER if one.name in SHOWN), COUNTS):
        by_spark = kohort.spark.read(out, table.name, spark).select(table.names).toArrow()
        by_spark = by_spark.cast(table.arrow)
        order = [(name, "ascending") for name in table.names[:2]]
        assert by_spark.sort_by(order).equals(tables.table(table.name).sort_by(order)), table.name
    with pytest.raises(
        TablesError, match=r"a log with topic id \S+, and this one was created anew"
    ):
        jobs.run(Fed({}), out, spark=spark)


def test_a_second_run_reads_what_is_new_and_computes_where_it_is(spark, tmp_path):
    log = Fed({0: keyed(5), 1: keyed(5, partition=1)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    log.rows[1] = keyed(9, partition=1)
    later = AS_OF + timedelta(hours=1)

    summary = jobs.run(log, tmp_path, spark=spark, as_of=later)

    assert summary.rows == {"tombstone": 4}
    assert summary.gold == {"counts": 2, "total": 1}
    assert load(tmp_path).positions == {0: Position(5), 1: Position(9)}
    counts = by_partition(tmp_path)
    assert counts[0] == {"partition": 0, "rows": 5, "as_of": AS_OF}
    assert counts[1] == {"partition": 1, "rows": 9, "as_of": later}
    assert Tables(tmp_path)("total").to_table().to_pylist() == [{"rows": 14}]
    assert [one.ranges for one in load(tmp_path).increments] == [
        {0: (0, 5), 1: (0, 5)},
        {1: (5, 9)},
    ]
    assert kohort.spark.read(tmp_path, "counts", spark).agg(F.sum("rows")).first()[0] == 14


def test_what_was_read_before_a_cut_is_read_again(spark, tmp_path):
    log = Fed({0: keyed(10), 1: keyed(3, partition=1)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    log.cut = {0: 6}
    log.rows[0] = joined(keyed(6), keyed(2, start=6, ms=FIRST + 1))

    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF + timedelta(hours=1))

    assert offsets(tmp_path) == list(range(8))
    assert by_partition(tmp_path)[0]["rows"] == 8
    assert by_partition(tmp_path)[1]["as_of"] == AS_OF
    assert kohort.spark.read(tmp_path, "records", spark).count() == 11


def test_an_older_copy_hides_nothing(spark, tmp_path):
    log = Fed({0: keyed(10), 1: keyed(3, partition=1)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    before = load(tmp_path)
    log.cut = {0: 6}
    said = "partition 0 ends at offset 8 and was read to 10 before: it is an older copy, or its"
    for number in (8, 6):  # some of what was read behind the last fingerprint, and nothing of it
        log.rows[0] = keyed(number)
        summary = jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)

        assert (summary.rows, offsets(tmp_path)) == ({}, list(range(10)))
        assert said.replace("8", str(number)) in summary.notes[0].text
        assert load(tmp_path).positions == before.positions
    with pytest.raises(TablesError, match=r"ends at offset 6 .*, but not as a stream: run it with"):
        jobs.stream(log, tmp_path, spark=spark)

    log.rows[0] = joined(keyed(7), keyed(2, start=7, ms=FIRST + 1))  # it was cut, as is seen now
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    assert offsets(tmp_path) == list(range(9))


def test_an_older_copy_hides_nothing_from_a_run_that_ends_before_it_does(spark, tmp_path):
    log = Fed({0: keyed(10)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    log.cut, log.rows[0] = {0: 6}, keyed(8)
    until = datetime.fromtimestamp(FIRST / 1000, UTC) + timedelta(seconds=7)

    summary = jobs.run(log, tmp_path, spark=spark, as_of=AS_OF, to_time=until)

    assert offsets(tmp_path) == list(range(10))
    assert "ends at offset 8 and was read to 10 before" in summary.notes[0].text


def test_increments_that_were_cut_become_one_that_ends_where_the_log_does(
    spark, tmp_path, monkeypatch
):
    """Each by itself at the end of a run, and where they are merged."""
    log = Fed({0: keyed(10), 1: keyed(3, partition=1)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    log.cut, log.rows[0] = {0: 6}, joined(keyed(6), keyed(2, start=6, ms=FIRST + 1))
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "merge_and_expire", lambda *_: None)
        jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)

    with Writer(tmp_path) as writer:
        (first, second) = writer.manifest.increments
        assert (first.cuts, first.planned, second.planned) == ({0: 6}, True, True)
        merged = increments.merge(spark, writer, writer.manifest, [first, second])
        alone = increments.merge(spark, writer, writer.manifest, [first])

    (one,) = merged.increments
    assert (one.ranges, one.cuts, one.planned) == ({0: (0, 8), 1: (0, 3)}, {}, True)
    assert sum(one.counts.values()) == 11
    assert alone.increments[0].ranges == {0: (0, 6), 1: (0, 3)}
    log.cut = {}
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    ranges = [increment.ranges for increment in load(tmp_path).increments]
    assert sorted(map(repr, ranges)) == ["{0: (0, 6), 1: (0, 3)}", "{0: (6, 8)}"]
    assert not any(increment.cuts for increment in load(tmp_path).increments)


def test_a_name_of_a_directory_is_no_pattern(spark, tmp_path):
    """As one is that Spark reads."""
    out = tmp_path / "a*b [x] {y,z} q? \\e"
    jobs.run(Fed({0: keyed(3)}), out, spark=spark, as_of=AS_OF)
    jobs.run(Fed({0: keyed(5)}), out, spark=spark, as_of=AS_OF)
    assert offsets(out) == list(range(5))
    assert kohort.spark.read(out, "records", spark).count() == 5
    assert kohort.spark.read(out, "counts", spark).count() == 1


def test_notes_of_every_run_are_kept_once(spark, tmp_path):
    log = Fed({0: keyed(10)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    log.cut, log.rows[0] = {0: 6}, keyed(8)
    told = [jobs.run(log, tmp_path, spark=spark, as_of=AS_OF).notes for _ in range(2)]
    assert told[0] == told[1] != ()
    assert load(tmp_path).notes == told[0]
    assert load(tmp_path).noted == len(told[0])


def test_where_nothing_is_new_no_session_is_needed(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "SETTLED_NS", 0)
    folder = golden_logs.unpack("1-written", tmp_path)
    out = tmp_path / "out"
    first = jobs.run(f"log:{folder}", out, spark=spark)
    before = load(out)
    with monkeypatch.context() as without:
        without.setattr(jobs, "session", lambda *_, **__: pytest.fail("Spark was started"))
        same = jobs.run(f"log:{folder}", out)
    assert (same.rows, same.gold, same.unchanged, first.unchanged) == ({}, first.gold, True, False)
    assert abs(same.as_of - first.as_of) < timedelta(milliseconds=1)
    assert same.log_end == first.log_end
    assert load(out) == before

    later = jobs.run(f"log:{folder}", out, spark=spark, as_of=AS_OF)
    assert (later.unchanged, load(out).as_of_ms) == (False, AS_OF.timestamp() * 1000)


def test_files_of_gold_that_are_gone_are_made_anew(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "SETTLED_NS", 0)
    folder = golden_logs.unpack("1-written", tmp_path)
    out = tmp_path / "out"
    jobs.run(f"log:{folder}", out, spark=spark, as_of=AS_OF)
    wanted = by_partition(out)
    for damage in (Path.unlink, lambda file: file.write_bytes(b"PAR1")):
        (part,) = load(out).gold["counts"].parts
        for file in (out / part.path).glob("*.parquet"):
            damage(file)

        again = jobs.run(f"log:{folder}", out, spark=spark, as_of=AS_OF)

        assert (again.unchanged, by_partition(out)) == (False, wanted)


def test_another_kohort_computes_anew(spark, tmp_path, monkeypatch):
    log = Fed({0: keyed(5)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    later = AS_OF + timedelta(hours=1)
    jobs.run(log, tmp_path, spark=spark, as_of=later)
    assert by_partition(tmp_path)[0]["as_of"] == AS_OF
    for module in (ingest, compute):
        monkeypatch.setattr(module, "code", lambda: "of tomorrow")

    jobs.run(log, tmp_path, spark=spark, as_of=later)

    assert by_partition(tmp_path)[0]["as_of"] == later


def test_where_a_copy_ends_is_told_unless_it_ends_now(spark, tmp_path):
    folder = golden_logs.unpack("1-written", tmp_path)
    newest = max(golden("1-written").column("timestamp").to_pylist())
    for number, (as_of, told) in enumerate(
        [(None, True), (newest + timedelta(seconds=59), False), (newest, False)]
    ):
        summary = jobs.run(f"log:{folder}", tmp_path / str(number), spark=spark, as_of=as_of)

        assert (summary.log_end is not None) == told
        if told:
            assert newest <= summary.log_end < summary.as_of


def test_an_older_copy_of_a_real_log(spark, tmp_path):
    """The same of folders: the copy of each partition is shorter by some batches."""
    folder = Path(golden_logs.unpack("1-written", tmp_path))
    whole = jobs.run(f"log:{folder}", tmp_path / "out", spark=spark, as_of=AS_OF)
    for file in folder.rglob("*.log"):
        size = file.stat().st_size
        with file.open("r+b") as opened:
            opened.truncate(size * 2 // 3)
    rows = Tables(tmp_path / "out").table("records").num_rows

    again = jobs.run(f"log:{folder}", tmp_path / "out", spark=spark, as_of=AS_OF)

    assert Tables(tmp_path / "out").table("records").num_rows == rows == sum(whole.rows.values())
    assert again.rows == {}
    assert any("it is an older copy, or its tail was lost" in one.text for one in again.notes)


def test_tables_of_another_kohort_are_computed_anew_and_that_is_said(spark, tmp_path):
    log = Fed({0: keyed(3)})
    assert jobs.run(log, tmp_path, spark=spark, as_of=AS_OF).notes == ()
    with Writer(tmp_path) as writer:
        writer.publish(writer.manifest.with_(code="another"))

    (note,) = jobs.run(log, tmp_path, spark=spark, as_of=AS_OF).notes

    assert note.text == "another Kohort had computed the tables: all of gold was recomputed"
    assert jobs.run(log, tmp_path, spark=spark, as_of=AS_OF).notes == ()


def test_rows_of_an_earlier_version_have_nulls_in_later_columns(spark, tmp_path):
    names = [column.name for column in BATCH]
    log = Fed({0: keyed(3)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    for file in (tmp_path / "rows").rglob("*.parquet"):
        table = pq.ParquetFile(file).read()
        assert set(names) <= set(table.schema.names)
        pq.write_table(table.drop_columns(names), file)
    for crc in (tmp_path / "rows").rglob("*.crc"):
        crc.unlink()
    told = {"partition_leader_epoch": 7, "base_offset": 3, "attributes": 0}
    log.rows[0] = joined(keyed(3), raw([{**told, "offset": 3, "key": b"k", "value": None}]))

    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)

    expected = [dict.fromkeys(names)] * 3 + [told]
    by_arrow = Tables(tmp_path).table("records").sort_by("offset").select(names).to_pylist()
    by_spark = kohort.spark.read(tmp_path, "records", spark).orderBy("offset").select(names)
    assert by_arrow == [row.asDict() for row in by_spark.collect()] == expected


def test_files_that_come_late_are_read(spark, tmp_path):
    """Not those of history that was dropped, or left out on purpose."""
    rows = pa.Table.from_batches([keyed(40)])
    place = tmp_path / "in"
    place.mkdir()

    def give(start, end):
        pq.write_table(rows.slice(start, end - start), place / f"{start}.parquet")
        return jobs.run(f"parquet:{place}", tmp_path / "out", spark=spark, as_of=AS_OF)

    give(10, 20)
    assert give(30, 40).notes == ()
    summary = give(20, 30)
    assert summary.rows == {"tombstone": 10}
    assert [one.text for one in summary.notes] == [
        (
            "10 records of partition 0, from offset 20 on, came after later ones had been read, "
            "and were read now"
        )
    ]
    assert offsets(tmp_path / "out") == list(range(10, 40))
    (place / "30.parquet").unlink()  # what was read may go
    assert sum(give(0, 10).rows.values()) == 10
    assert offsets(tmp_path / "out") == list(range(40))
    assert by_partition(tmp_path / "out")[0]["rows"] == 40
    assert jobs.run(f"parquet:{place}", tmp_path / "out", spark=spark, as_of=AS_OF).rows == {}

    (place / "0.parquet").unlink()
    begun = datetime.fromtimestamp(FIRST / 1000 + 1, UTC)
    later = pa.Table.from_batches([keyed(5, start=50, ms=FIRST + 2000)])
    pq.write_table(later, place / "50.parquet")
    other = tmp_path / "other"
    jobs.run(f"parquet:{place}", other, spark=spark, as_of=AS_OF, from_time=begun)
    give(0, 10)
    assert jobs.run(f"parquet:{place}", other, spark=spark, as_of=AS_OF).rows == {}
    assert offsets(other) == list(range(50, 55))


def test_files_that_were_read_are_not_looked_at_again(spark, tmp_path):
    rows = pa.Table.from_batches([keyed(40)])
    place = tmp_path / "in" / "day=1"
    place.mkdir(parents=True)
    for start in (0, 20):
        pq.write_table(rows.slice(start, 10), place / f"{start}.parquet")
    log = source_of(f"parquet:{tmp_path / 'in'}")
    since = {0: Position(30)}
    nothing = spark.createDataFrame([], "partition int, offset bigint")

    log.plan(since)
    known = log.files()
    every = log.late_rows(spark, since, lambda: nothing)
    assert sorted(row["offset"] for row in every.collect()) == [*range(10), *range(20, 30)]
    assert log.late_rows(spark, since, lambda: nothing, known) is None
    pq.write_table(rows.slice(10, 10), place / "10.parquet")
    pq.write_table(rows.slice(30, 10), place / "30.parquet")
    assert log.late_rows(spark, since, lambda: nothing, known) is None  # the plan has not seen them
    log.plan(since)
    late = log.late_rows(spark, since, lambda: nothing, known)
    assert sorted(row["offset"] for row in late.collect()) == list(range(10, 20))
    assert {*known} < {*log.files()}
    os.utime(place / "0.parquet", ns=(1, 1))  # as one that was written anew
    log.plan(since)
    again = log.late_rows(spark, since, lambda: nothing, known)
    assert sorted(row["offset"] for row in again.collect()) == list(range(20))


def test_what_a_run_has_read_the_next_one_knows(spark, tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    pq.write_table(pa.Table.from_batches([keyed(9)]), place / "0.parquet")
    for _ in range(2):
        jobs.run(f"parquet:{place}", tmp_path / "out", spark=spark, as_of=AS_OF)
        assert len(load(tmp_path / "out").source_files) == 1


def test_counts_that_do_not_add_up_stop_the_run(spark, tmp_path):
    class Wrong(Fed):
        def frame(self, spark, plan):
            return self.change(super().frame(spark, plan))

    for change, words in (
        (lambda frame: frame.union(frame), "partition 0 has offset 2 more than once"),
        (lambda frame: frame.withColumn("offset", F.col("offset") + 1), "read at offsets 1 to 3, "),
        (lambda frame: frame.withColumn("kind", F.lit("x")), "3 rows of a kind that no table has"),
    ):
        log = Wrong({0: keyed(3)})
        log.change = change
        with pytest.raises(Broken, match=words):
            jobs.run(log, tmp_path, spark=spark)
        assert load_number(tmp_path) == 0


def test_damage_that_has_no_offset_of_its_own_is_kept(spark, tmp_path):
    damage = {"offset": 3, "value": b"?", "error": "no batch", "ms": None}
    log = Fed({0: joined(keyed(3), raw([damage, {**damage, "value": b"!"}]), keyed(9, start=3))})

    summary = jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)

    assert summary.rows == {"tombstone": 12, "quarantine": 2}
    frames = views(spark_reader.rows(spark, tmp_path, load(tmp_path)))
    (row,) = complete_from(frames).collect()
    assert row.complete_offset == 10  # the first record with a key that was there before


def load_number(directory):
    with Writer(directory) as writer:
        return writer.manifest.number


def test_another_log_is_refused(spark, tmp_path):
    jobs.run(Fed({}, identity=Identity("c-1", None)), tmp_path, spark=spark)
    jobs.run(Fed({}), tmp_path, spark=spark)
    assert load(tmp_path).identity == Identity("c-1", "t-1")
    assert load(tmp_path).positions == {}

    for identity, words in (
        (Identity("c-2", "t-1"), "has the tables of cluster c-1, and this log is of cluster c-2"),
        (Identity(None, "t-2"), "topic id t-1, and this one was created anew with t-2: write into"),
    ):
        with pytest.raises(TablesError, match=words):
            jobs.run(Fed({}, identity=identity), tmp_path, spark=spark)


def test_merging_changes_no_row_and_old_history_goes_but_not_the_state(
    spark, tmp_path, monkeypatch
):
    day = DAY_MS
    log = Fed({0: keyed(0)})
    monkeypatch.setattr(increments, "MOST_INCREMENTS", 3)
    for number in range(3):
        log.rows[0] = joined(
            *(keyed(10, start=10 * n, ms=FIRST + n * day) for n in range(number + 1))
        )
        with Writer(tmp_path) as writer:
            plan = log.plan(writer.manifest.positions)
            add(spark, writer, log, Batch(log.frame(spark, plan), plan), Options(AS_OF))
    assert len(load(tmp_path).increments) == 3

    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)

    (merged,) = load(tmp_path).increments
    assert (merged.ranges, merged.rows) == ({0: (0, 30)}, 30)
    assert offsets(tmp_path) == list(range(30))
    log.rows[0] = joined(log.rows[0], keyed(5, start=30, ms=FIRST + 30 * day))
    as_of = datetime.fromtimestamp((FIRST + 31 * day) / 1000, UTC)

    jobs.run(log, tmp_path, spark=spark, as_of=as_of, keep_days=10)

    # Of the old ones the last of each key is left, if the key has come back.
    assert offsets(tmp_path) == [*range(20, 25), *range(30, 35)]
    assert by_partition(tmp_path)[0] == {"partition": 0, "rows": 10, "as_of": as_of}
    number = load(tmp_path).number
    jobs.run(log, tmp_path, spark=spark, as_of=as_of, keep_days=10)
    assert load(tmp_path).number == number + 1


def test_of_old_transactions_stays_what_still_holds(spark, tmp_path):
    def record(index, value=None):
        return Record(OffsetCommitKey(group="g", topic="t", partition=index), value)

    def commit(index, producer_id=-1):
        inside = {"producer_id": producer_id, "transactional": True} if producer_id >= 0 else {}
        return {"record": record(index, OffsetCommitValue(offset=1)), "ms": FIRST, **inside}

    def end(producer_id, key):
        marker = {"producer_id": producer_id, "transactional": True, "control": True}
        return {"key": key, "value": b"\0\0\0\0\0\0", "ms": FIRST, **marker}

    aborts, ends_well = b"\0\0\0\0", b"\0\0\0\1"
    entries = [
        commit(0),
        *(commit(0, 1), end(1, aborts)),
        *(commit(1, 1), end(1, ends_well)),
        *(commit(1, 1), end(1, ends_well)),
        *(commit(2, 2), {"record": record(2), "ms": FIRST}),
        {"key": None, "value": b"?", "error": "torn", "ms": FIRST},
        *(commit(3, 3), commit(4, 4), commit(4)),
    ]
    log = Fed({0: raw(entries)})

    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF + timedelta(days=90), keep_days=1)

    assert offsets(tmp_path) == [0, 5, 6, 10, 11, 12]
    assert load(tmp_path).increments[0].compacted


def test_samples_of_end_offsets_are_kept_once(spark, tmp_path, monkeypatch):
    row = {"sampled_at": AS_OF, "topic": "t", "topic_partition": 0, "origin": "log"}
    rows = [{**row, "end_offset": n} for n in (3, 5)]
    log = Fed({}, samples=pa.Table.from_pylist(rows[:1], schema=END_OFFSETS.arrow))
    jobs.run(log, tmp_path, spark=spark)
    log.samples = pa.Table.from_pylist([*rows, rows[1]], schema=END_OFFSETS.arrow)

    jobs.run(log, tmp_path, spark=spark)
    jobs.run(log, tmp_path, spark=spark)

    found = kohort.spark.read(tmp_path, "end_offsets", spark).collect()
    assert sorted(one.end_offset for one in found) == [3, 5]
    assert len(load(tmp_path).end_offsets) == 2
    monkeypatch.setattr(end_samples, "MOST_PARTS", 2)
    jobs.run(log, tmp_path, spark=spark)
    assert [one.rows for one in load(tmp_path).end_offsets] == [2]


def test_a_changed_measure_is_computed_anew(spark, tmp_path, monkeypatch):
    log = Fed({0: keyed(2)})
    jobs.run(log, tmp_path, spark=spark, as_of=AS_OF)
    wider = Table("counts", "gold", "", (*COUNTS.columns, Column("more", pa.int32(), "")))
    changed = Measure(
        wider,
        lambda frames, context: conform(
            wider, MEASURES[0].compute(frames, context).withColumn("more", F.lit(1))
        ),
    )
    compute_only(monkeypatch, (changed,))
    later = AS_OF + timedelta(hours=1)

    assert jobs.run(log, tmp_path, spark=spark, as_of=later).gold == {"counts": 1}

    assert by_partition(tmp_path) == {0: {"partition": 0, "rows": 2, "as_of": later, "more": 1}}


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("spark.sql.codegen.wholeStage", "QUICK_JVM_ROWS"),
        ("spark.sql.adaptive.enabled", "DRIVER_TABLE_ROWS"),
    ],
)
def test_what_a_small_run_sets_ends_with_it(spark, tmp_path, monkeypatch, name, limit):
    """Also in a session that is there already: the next run may be large."""
    before = {one: spark.conf.get(one) for one in (name, "spark.sql.shuffle.partitions")}
    log, heard = Fed({0: keyed(2)}), []
    spark.conf.set(name, "true")
    try:
        for most in (getattr(small_runs, limit), 0):
            monkeypatch.setattr(small_runs, limit, most)
            jobs.run(
                log, tmp_path, as_of=AS_OF, progress=lambda _: heard.append(spark.conf.get(name))
            )
            log.rows[0] = keyed(4)
            heard.append(spark.conf.get(name))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
    finally:
        for one, value in before.items():
            spark.conf.set(one, value)

    quick, large = heard[: heard.index("true", 1) + 1], heard[heard.index("true", 1) + 1 :]
    assert (quick[0], quick[-1]) == ("true", "true")  # while Spark starts, and after the run
    assert set(quick[1:-1]) == {"false"}
    assert set(large) == {"true"}


def test_what_fails_in_spark_is_one_sentence(spark, tmp_path):
    class Failing(Fed):
        def frame(self, spark, plan):
            return super().frame(spark, plan).where(F.raise_error(F.lit("no such luck")).isNull())

    with pytest.raises(SessionError) as caught:
        jobs.run(Failing({0: keyed(1)}), tmp_path, spark=spark)
    assert "no such luck" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [SessionError, KeyboardInterrupt])
def test_nobody_waits_for_rows_that_are_not_wanted_any_more(tmp_path, monkeypatch, error):
    """They are read while Spark starts, of a cluster that may not answer."""
    asked, answered = threading.Event(), threading.Event()

    class Silent(Fed):
        def few_or_none(self, plan):
            asked.set()
            assert answered.wait(60)

    def session(*_, **__):
        assert asked.wait(60)
        raise error("Spark does not start")

    monkeypatch.setattr(jobs, "session", session)
    try:
        with pytest.raises(error):
            jobs.run(Silent({0: keyed(1)}), tmp_path)
        assert not answered.is_set()
    finally:
        answered.set()


def test_what_fails_while_spark_starts_is_raised(spark, tmp_path):
    class Failing(Fed):
        def few_or_none(self, plan):
            raise SourceError("the log is gone")

    with pytest.raises(SourceError, match="the log is gone"):
        jobs.run(Failing({0: keyed(1)}), tmp_path, spark=spark)


def test_who_has_lost_the_lock_publishes_nothing(tmp_path):
    with Writer(tmp_path) as first:
        first.publish(first.manifest)
        late = Writer(tmp_path, locked=False)
        first.publish(first.manifest)

        with pytest.raises(TablesError, match="manifest 2 is there, expected 1"):
            late.publish(late.manifest)


def test_a_full_disk_is_no_damage(spark, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space")

    monkeypatch.setattr(ingest, "flip", full)
    with pytest.raises(TablesError) as told:
        jobs.run(Fed({0: keyed(3)}), tmp_path, spark=spark)
    text = str(told.value)
    assert text.startswith("No space left on device (free: ")
    assert f"in {tmp_path} for the tables" in text
    assert text.endswith(f"The tables in {tmp_path} are whole, and as they were before")
