"""Delta tables without Spark: which files a version has, and that they are made durable."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import deltalake

from kohort.spark.schemas.progress import COMMIT_RATES
from kohort.spark.stores import local_store
from kohort.spark.tables import delta_files
from kohort.spark.tables.arrow_reader import Tables
from kohort.spark.tables.manifest import Gold, Part, TablesError
from kohort.spark.tables.writer import Writer

ROWS = pa.Table.from_pylist([{"partition": 1, "group_id": "g"}], schema=COMMIT_RATES.arrow)


def kinds(*names):
    return pa.table({"kind": list(names), "offset": range(len(names))})


def values(table, version):
    return sorted(one.values["kind"] for one in delta_files.files(table, version))


def test_a_version_is_what_came_and_has_not_gone(tmp_path):
    table = tmp_path / "some rows"
    deltalake.write_deltalake(table, kinds("a", "b c"), partition_by=["kind"])
    deltalake.write_deltalake(table, kinds("d"), mode="append")
    deltalake.DeltaTable(table).delete("kind = 'a'")

    versions = [values(table, one) for one in range(3)]
    assert versions == [["a", "b c"], ["a", "b c", "d"], ["b c", "d"]]
    read = [pq.read_table(one.path) for one in delta_files.files(table, 2)]
    assert [one.column_names for one in read] == [["offset"], ["offset"]]
    assert delta_files.latest(table) == 2
    assert delta_files.latest(tmp_path / "nowhere") is None


def test_a_checkpoint_stands_for_the_commits_before_it(tmp_path):
    deltalake.write_deltalake(tmp_path, kinds("a"), partition_by=["kind"])
    deltalake.write_deltalake(tmp_path, kinds("b"), mode="append")
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    deltalake.write_deltalake(tmp_path, kinds("c"), mode="append")
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()

    assert values(tmp_path, 2) == ["a", "b", "c"]
    for gone in (0, 9):
        with pytest.raises(TablesError, match=f"version {gone} of the Delta table /.* run the pip"):
            delta_files.files(tmp_path, gone)


@pytest.mark.parametrize("feature", ["columnMapping", "deletionVectors"])
def test_rows_that_are_not_those_of_the_files_are_refused(tmp_path, feature):
    deltalake.write_deltalake(tmp_path, kinds("a"))
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for one in actions:
        if "protocol" in one:
            both = {"readerFeatures": [feature], "writerFeatures": [feature]}
            one["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **both}
    commit.write_text("\n".join(map(json.dumps, actions)))

    with pytest.raises(TablesError, match=r"another engine put there: read it with kohort\.spark"):
        delta_files.files(tmp_path, 0)


def publish(writer, version):
    part = Part(path="gold/commit_rates", rows=1, version=version)
    gold = {"commit_rates": Gold(columns="", parts=(part,))}
    writer.publish(writer.manifest.with_(format="delta", gold=gold))


def test_what_came_since_the_last_manifest_is_made_durable(tmp_path, monkeypatch):
    table = tmp_path / "gold" / "commit_rates"
    synced = set()
    monkeypatch.setattr(local_store, "sync", synced.add)
    times = {}
    real = local_store._changed_ns
    monkeypatch.setattr(local_store, "_changed_ns", lambda path: times.get(path) or real(path))

    def everything():
        return {table, *table.rglob("*")}

    with Writer(tmp_path) as writer:
        deltalake.write_deltalake(table, ROWS)
        publish(writer, 0)
        assert synced >= everything()
    before = everything()
    times |= dict.fromkeys(before, 1)  # long ago, however coarse the clock is
    deltalake.write_deltalake(table, ROWS, mode="overwrite")  # whose writer crashed
    with Writer(tmp_path) as writer:
        deltalake.write_deltalake(table, ROWS, mode="overwrite")
        synced.clear()
        publish(writer, 2)

    assert synced & everything() == everything() - before
    assert len(everything() - before) == 4  # the data and the commits of two
    assert Tables(tmp_path).table("commit_rates").equals(ROWS)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    deltalake.write_deltalake(tmp_path / "gold" / "commit_rates", ROWS)
    with Writer(tmp_path) as writer:
        publish(writer, 0)
    monkeypatch.setattr(delta_files, "find_spec", lambda _: None)

    with pytest.raises(
        TablesError, match=r"^deltalake is not .*: pip install '\.\[delta\]' in a clone of Kohort$"
    ):
        Tables(tmp_path).table("commit_rates")
