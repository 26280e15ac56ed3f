# SPDX-License-Identifier: Apache-2.0
"""Tables as files: whole ones of one moment, or none."""

import csv
import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from tests.tables.published import add_log, publish

import kohort.tables
from kohort.pipeline.format.manifest import TablesError
from kohort.tables import export as exporting
from kohort.tables.export import FORMS, ThereError, export

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)


@pytest.fixture
def out(tmp_path):
    directory = tmp_path / "tables"
    publish(
        directory,
        {
            "lag": [{"group_id": "a", "at": AT, "lag_records": 5}, {"group_id": 'say "b",\n'}],
            "rebalances": [{"triggers": ["join", "leave"]}],
            "status": [],
        },
    )
    return add_log(directory)


def test_parquet_has_what_arrow_has(out, tmp_path):
    snapshot = kohort.tables.snapshot(out)

    written = export(snapshot, tmp_path / "new" / "files", "parquet")

    assert [one.name for one in written] == snapshot.names
    for one in written:
        expected = snapshot.read(one.name)
        assert one.path == tmp_path / "new" / "files" / f"{one.name}.parquet"
        assert pq.read_table(one.path).equals(expected)
        assert one.rows == expected.num_rows
    assert {one.suffix for one in (tmp_path / "new" / "files").iterdir()} == {".parquet"}


def test_csv_and_lines_of_json(out, tmp_path):
    snapshot = kohort.tables.snapshot(out)
    export(snapshot, tmp_path, "csv", ["lag", "status", "rebalances", "lag"])
    export(snapshot, tmp_path, "jsonl", ["lag", "status"])

    with (tmp_path / "lag.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["at"], first["lag_records"]) == ("2026-11-21T07:00:00Z", "5")
    assert (second["group_id"], second["at"]) == ('say "b",\n', "")
    assert '"[""join"", ""leave""]"' in (tmp_path / "rebalances.csv").read_text(encoding="utf-8")
    header = (tmp_path / "status.csv").read_text(encoding="utf-8")
    assert header.startswith("partition,group_id,rules,")
    assert header.count("\n") == 1
    lines = (tmp_path / "lag.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(one)["group_id"] for one in lines] == ["a", 'say "b",\n']
    assert (tmp_path / "status.jsonl").read_text(encoding="utf-8") == ""


def test_what_is_there_is_overwritten_only_if_asked(out, tmp_path):
    snapshot = kohort.tables.snapshot(out)
    (tmp_path / "status.csv").write_text("mine")

    with pytest.raises(ThereError, match=r"status.csv is there already"):
        export(snapshot, tmp_path, "csv", ["lag", "status"])
    assert not (tmp_path / "lag.csv").exists()
    assert (tmp_path / "status.csv").read_text() == "mine"

    export(snapshot, tmp_path, "csv", ["lag", "status"], overwrite=True)
    assert (tmp_path / "status.csv").read_text().startswith("partition,")


@pytest.mark.parametrize("form", FORMS)
def test_one_that_fails_leaves_everything_as_it_was(out, tmp_path, monkeypatch, form):
    (tmp_path / f"lag.{form}").write_text("mine")
    written = exporting._WRITERS[form]

    def full(reader, path):
        written(reader, path)
        if path.name.startswith("status"):
            raise OSError(28, "No space left on device")
        return 0

    monkeypatch.setitem(exporting._WRITERS, form, full)

    with pytest.raises(TablesError, match="cannot be written: No space left on device"):
        export(kohort.tables.snapshot(out), tmp_path, form, ["lag", "status"], overwrite=True)
    assert (tmp_path / f"lag.{form}").read_text() == "mine"
    assert {one.name for one in tmp_path.iterdir()} == {"tables", f"lag.{form}"}


def test_where_it_cannot_go(out, tmp_path):
    snapshot = kohort.tables.snapshot(out)
    (tmp_path / "file").write_text("")

    with pytest.raises(TablesError, match="is a directory of tables, expected another one"):
        export(snapshot, out, "csv")
    with pytest.raises(TablesError, match="no table is called 'lagg': did you mean lag"):
        export(snapshot, tmp_path / "to", "csv", ["lagg"])
    with pytest.raises(TablesError, match="file cannot be written: "):
        export(snapshot, tmp_path / "file", "csv")
    assert not (tmp_path / "to").exists()


def test_many_rows_are_never_in_memory_at_once(out, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(exporting, "csv_lines", lambda batch: seen.append(batch.num_rows) or "")
    monkeypatch.setattr(exporting, "_AT_ONCE", 10)
    (written,) = export(kohort.tables.snapshot(out), tmp_path, "csv", ["offset_commit"])

    assert sum(seen) == written.rows > 50
    assert max(seen) == 10
