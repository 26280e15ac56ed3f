"""Delta tables without Spark: which files a version has, and that they are made durable."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from kohort.spark import manifest, versions
from kohort.spark.manifest import Gold, Part, Writer
from kohort.spark.plain import Tables
from kohort.spark.schemas.progress import COMMIT_RATES
from kohort.spark.versions import VersionError


def commit(table, number, *actions):
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(json.dumps(action) for action in actions)
    (log / f"{number:020}.json").write_text(lines + "\n")


def added(path, **more):
    return {"add": {"path": path, "partitionValues": {}, "dataChange": True, **more}}


def removed(path):
    return {"remove": {"path": path, "dataChange": True}}


def names(table, version):
    return [one.path.name for one in versions.files(table, version)]


def test_a_version_is_what_came_and_has_not_gone(tmp_path):
    described = {"metaData": {"id": "x", "configuration": {}}}
    commit(tmp_path, 0, {"protocol": {"minReaderVersion": 1}}, described, added("a"), added("b"))
    commit(tmp_path, 1, removed("a"), added("kind=x/c%20d", partitionValues={"kind": "x"}))
    commit(tmp_path, 2, removed("b"))

    assert names(tmp_path, 0) == ["a", "b"]
    assert names(tmp_path, 1) == ["b", "c d"]
    (left,) = versions.files(tmp_path, 2)
    assert (left.path, left.values) == (tmp_path / "kind=x/c d", {"kind": "x"})
    assert versions.latest(tmp_path) == 2
    assert versions.latest(tmp_path / "nowhere") is None


def test_a_checkpoint_stands_for_the_commits_before_it(tmp_path):
    kinds = pa.map_(pa.string(), pa.string())
    add = pa.struct([("path", pa.string()), ("partitionValues", kinds)])
    schema = pa.schema([("add", add), ("metaData", pa.struct([("configuration", kinds)]))])
    rows = [
        {"add": {"path": "a", "partitionValues": [("kind", "x")]}},
        {"metaData": {"configuration": []}},
    ]
    commit(tmp_path, 11, added("b"))
    checkpoint = tmp_path / "_delta_log" / f"{10:020}.checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), checkpoint)

    assert names(tmp_path, 11) == ["a", "b"]
    assert versions.files(tmp_path, 10)[0].values == {"kind": "x"}
    with pytest.raises(VersionError, match="version 0 of the Delta table /"):
        versions.files(tmp_path, 9)


@pytest.mark.parametrize(
    "action",
    [
        added("a", deletionVector={"storageType": "u"}),
        {"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}},
    ],
)
def test_what_only_delta_itself_understands_is_refused(tmp_path, action):
    commit(tmp_path, 0, action)
    with pytest.raises(VersionError, match=r"another engine put there: read it with kohort\.spark"):
        versions.files(tmp_path, 0)


def test_the_manifest_names_versions_whose_files_are_durable(tmp_path, monkeypatch):
    place = tmp_path / "gold" / "commit_rates"
    place.mkdir(parents=True)
    rows = pa.Table.from_pylist([{"partition": 1, "group_id": "g"}], schema=COMMIT_RATES.arrow)
    synced = []
    monkeypatch.setattr(manifest, "_sync", lambda file: synced.append(file.name))
    with Writer(tmp_path) as writer:
        for version in range(3):
            synced.clear()
            pq.write_table(rows, place / f"{version}.parquet")
            commit(place, version, added(f"{version}.parquet"), removed(f"{version - 1}.parquet"))
            part = Part(path="gold/commit_rates", rows=1, version=version)
            gold = {"commit_rates": Gold(columns="", parts=(part,))}
            writer.publish(writer.manifest.with_(format="delta", gold=gold))

            assert synced == [f"{version:020}.json", f"{version}.parquet"]

    assert Tables(tmp_path).table("commit_rates").equals(rows)
