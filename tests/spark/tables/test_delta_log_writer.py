# SPDX-License-Identifier: Apache-2.0
"""Whoever reads the tables as Delta tables has the rows that count, of every table, at any moment.

What Kohort itself reads is the truth; delta-rs reads the logs.
"""

import errno
import json
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import deltalake
from tests import golden_logs
from tests.spark.feeding import Fed
from tests.spark.killed import AS_OF
from tests.spark.measures import compute_only
from tests.spark.rows import golden
from tests.tables.published import add_log, grow_old, publish, write

from kohort.pipeline.format import delta_log
from kohort.pipeline.format.arrow_reader import Tables, inside_of
from kohort.pipeline.format.catalog import known_tables, there
from kohort.pipeline.format.manifest import Gold, TablesError, load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import DECODED, END_OFFSETS
from kohort.pipeline.stores import layout
from kohort.spark import jobs
from kohort.spark.engine import small_runs
from kohort.spark.gold import MEASURES
from kohort.terms import uuid_text

STATES = known_tables()["group_state"]


def root_of(table):
    if table is END_OFFSETS:
        return layout.END
    folders = {
        "gold": f"{layout.GOLD}/{table.name}",
        "past": f"{layout.OBSERVED_HISTORY}/{table.name}",
    }
    return folders.get(table.layer, layout.ROWS)


def by_delta(directory, table):
    """The rows of a table as delta-rs reads them; those of bronze and silver are decoded rows."""
    rows = deltalake.DeltaTable(directory / root_of(table)).to_pyarrow_table()
    if root_of(table) == layout.ROWS:
        assert rows.schema.names == [*DECODED.names, "increment"]
        inside = inside_of(table)
        if table.layer == "silver":
            rows = rows.filter(pc.equal(rows["kind"], table.name))
        columns = {
            name: pc.struct_field(rows[table.name], name) if name in inside else rows[name]
            for name in table.names
        }
        if "topic_id" in columns and "topic_id" not in inside:
            ids = columns["topic_id"].to_pylist()
            columns["topic_id"] = pa.array([one and uuid_text(one) for one in ids], pa.string())
        rows = pa.table(columns)
    return rows.select(table.names).cast(table.arrow)


def in_order(rows):
    return sorted(map(repr, rows.to_pylist()))


def read_by_delta(directory, names):
    return {name: in_order(by_delta(directory, known_tables()[name])) for name in names}


def check(directory):
    """Holds what delta-rs reads against what Kohort reads; answers how many rows tables have."""
    tables = Tables(directory)
    names = [*there(tables.manifest)]
    truth = {name: in_order(tables.table(name)) for name in names}
    assert read_by_delta(directory, names) == truth
    return {name: len(rows) for name, rows in truth.items()}


def versions(directory):
    """Root of a table -> the newest version of its log."""
    return {
        str(log.parent.relative_to(directory)): deltalake.DeltaTable(log.parent).version()
        for log in directory.rglob(delta_log.LOG)
    }


def fed():
    """The partitions of a real log."""
    rows = pa.Table.from_batches([golden("1-written")])
    of = {one: pc.equal(rows["partition"], one) for one in rows["partition"].unique().to_pylist()}
    return Fed(
        {one: rows.filter(mask).combine_chunks().to_batches()[0] for one, mask in of.items()}
    )


def run(spark, log, out, **more):
    return jobs.run(log, out, spark=spark, **{"as_of": AS_OF, **more})


def dies(*_):
    raise KeyboardInterrupt


def in_part(whole, directory):
    """A copy of a log as it was when half of its busiest partition was there."""
    part = Path(shutil.copytree(whole, directory))
    files = part.rglob("__consumer_offsets-*/*.log")
    busiest = max(files, key=lambda file: file.stat().st_size)
    with busiest.open("r+b") as opened:
        opened.truncate(busiest.stat().st_size // 2)
    return part


@pytest.mark.prove
def test_at_each_flip_of_a_stream_and_of_a_run_that_dies_before_the_logs(
    spark, tmp_path, monkeypatch
):
    """The run has news in one partition of the log, and tables too large for one part."""
    whole, out = golden_logs.unpack("1-written", tmp_path / "log"), tmp_path / "out"
    part = in_part(whole, tmp_path / "part")
    seen = []
    jobs.stream(
        f"log:{part}",
        out,
        spark=spark,
        as_of=AS_OF,
        max_records=150,
        after_each=lambda _: seen.append(check(out)),
    )
    names = [*there(load(out))]
    before = read_by_delta(out, names)
    with monkeypatch.context() as patch:
        patch.setattr(small_runs, "DRIVER_TABLE_ROWS", 0)
        patch.setattr(Writer, "_follow", dies)
        with pytest.raises(KeyboardInterrupt):
            run(spark, f"log:{whole}", out)

    assert Tables(out).table("records").num_rows > len(before["records"])
    assert read_by_delta(out, names) == before
    with Writer(out):
        pass
    counts = [*(flip["records"] for flip in seen), check(out)["records"]]
    assert len(counts) == 3
    assert counts == sorted({*counts})
    assert {*names} == {*known_tables()}
    assert set(versions(out)) == {root_of(table) for table in known_tables().values()}
    gold = load(out).gold
    assert len(gold["offsets"].parts) > 1
    assert all(part.partitions is None for table in gold.values() for part in table.parts)


def test_after_a_cut_and_when_history_is_dropped(spark, tmp_path, monkeypatch):
    compute_only(monkeypatch, [one for one in MEASURES if one.table.name == "commits"])
    grow_old(monkeypatch)
    log = fed()
    run(spark, log, tmp_path)
    first = check(tmp_path)
    busiest = max(log.rows, key=lambda partition: log.rows[partition].num_rows)
    middle = log.rows[busiest].num_rows // 2
    others = log.rows[busiest].slice(middle, 3)
    later = pc.add(others["timestamp"], pa.scalar(timedelta(seconds=1)))
    others = others.set_column(2, "timestamp", later.cast(others["timestamp"].type))
    log.rows[busiest] = pa.concat_batches([log.rows[busiest].slice(0, middle), others])
    log.cut = {busiest: others["offset"][0].as_py()}
    run(spark, log, tmp_path)
    assert not any(increment.cuts for increment in load(tmp_path).increments)
    second = check(tmp_path)
    assert second["records"] < first["records"]
    log.cut = {}
    run(spark, log, tmp_path, as_of=AS_OF + timedelta(days=90), keep_days=1)

    assert 0 < check(tmp_path)["records"] < second["records"]


def part_of(writer, *groups):
    return write(writer, STATES, [{"partition": 0, "group_id": group} for group in groups])


def flip(writer, *groups):
    part = part_of(writer, *groups)
    gold = {STATES.name: Gold(columns="", parts=(part,))}
    writer.publish(writer.manifest.with_(gold=gold))


def groups(directory):
    return by_delta(directory, STATES)["group_id"].to_pylist()


def is_full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def log_of(directory):
    return directory / root_of(STATES) / delta_log.LOG


def test_what_is_not_flipped_does_not_count(tmp_path):
    with Writer(tmp_path) as writer:
        part_of(writer, "never")
        flip(writer, "a", "b")
        part_of(writer, "not yet")
        assert groups(tmp_path) == ["a", "b"]
    assert check(add_log(tmp_path))["records"] > 0


def test_a_flip_that_changes_nothing_commits_nothing(tmp_path):
    with Writer(tmp_path) as writer:
        flip(writer, "a")
        before = versions(tmp_path)
        writer.publish(writer.manifest)
    with Writer(tmp_path):
        assert versions(tmp_path) == before == {"rows": 0, "end_offsets": 0, "gold/group_state": 0}


def test_a_file_goes_only_when_no_log_names_it_any_more(tmp_path, monkeypatch):
    grow_old(monkeypatch)
    with Writer(tmp_path) as writer:
        flip(writer, "a")
        monkeypatch.setattr("kohort.pipeline.format.delta_log_writer.commit", is_full)
        with pytest.raises(
            TablesError, match=r"is up to date, but not for readers of Delta.*: No space"
        ):
            flip(writer, "b")
    monkeypatch.undo()
    assert groups(tmp_path) == ["a"]
    assert Tables(tmp_path).table(STATES.name)["group_id"].to_pylist() == ["b"]
    grow_old(monkeypatch)
    with Writer(tmp_path) as writer:
        assert groups(tmp_path) == ["b"]
        flip(writer, "c")
        assert check(tmp_path)[STATES.name] == 1


def test_a_long_log_is_read_from_a_checkpoint_and_its_beginning_goes(tmp_path, monkeypatch):
    monkeypatch.setattr("kohort.pipeline.format.delta_log_writer.KEPT_COMMITS", 12)
    grow_old(monkeypatch)
    with Writer(tmp_path) as writer:
        for number in range(34):
            flip(writer, *map(str, range(number + 1)))
            assert len(groups(tmp_path)) == number + 1
    there = sorted(path.name for path in log_of(tmp_path).iterdir())
    assert json.loads((log_of(tmp_path) / "_last_checkpoint").read_text())["version"] == 30
    assert [name for name in there if name.endswith(".json")] == [
        f"{version:020}.json" for version in range(18, 34)
    ]
    assert [name for name in there if name.endswith(".parquet")] == [
        f"{version:020}.checkpoint.parquet" for version in (20, 30)
    ]
    for version in range(18, 30):
        (log_of(tmp_path) / f"{version:020}.json").unlink()
    assert len(groups(tmp_path)) == 34
    (log_of(tmp_path) / "_last_checkpoint").unlink()
    assert len(groups(tmp_path)) == 34


def test_what_another_engine_has_changed_is_put_right_by_the_next_writer(tmp_path):
    with Writer(tmp_path) as writer:
        flip(writer, "a", "b")
    table = deltalake.DeltaTable(tmp_path / root_of(STATES))
    before = table.metadata().id
    table.delete("group_id = 'a'")
    assert groups(tmp_path) == ["b"]
    with Writer(tmp_path):
        pass
    assert groups(tmp_path) == ["a", "b"]
    assert deltalake.DeltaTable(tmp_path / root_of(STATES)).metadata().id == before


def test_two_writers_never_write_one_version(tmp_path):
    with Writer(tmp_path) as writer:
        flip(writer, "a")
        (log_of(tmp_path) / f"{1:020}.json").write_text("of somebody else")
        with pytest.raises(TablesError, match="it was written meanwhile"):
            flip(writer, "b")
    assert (log_of(tmp_path) / f"{1:020}.json").read_text() == "of somebody else"


VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 40}
FILE = {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
FOREIGN = {
    "commitInfo without a time": [{"commitInfo": {"operation": "OPTIMIZE"}}],
    "commitInfo of nulls": [{"commitInfo": {"timestamp": None, "engineInfo": None}}],
    "commitInfo of other types": [
        {
            "commitInfo": {
                "timestamp": "now",
                "operation": 7,
                "engineInfo": ["kohort"],
                "manifest": {},
            }
        }
    ],
    "commitInfo that is text": [{"commitInfo": "kohort"}],
    "commitInfo that is a list": [{"commitInfo": [1, None]}],
    "commitInfo that is null": [{"commitInfo": None}],
    "commitInfo with a time of its commit": [{"commitInfo": {"inCommitTimestamp": 1}}],
    "no commitInfo": [{"txn": {"appId": "a", "version": 1}}],
    "nothing": [],
    "add with all that is optional": [
        {
            "add": {
                **FILE,
                "dataChange": True,
                "stats": '{"numRecords":1}',
                "tags": {"a": "b"},
                "baseRowId": 1,
                "defaultRowCommitVersion": 2,
                "clusteringProvider": "liquid",
            }
        }
    ],
    "add with nulls": [
        {"add": {**FILE, "stats": None, "tags": None, "deletionVector": None, "baseRowId": None}}
    ],
    "add with values that are null": [{"add": {**FILE, "partitionValues": {"kind": None}}}],
    "add with a deletion vector": [{"add": {**FILE, "deletionVector": VECTOR}}],
    "add twice": [{"add": {**FILE, "stats": "a"}}, {"add": {**FILE, "stats": "b"}}],
    "remove of a path alone": [{"remove": {"path": "x.parquet"}}],
    "remove with nulls": [
        {"remove": {"path": "x", "deletionTimestamp": None, "size": None, "dataChange": True}}
    ],
    "metaData without a time": [
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": "{}",
                "partitionColumns": [],
                "configuration": {"delta.enableDeletionVectors": "true"},
            }
        }
    ],
    "metaData of nulls": [
        {"metaData": {"id": "0", "name": None, "description": None, "createdTime": None}}
    ],
    "protocol with features": [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors", "rowTracking"],
            }
        }
    ],
    "txn": [{"txn": {"appId": "a", "version": 1, "lastUpdated": None}}],
    "domainMetadata": [
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}
    ],
    "cdc": [{"cdc": {"path": "_change_data/a", "partitionValues": {}, "size": 1}}],
    "sidecar": [{"sidecar": {"path": "a", "sizeInBytes": 1, "modificationTime": 1}}],
    "checkpointMetadata": [{"checkpointMetadata": {"version": 1, "tags": None}}],
    "an action of tomorrow": [{"tomorrow": 1e300}, {"add": None, "remove": None, "more": [[]]}],
}


def counting(directory):
    """The files that count by the protocol, as (path, deletion vector), and what made them so."""
    lines = [
        json.loads(line)
        for path in sorted(log_of(directory).glob("*.json"))
        for line in path.read_text().splitlines()
        if line.strip()
    ]
    files = {}
    for line in lines:
        for what in ("add", "remove"):
            if (file := line.get(what)) is not None:
                files[file["path"], json.dumps(file.get("deletionVector"))] = what
    return sorted(key for key, what in files.items() if what == "add")


@pytest.mark.parametrize("lines", FOREIGN.values(), ids=[*FOREIGN])
def test_whatever_the_protocol_lets_another_engine_commit_stops_nobody(tmp_path, lines):
    with Writer(tmp_path) as writer:
        flip(writer, "a", "b")
    before = counting(tmp_path)
    (log_of(tmp_path) / f"{1:020}.json").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    with Writer(tmp_path) as writer:
        assert counting(tmp_path) == before, "it is put right by the next writer"
        assert versions_of(tmp_path) == [0, 1, 2]
    with Writer(tmp_path) as writer:
        assert versions_of(tmp_path) == [0, 1, 2], "once"
        flip(writer, "c")
    assert len(counting(tmp_path)) == 1
    texts = [path.read_text() for path in log_of(tmp_path).glob("*.json")]
    removed = [text.count('"remove":{"path":"x.parquet"') for text in texts[2:]]
    assert max(removed) <= 1, "no commit has two actions of one file"


def test_a_file_of_ours_that_another_engine_has_given_a_deletion_vector_is_whole_again(tmp_path):
    with Writer(tmp_path) as writer:
        flip(writer, "a", "b")
    ((path, none),) = before = counting(tmp_path)
    lines = [
        {"remove": {"path": path, "dataChange": True}},
        {"add": {**FILE, "path": path, "dataChange": True, "deletionVector": VECTOR}},
    ]
    (log_of(tmp_path) / f"{1:020}.json").write_text("\n".join(map(json.dumps, lines)))
    assert counting(tmp_path) == [(path, json.dumps(VECTOR))] != before

    with Writer(tmp_path):
        assert counting(tmp_path) == [(path, none)]


def versions_of(directory):
    return sorted(int(path.stem) for path in log_of(directory).glob("*.json"))


def test_a_log_that_another_engine_has_begun_becomes_ours(tmp_path):
    with Writer(tmp_path) as writer:
        flip(writer, "a")
    shutil.rmtree(log_of(tmp_path))
    log_of(tmp_path).mkdir()
    for version, file in enumerate(("x.parquet", "y.parquet")):
        line = json.dumps({"add": {**FILE, "path": file}})
        (log_of(tmp_path) / f"{version:020}.json").write_text(line)
    with Writer(tmp_path):
        assert len(counting(tmp_path)) == 1
        assert versions_of(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize(
    ("version", "text", "why"),
    [
        (0, "nonsense", "it is no commit of a Delta table"),
        (1, "[]", "it is no commit of a Delta table"),
        (1, '{"add":{"size":1}}', "it is no commit of a Delta table"),
        (1, '{"add":{"path":7}}', "it is no commit of a Delta table"),
        (1, '{"commitInfo":' + "[" * 100_000, "it is no commit of a Delta table"),
        (1, '{"add":{"path":"\udcff"}}', "it is no commit of a Delta table"),
        (7, '{"commitInfo":{}}', "commits before it are missing"),
    ],
)
def test_a_commit_that_cannot_be_followed_is_named_with_what_to_do(tmp_path, version, text, why):
    with Writer(tmp_path) as writer:
        flip(writer, "a")
    log = log_of(tmp_path)
    if version == 7:
        shutil.rmtree(log)
        log.mkdir()
    (log / f"{version:020}.json").write_text(text, errors="surrogateescape")

    with pytest.raises(TablesError) as refused:
        Writer(tmp_path)

    assert f"{tmp_path} cannot be written: {log}/{version:020}.json: {why}" in str(refused.value)
    assert f"remove the folder {log}, and the next run writes this log anew" in str(refused.value)
    shutil.rmtree(log)
    with Writer(tmp_path):
        assert groups(tmp_path) == ["a"]


@pytest.mark.parametrize("name", [name for name in known_tables() if name != "records"])
def test_a_table_without_rows_has_its_columns(tmp_path, name):
    """As Kohort has them: what a log says of types is what Arrow then reads."""
    table = known_tables()[name]
    publish(tmp_path, {} if root_of(table) == layout.ROWS else {name: []})
    assert by_delta(tmp_path, table).schema.equals(table.arrow)
    kinds = deltalake.DeltaTable(tmp_path / root_of(table)).schema().to_arrow()
    if root_of(table) != layout.ROWS:
        assert pa.schema(kinds).names == table.names


def test_rows_of_which_only_some_count_are_not_shown_to_others(tmp_path):
    """Kohort 0.1 wrote such tables. A log that is there stays as it was."""
    with Writer(tmp_path) as writer:
        part = write(writer, STATES, [{"partition": 0, "group_id": "a"}], (1,))
        writer.publish(writer.manifest.with_(gold={STATES.name: Gold(columns="", parts=(part,))}))
        assert not log_of(tmp_path).exists()
        flip(writer, "b")
        assert groups(tmp_path) == ["b"]


def test_tables_that_were_written_by_delta_are_refused_by_name(tmp_path):
    with Writer(tmp_path) as writer:
        flip(writer, "a")
    manifest = tmp_path / layout.MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": "delta"}))
    for opened in (Tables, Writer):
        with pytest.raises(
            TablesError, match=r"in the format delta, which Kohort 0\.1 has written"
        ):
            opened(tmp_path)
