"""Tables in Iceberg: what Arrow has, by one commit each, and nothing of a table that fails."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from tests.tables.published import add_log, publish

import kohort.tables
from kohort.spark.tables.manifest import TablesError
from kohort.tables.export import ThereError
from kohort.tables.iceberg import AS_OF, Lake, LakeError

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)


@pytest.fixture
def out(tmp_path):
    rows = {
        "lag": [{"group_id": "a", "at": AT, "lag_records": 5}, {"group_id": 'say "b",\n'}],
        "rebalances": [{"triggers": ["join", "leave"]}],
        "status": [],
    }
    return publish(tmp_path / "tables", rows, as_of_ms=int(AT.timestamp() * 1000))


@pytest.fixture
def lake(tmp_path):
    return Lake.inside(tmp_path / "a lake")


def table_of(lake, name):
    return lake._catalog.load_table(("kohort", name))


def rows_of(lake, name):
    return table_of(lake, name).scan().to_arrow()


def groups(lake):
    return rows_of(lake, "lag")["group_id"].to_pylist()


def test_iceberg_has_what_arrow_has(out, lake):
    snapshot = kohort.tables.snapshot(add_log(out))

    written = lake.export(snapshot)

    assert [table.name for table in written] == snapshot.names
    for table in written:
        expected = snapshot.read(table.name)
        found = rows_of(lake, table.name)
        assert found.column_names == expected.column_names
        assert found.num_rows == table.rows == expected.num_rows
        for file in table_of(lake, table.name).inspect.files()["file_path"].to_pylist():
            # Of a null in a column of lists pyiceberg reads that the list is empty (0.12).
            rows = pq.read_table(file.removeprefix("file://"))
            assert rows.to_pylist() == expected.to_pylist()
        assert table.location == table_of(lake, table.name).location()


def test_what_is_there_is_replaced_only_if_asked_and_stays_in_the_history(out, lake):
    snapshot = kohort.tables.snapshot(out)
    lake.export(snapshot, ["lag"])
    (first,) = table_of(lake, "lag").snapshots()
    again = Lake(lake._catalog)

    with pytest.raises(ThereError, match=r"^the table kohort\.lag is there already$"):
        again.export(snapshot, ["status", "lag"])
    assert not again._catalog.table_exists("kohort.status")

    publish(out, {"lag": [{"group_id": "new"}]})
    again.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    assert groups(lake) == ["new"]
    then = table_of(lake, "lag").scan(snapshot_id=first.snapshot_id).to_arrow()
    assert then["group_id"].to_pylist() == ["a", 'say "b",\n']
    assert first.summary[AS_OF] == AT.isoformat()


def test_a_table_that_was_empty_is_filled_and_emptied(out, lake, recwarn):
    lake.export(kohort.tables.snapshot(out), ["status"])
    for group in (["x"], []):
        publish(out, {"status": [{"group_id": name} for name in group]})
        lake.export(kohort.tables.snapshot(out), ["status"])
        assert rows_of(lake, "status")["group_id"].to_pylist() == group
    assert not recwarn.list


def test_columns_of_another_kohort_come_and_stay(out, lake):
    known = pa.schema([("group_id", pa.string()), ("mood", pa.string())])
    lake._catalog.create_namespace("kohort")
    lake._catalog.create_table("kohort.lag", known).append(
        pa.table({"group_id": ["old"], "mood": ["fine"]}, schema=known)
    )

    lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    rows = rows_of(lake, "lag")
    assert rows["lag_records"].to_pylist() == [5, None]
    assert rows["mood"].to_pylist() == [None, None]


def test_a_table_with_partitions_is_refused(out, lake):
    lake.export(kohort.tables.snapshot(out), ["lag"])
    with table_of(lake, "lag").update_spec() as update:
        update.add_identity("group_id")

    with pytest.raises(LakeError, match=r"^the Iceberg table kohort\.lag is partitioned"):
        lake.export(kohort.tables.snapshot(out), ["lag"])

    assert groups(lake) == ["a", 'say "b",\n']


def test_no_table_is_changed_when_one_cannot_be_read(out, lake):
    lake.export(kohort.tables.snapshot(out), ["lag"])
    publish(out, {"lag": [{"group_id": "new"}], "rebalances": [{"triggers": ["join"]}]})
    for file in (out / "gold" / "rebalances").rglob("*.parquet"):
        file.write_bytes(b"nothing")

    with pytest.raises(TablesError, match="cannot be read"):
        lake.export(kohort.tables.snapshot(out), ["lag", "rebalances"])

    assert groups(lake) == ["a", 'say "b",\n']


def test_a_table_that_somebody_else_changes_meanwhile_is_named(out, lake, monkeypatch):
    names = ["rebalances", "lag"]
    lake.export(kohort.tables.snapshot(out), names)
    publish(out, {"lag": [{"group_id": "new"}], "rebalances": []})
    committed = Lake._committed

    def meet(self, staged):
        if staged.name == "lag":
            table_of(lake, "lag").append(rows_of(lake, "lag"))
        return committed(self, staged)

    monkeypatch.setattr(Lake, "_committed", meet)
    with pytest.raises(LakeError, match=r"^the Iceberg table lag was changed by somebody else"):
        lake.export(kohort.tables.snapshot(out), names)

    assert rows_of(lake, "rebalances").num_rows == 0
    assert groups(lake) == ["a", 'say "b",\n'] * 2


def test_rows_of_several_clusters_are_told_apart(out, lake, tmp_path):
    other = publish(tmp_path / "other", {"lag": [{"group_id": "a"}]}, cluster="west")
    publish(out, {}, cluster="east")

    lake.export(kohort.tables.moment.Snapshots([*map(kohort.tables.snapshot, (out, other))]))

    assert rows_of(lake, "lag")["cluster"].to_pylist() == ["east", "east", "west"]


@pytest.mark.parametrize("namespace", ["", "a..b", ".a"])
def test_a_wrong_namespace_is_named(tmp_path, namespace):
    with pytest.raises(LakeError, match=f"^'{namespace}' is no namespace"):
        Lake.inside(tmp_path, namespace)


def test_a_catalog_that_cannot_be_had_is_named(out, tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    with pytest.raises(LakeError, match=r"^the Iceberg catalog nowhere: URI missing"):
        Lake.of("nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(LakeError, match=r"^the Iceberg catalog in \S+/file: "):
        Lake.inside(tmp_path / "file")
    with pytest.raises(TablesError, match="is a directory of tables"):
        Lake.inside(out)
