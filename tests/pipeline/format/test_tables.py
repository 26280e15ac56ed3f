# SPDX-License-Identifier: Apache-2.0
"""The directory of tables without Spark: one manifest, one writer, nothing left behind."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from tests.spark.rows import golden, raw
from tests.spark.tables.test_sample_delta import progress

import kohort.spark
from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.format import manifest
from kohort.pipeline.format.arrow_reader import Rows, Tables
from kohort.pipeline.format.manifest import Increment, Manifest, Part, TablesError, load
from kohort.pipeline.format.writer import MOST_NOTES, BusyError, Writer
from kohort.pipeline.rollup.end_samples import append_samples, merge_samples
from kohort.pipeline.schemas import ALL_KINDS, END_OFFSETS, RECORDS_TABLE, SILVER
from kohort.pipeline.sources.log_position import Identity, Note, Position
from kohort.pipeline.stores import layout, parquet
from kohort.pipeline.stores.layout import ROWS
from kohort.spark.tables import increments, verification


def written(writer, rows):
    """Decoded rows as Spark writes them, a directory for each kind."""
    name = writer.new_name("increment=")
    table = pa.Table.from_batches([decode(ArrowRows(rows))])
    counts = {}
    for kind in set(table.column("kind").to_pylist()):
        some = table.filter(pa.compute.equal(table.column("kind"), kind)).drop(["kind"])
        folder = writer.directory / ROWS / name / f"kind={kind}"
        folder.mkdir(parents=True)
        pq.write_table(some, folder / "part-0.parquet")
        counts[kind] = some.num_rows
    ranges = {}
    for partition, offset in zip(
        *(rows.column(name).to_pylist() for name in ("partition", "offset")), strict=True
    ):
        start, end = ranges.get(partition, (offset, offset + 1))
        ranges[partition] = min(start, offset), max(end, offset + 1)
    return Increment(name=name, ranges=ranges, counts=counts, oldest_ms=0, newest_ms=1)


def add(writer, rows):
    one = written(writer, rows)
    writer.publish(writer.manifest.with_(increments=(*writer.manifest.increments, one)))
    return one


def test_every_row_of_a_real_log_is_in_exactly_one_table(tmp_path):
    rows = golden("1-written")
    with Writer(tmp_path) as writer:
        add(writer, rows)

    tables = Tables(tmp_path)
    counts = {table.name: tables.table(table.name).num_rows for table in SILVER}
    assert sum(counts.values()) == rows.num_rows
    assert counts["offset_commit"] > 50
    for table in (RECORDS_TABLE, *SILVER):
        assert tables.table(table.name).schema.equals(table.arrow), table.name
    order = [("partition", "ascending"), ("offset", "ascending")]
    records = tables.table("records").sort_by(order)
    assert records.equals(pa.Table.from_batches([rows]).sort_by(order))
    members = tables.table("consumer_group_member_metadata").to_pylist()
    assert {"orders"} <= {topic for one in members for topic in one["subscribed_topic_names"]}
    (topic_id,) = {
        row["topic_id"]
        for row in tables.table("offset_commit").to_pylist()
        if row["topic"] == "orders" and row["topic_id"]
    }
    assert re.fullmatch(r"[\w-]{22}", topic_id)


def test_an_empty_directory_of_tables_has_every_table(tmp_path):
    with Writer(tmp_path) as writer:
        writer.publish(writer.manifest)

    tables = Tables(tmp_path)
    for table in (RECORDS_TABLE, END_OFFSETS, *SILVER):
        assert tables.table(table.name).num_rows == 0
        assert tables.table(table.name).schema.equals(table.arrow)
    assert set(kohort.spark.list_tables(tmp_path)) == {"records", "end_offsets", *ALL_KINDS}


def test_rows_behind_a_cut_do_not_count(tmp_path):
    first = [(n, b"\0\x01k", None) for n in range(10)]
    with Writer(tmp_path) as writer:
        add(writer, raw(first))
        add(writer, raw(first, partition=1))
        cut = increments.cut(writer.manifest.increments, {0: 6})
        writer.publish(writer.manifest.with_(increments=cut))
        add(writer, raw([(n, b"\0\x01again", None) for n in range(6, 8)]))

    rows = Tables(tmp_path).table("records").to_pylist()
    assert [row["offset"] for row in rows if row["partition"] == 0] == list(range(8))
    assert [row["key"] for row in rows if row["partition"] == 0][6:] == [b"\0\x01again"] * 2
    assert sum(row["partition"] == 1 for row in rows) == 10
    again = increments.cut(cut, {0: 3})
    assert again[0].cuts == {0: 3}
    assert increments.cut(again, {0: 5})[0].cuts == {0: 3}


def test_what_others_keep_there_stays(tmp_path):
    kept = [tmp_path / "server_logs" / "server.log", tmp_path / "gold" / "sales" / "x.parquet"]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")

    for _ in range(2):
        with Writer(tmp_path) as writer:
            writer.publish(writer.manifest)

    assert all(file.exists() for file in kept)


def test_an_empty_manifest_is_damage_and_not_no_tables(tmp_path):
    with Writer(tmp_path) as writer:
        writer.publish(writer.manifest)
        folder = tmp_path / "gold" / "lag" / writer.new_name("")
    folder.mkdir(parents=True)
    (tmp_path / layout.MANIFEST).write_bytes(b"")

    with pytest.raises(TablesError, match="is not a manifest of tables"):
        Writer(tmp_path)
    assert folder.exists()


def test_what_a_crashed_writer_left_is_removed_by_the_next(tmp_path):
    with Writer(tmp_path) as writer:
        kept = add(writer, raw([(0, b"k", None)]))
        lost = written(writer, raw([(1, b"k", None)]))
        (tmp_path / "gold" / "lag" / "000002-0a1b2c3d-1").mkdir(parents=True)
        (tmp_path / "end_offsets" / "000002-0a1b2c3d-1").mkdir(parents=True)
        (tmp_path / "checkpoints" / "000002-0a1b2c3d-1").mkdir(parents=True)
        (tmp_path / "notes.txt").write_text("mine")

    assert Tables(tmp_path).table("records").num_rows == 1
    with Writer(tmp_path):
        there = {one.name for one in (tmp_path / ROWS).iterdir()}
        assert there == {kept.name, "_delta_log"} != {lost.name, "_delta_log"}
        for folder in ("gold/lag", "end_offsets", "checkpoints"):
            assert not list((tmp_path / folder).glob("0*"))
    assert (tmp_path / "notes.txt").exists()


def test_what_is_replaced_stays_for_readers_for_a_while(tmp_path, monkeypatch):
    with Writer(tmp_path) as writer:
        old = add(writer, raw([(0, b"k", None)]))
        reader = Tables(tmp_path)
        new = written(writer, raw([(0, b"k", None)]))
        writer.publish(writer.manifest.with_(increments=(new,)))
    with Writer(tmp_path) as writer:
        assert [one.path for one in writer.manifest.retired] == [f"{ROWS}/{old.name}"]
        assert reader.table("records").num_rows == 1
        monkeypatch.setattr("kohort.pipeline.format.writer.GRACE_MS", -1)
        writer.publish(writer.manifest)
    assert not (tmp_path / ROWS / old.name).exists()
    assert load(tmp_path).retired == ()
    assert Tables(tmp_path).table("records").num_rows == 1


def test_one_writes_at_a_time_and_others_are_told_who(tmp_path):
    program = (
        "import sys; from pathlib import Path; from kohort.pipeline.format.writer import Writer\n"
        "with Writer(Path(sys.argv[1])): print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BusyError, match=rf"is being written by pid {other.pid} on \S+ since"):
            Writer(tmp_path)
        other.kill()
        other.wait()
        with Writer(tmp_path) as writer:
            assert str(os.getpid()) in (tmp_path / layout.LOCK).read_text()
            with pytest.raises(BusyError):
                Writer(tmp_path)
    with pytest.raises(TablesError, match="is not written any more"):
        writer.publish(writer.manifest)


def test_an_interrupt_while_a_writer_opens_leaves_the_tables_to_others(tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Writer, "_remove_orphans", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Writer(tmp_path)
    with Writer(tmp_path):
        pass


def test_what_was_noted_is_counted_when_it_is_forgotten(tmp_path):
    notes = [Note(0, number, "lost") for number in range(MOST_NOTES + 30)]
    with Writer(tmp_path) as writer:
        writer.publish(writer.manifest.with_(notes=(*notes[: MOST_NOTES - 10],)))
        before = writer.manifest
        writer.publish(before.with_(notes=before.notes_with(notes[: MOST_NOTES + 10])))
        writer.publish(writer.manifest)
    after = load(tmp_path)
    assert after.notes == tuple(notes[10 : MOST_NOTES + 10])
    assert after.noted - before.noted == 20


def test_a_manifest_survives_its_way_through_the_file(tmp_path):
    wanted = Manifest(
        source="log:x",
        identity=Identity("c", None),
        positions={3: Position(7, (5, 99), ((1, 2), (0, 4)))},
        end_offsets=(Part(path="end_offsets/1", rows=2, partitions=(1, 2)),),
    )
    with Writer(tmp_path) as writer:
        (tmp_path / "end_offsets" / "1").mkdir(parents=True)
        writer.publish(wanted)

    found = load(tmp_path)
    assert found == writer.manifest
    assert (found.number, found.positions) == (1, wanted.positions)
    assert found.identity == Identity("c", None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 99}, "has tables of schema version 99, this Kohort has 2: update"),
        ({"schema_version": 0}, "version 0, this Kohort has 2: write the tables anew"),
        ({"positions": 1}, "is not a manifest of tables: Expected"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(tmp_path, change, words):
    with Writer(tmp_path) as writer:
        writer.publish(writer.manifest)
    path = tmp_path / layout.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    for use in (load, Writer, Tables):
        with pytest.raises(TablesError, match=words):
            use(tmp_path)


def test_where_there_are_no_tables(tmp_path):
    with pytest.raises(TablesError, match="holds no tables: write some with `kohort pipeline run"):
        load(tmp_path)
    with pytest.raises(TablesError, match="does not exist"):
        Tables(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(TablesError, match="cannot be written"):
        Writer(tmp_path / "file")
    (tmp_path / layout.MANIFEST).write_text("{")
    with pytest.raises(TablesError, match="is not a manifest"):
        load(tmp_path)
    with Writer(tmp_path / "new") as writer:
        writer.publish(writer.manifest)
    with pytest.raises(TablesError, match="no table is called 'foo', expected one of records, "):
        Tables(tmp_path / "new")("foo")


def increment(number, rows, oldest_ms=0, newest_ms=0, *, compacted=False):
    return Increment(
        name=f"increment={number}",
        ranges={},
        counts={"tombstone": rows},
        oldest_ms=oldest_ms,
        newest_ms=newest_ms,
        compacted=compacted,
    )


def test_increments_of_one_size_are_merged_with_all_smaller_ones():
    few = [increment(n, 100) for n in range(9)]
    big = [increment(n, 50_000) for n in range(20, 29)]
    assert increments.to_merge([*few, *big]) == []
    assert increments.to_merge([*few, increment(9, 999), *big]) == [*few, increment(9, 999)]
    assert len(increments.to_merge([*few, *big, increment(30, 99_999)])) == 19
    assert increments.to_merge([increment(n, 5, compacted=True) for n in range(20)]) == []


def test_no_merged_increment_spans_more_than_a_quarter_of_what_is_kept():
    day = manifest.DAY_MS
    daily = [increment(n, 10, n * day, (n + 1) * day) for n in range(12)]
    assert increments.to_merge(daily, 20 * day) == daily[:5]
    assert increments.to_merge(daily, 4 * day) == []
    merged = increment(20, 50, 0, 5 * day)
    assert increments.to_merge([merged, *daily[5:]], 20 * day) == []  # fewer than ten by now
    assert increments.to_merge([merged, *daily[3:]], 16 * day) == daily[3:7]


def test_an_increment_is_too_old_when_its_last_row_is():
    both = (increment(1, 5, 0, 10), increment(2, 5, 5, 20))
    old = increment(3, 5, 0, 1, compacted=True)
    assert increments.too_old(Manifest(increments=both), 10) == []
    assert increments.too_old(Manifest(increments=both), 11) == [both[0]]
    assert increments.too_old(Manifest(increments=(*both, old)), 11) == [both[0], old]
    assert increments.too_old(Manifest(increments=(old, both[1])), 11) == []


def test_what_stands_behind_something_young_is_not_too_old():
    """Whatever the clock said when it was written."""
    first, second, third = (
        msgspec.structs.replace(increment(n, 5, 0, newest), ranges={0: (10 * n, 10 * n + 10)})
        for n, newest in enumerate([5, 50, 5])
    )
    manifest = Manifest(increments=(third, second, first))
    assert increments.too_old(manifest, 20) == [first]
    apart = msgspec.structs.replace(second, ranges={1: (0, 10)})
    assert increments.too_old(Manifest(increments=(first, apart, third)), 20) == [first, third]
    reused = msgspec.structs.replace(first, ranges={0: (0, 15)}, cuts={0: 10})
    assert increments.too_old(Manifest(increments=(reused, second)), 20) == [reused]


def test_damage_without_a_time_does_not_stop_the_dropping_of_history():
    """It is as old as what it stands before."""
    damage, after = (
        msgspec.structs.replace(increment(n, 1, times, times), ranges={0: (10 * n, 10 * n + 10)})
        for n, times in enumerate([None, 5])
    )
    both = Manifest(increments=(damage, after))
    assert increments.too_old(both, 20) == [damage, after]
    young = msgspec.structs.replace(after, oldest_ms=50, newest_ms=50)
    assert increments.too_old(Manifest(increments=(damage, young)), 20) == [damage]


def samples(count, start=0):
    at = datetime(2026, 11, 21, tzinfo=UTC)
    row = {"sampled_at": at, "topic": "t", "topic_partition": 0, "origin": "cluster"}
    rows = [{**row, "end_offset": start + n} for n in range(count)]
    return pa.Table.from_pylist(rows, schema=END_OFFSETS.arrow)


def test_samples_are_added_without_spark_and_small_files_become_one(tmp_path):
    with Writer(tmp_path) as writer:
        for number in range(21):
            append_samples(writer, samples(2, start=2 * number))
        assert len(writer.manifest.end_offsets) == 1
        append_samples(writer, samples(1, start=42))

    found = Tables(tmp_path).table("end_offsets").column("end_offset").to_pylist()
    assert sorted(found) == list(range(43))


def test_samples_that_gold_knows_stay_apart_from_later_ones(tmp_path):
    """Who computes gold again for the same moment has to do without the later ones."""
    names = Part(path=f"{layout.PROGRESS}/names", rows=0)
    (tmp_path / names.path).mkdir(parents=True)
    with Writer(tmp_path) as writer:
        for number in range(12):
            append_samples(writer, samples(1, start=number))
        known = [one.path for one in writer.manifest.end_offsets]
        writer.publish(writer.manifest.with_(progress=knows(known, names)))
        for number in range(12, 30):
            append_samples(writer, samples(1, start=number))
        later = writer.manifest
        of_then = verification._of_then(later)

        writer.publish(later.with_(progress=None))
        assert verification._of_then(writer.manifest).end_offsets == writer.manifest.end_offsets
        writer.publish(later.with_(progress=knows([], names)))
        assert verification._of_then(writer.manifest).end_offsets == ()

        writer.publish(later)
        for number in range(30, 50):
            append_samples(writer, samples(1, start=number))
            merge_samples(writer)
        last = writer.manifest
    assert len(later.end_offsets) < 12
    assert len(last.end_offsets) < 25
    for found in (of_then, verification._of_then(last)):
        assert sorted(ends(tmp_path, found)) == list(range(12))
    assert sorted(ends(tmp_path, last)) == list(range(50))


def knows(samples, names):
    return msgspec.structs.replace(progress(samples), names=names)


def ends(directory, manifest):
    for part in manifest.end_offsets:
        yield from parquet.read(directory / part.path).column("end_offset").to_pylist()


def test_parts_of_gold_count_for_their_partitions(tmp_path):
    table = SILVER[0]
    with Writer(tmp_path) as writer:
        writer.publish(writer.manifest)
    tables = Tables(tmp_path)
    parts = []
    for number, only in enumerate([(0, 2), (1,)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = [{"partition": n, "offset": number} for n in range(3)]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.arrow), folder / "x.parquet")
        parts.append(Part(path=str(number), rows=3, partitions=only))

    found = Rows(table.arrow, tables._parts(parts))
    assert sorted((row["partition"], row["offset"]) for row in found.to_table().to_pylist()) == [
        (0, 0),
        (1, 1),
        (2, 0),
    ]
