# SPDX-License-Identifier: Apache-2.0
"""What a catalog names is on the disk."""

import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from tests.tables.published import publish

import kohort.tables
from kohort.tables.durable_files import DurableFiles, make_directory
from kohort.tables.iceberg import Lake


@pytest.fixture
def synced(monkeypatch):
    """The files and folders that have been brought to the disk."""
    paths = []

    def sync(number):
        paths.append(str(Path(f"/proc/self/fd/{number}").readlink()))

    monkeypatch.setattr(os, "fsync", sync)
    return paths


@pytest.mark.parametrize("name", ["file", "a file", "p%20q", "é"])
def test_a_file_is_on_the_disk_when_it_is_closed(tmp_path, synced, name):
    path = tmp_path / "new" / name
    file = DurableFiles({}).new_output(f"file://{path}")
    assert not file.exists()

    with file.create() as stream:
        stream.write(b"abc")
        assert synced == [str(tmp_path)]  # where a new directory is

    assert synced == [str(tmp_path), str(path), str(path.parent)]
    assert (file.exists(), len(file), path.read_bytes()) == (True, 3, b"abc")
    with file.to_input_file().open() as stream:
        assert stream.read() == b"abc"


def test_new_directories_are_on_the_disk_with_all_above_them(tmp_path, synced):
    make_directory(tmp_path / "a" / "b")
    assert sorted(synced) == [str(tmp_path), str(tmp_path / "a")]
    make_directory(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_a_file_that_is_there_is_replaced_only_if_asked(tmp_path):
    file = DurableFiles({}).new_output(f"file://{tmp_path}/file")
    with file.create() as stream:
        stream.write(b"abc")

    with pytest.raises(FileExistsError):
        file.create()
    assert len(file) == 3
    with file.create(overwrite=True) as stream:
        stream.write(b"d")
    assert len(file) == 1


def test_a_file_whose_sync_fails_is_not_told_as_written(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    stream = DurableFiles({}).new_output(f"file://{tmp_path}/file").create()
    with pytest.raises(OSError, match="Input/output error"):
        stream.close()
    assert stream.closed


def test_all_files_are_on_the_disk_before_the_catalog_names_them(tmp_path, synced, monkeypatch):
    out = publish(tmp_path / "tables", {"lag": [{"group_id": "a"}]})
    lake = Lake.in_directory(tmp_path / "lake")
    commit, before_commit = Lake._commit, []

    def look(self, staged, unused):
        before_commit.extend(synced)
        return commit(self, staged, unused)

    monkeypatch.setattr(Lake, "_commit", look)
    lake.export(kohort.tables.snapshot(out), ["lag"])

    table = lake._opens().load_table("kohort.lag")
    (task,) = table.scan().plan_files()
    rows = Path(task.file.file_path.removeprefix("file://"))
    assert {str(rows), str(rows.parent)} <= {*before_commit}
    assert sum(path.endswith(".avro") for path in before_commit) == 2
    (metadata,) = (path for path in synced if path.endswith(".metadata.json"))
    assert metadata == table.metadata_location.removeprefix("file://")
