# SPDX-License-Identifier: Apache-2.0
"""Tables in Iceberg: what Arrow has, by one commit each, and nothing of a table that fails."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CreateTableTransaction
from tests.tables.published import add_log, publish

import kohort.tables
from kohort.pipeline.format.manifest import TablesError
from kohort.tables import iceberg
from kohort.tables.export import ThereError
from kohort.tables.iceberg import AS_OF, WRITTEN_AT, Lake, LakeError
from kohort.tables.snapshots import Snapshots

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
BOTH = ["a", 'say "b",\n']


@pytest.fixture
def out(tmp_path):
    rows = {
        "lag": [{"group_id": "a", "at": AT, "lag_records": 5}, {"group_id": BOTH[1]}],
        "rebalances": [{"triggers": ["join", "leave"]}],
        "status": [],
    }
    return publish(tmp_path / "tables", rows, as_of_ms=int(AT.timestamp() * 1000))


@pytest.fixture
def lake(tmp_path):
    return Lake.in_directory(tmp_path / "lake")


def table_of(lake, name):
    return lake._opens().load_table(("kohort", name))


def rows_of(lake, name):
    return table_of(lake, name).scan().to_arrow()


def groups(lake):
    return rows_of(lake, "lag")["group_id"].to_pylist()


def files_of(lake, name):
    tasks = table_of(lake, name).scan().plan_files()
    return [task.file.file_path.removeprefix("file://") for task in tasks]


def test_iceberg_has_what_arrow_has(out, lake):
    snapshot = kohort.tables.snapshot(add_log(out))

    written = lake.export(snapshot)

    assert [table.name for table in written] == snapshot.names
    for table in written:
        expected = snapshot.read(table.name)
        found = rows_of(lake, table.name)
        assert found.column_names == expected.column_names
        assert found.num_rows == table.rows == expected.num_rows
        for file in files_of(lake, table.name):
            # Of a null in a column of lists pyiceberg reads that the list is empty (0.12).
            assert pq.read_table(file).to_pylist() == expected.to_pylist()
        assert len(files_of(lake, table.name)) == bool(table.rows)
        assert table.location == table_of(lake, table.name).location()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.int8(), pa.int32()),
        (pa.list_(pa.struct([("a", pa.int16())])), pa.list_(pa.struct([("a", pa.int32())]))),
        (pa.int64(), pa.int64()),
    ],
    ids=str,
)
def test_iceberg_has_no_integers_below_four_bytes(ours, theirs):
    known = iceberg._known_to_iceberg(pa.schema([("x", ours)]))
    assert known == pa.schema([("x", theirs)])


def test_files_have_the_types_of_the_catalog(out, lake):
    lake.export(kohort.tables.snapshot(add_log(out)), ["records"])
    (file,) = files_of(lake, "records")
    types = {
        field.name: str(field.field_type) for field in table_of(lake, "records").schema().fields
    }
    narrow = [
        field.name
        for field in kohort.tables.scan(out, "records").schema
        if field.type in (pa.int8(), pa.int16())
    ]
    assert narrow
    for name in narrow:
        assert (types[name], pq.read_schema(file).field(name).type) == ("int", pa.int32())


def test_what_is_there_is_replaced_only_if_asked_and_stays_in_the_history(out, lake):
    snapshot = kohort.tables.snapshot(out)
    lake.export(snapshot, ["lag", "lag"])
    (first,) = table_of(lake, "lag").snapshots()

    with pytest.raises(ThereError, match=r"^the table kohort\.lag is there already$"):
        lake.export(snapshot, ["status", "lag"])
    assert not lake._opens().table_exists("kohort.status")

    publish(out, {"lag": [{"group_id": "new"}]})
    lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    assert groups(lake) == ["new"]
    then = table_of(lake, "lag").scan(snapshot_id=first.snapshot_id).to_arrow()
    assert then["group_id"].to_pylist() == BOTH


def test_every_moment_is_in_the_history_also_that_of_an_empty_table(out, lake, recwarn):
    moments = []
    for year, names in enumerate([[], [], ["x"], ["x", "y"], []], start=2021):
        as_of_ms = int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000)
        publish(out, {"lag": [{"group_id": name} for name in names]}, as_of_ms=as_of_ms)
        lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)
        assert groups(lake) == names
        told = table_of(lake, "lag").current_snapshot().summary
        assert told[WRITTEN_AT]
        moments.append((told[AS_OF], told["total-records"]))

    assert moments == [
        (f"{2021 + number}-01-01T00:00:00+00:00", rows) for number, rows in enumerate("00120")
    ]
    assert all(each.summary[AS_OF] for each in table_of(lake, "lag").snapshots())
    assert not recwarn.list


def test_of_several_clusters_the_oldest_moment_counts(out, lake, tmp_path):
    other = publish(tmp_path / "other", {"lag": [{"group_id": "a"}]}, cluster="west", as_of_ms=1000)
    publish(out, {}, cluster="east")

    lake.export(Snapshots([*map(kohort.tables.snapshot, (out, other))]), ["lag"])

    assert rows_of(lake, "lag")["cluster"].to_pylist() == ["east", "east", "west"]
    assert table_of(lake, "lag").current_snapshot().summary[AS_OF] == "1970-01-01T00:00:01+00:00"


def given(lake, schema, row):
    """A table `lag` that somebody else has made."""
    catalog = lake._opens()
    catalog.create_namespace("kohort")
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True))], schema=schema)
    catalog.create_table("kohort.lag", schema).append(table)


def test_columns_of_another_kohort_come_and_stay(out, lake):
    given(lake, pa.schema([("group_id", pa.string()), ("mood", pa.string())]), ["old", "fine"])

    lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    rows = rows_of(lake, "lag")
    assert rows["lag_records"].to_pylist() == [5, None]
    assert rows["mood"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        (pa.field("mood", pa.string(), nullable=False), "fine", "requires a column 'mood'"),
        (pa.field("lag_records", pa.string()), "many", "lag_records"),
    ],
    ids=["a column more", "another type"],
)
def test_a_table_that_cannot_have_our_rows_is_named(out, lake, capfd, column, value, told):
    given(lake, pa.schema([column]), [value])

    with pytest.raises(LakeError, match=told) as error:
        lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    assert "kohort.lag" in str(error.value)
    assert rows_of(lake, "lag").to_pylist() == [{column.name: value}]
    assert capfd.readouterr() == ("", "")


def test_a_table_with_partitions_is_refused(out, lake):
    lake.export(kohort.tables.snapshot(out), ["lag"])
    with table_of(lake, "lag").update_spec() as update:
        update.add_identity("group_id")

    with pytest.raises(LakeError, match=r"^the Iceberg table kohort\.lag is partitioned"):
        lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    assert groups(lake) == BOTH


def test_nothing_is_changed_and_nothing_left_when_a_table_cannot_be_read(out, lake, tmp_path):
    lake.export(kohort.tables.snapshot(out), ["lag"])
    publish(out, {"lag": [{"group_id": "new"}], "rebalances": [{"triggers": ["join"]}]})
    for file in (out / "gold" / "rebalances").rglob("*.parquet"):
        file.write_bytes(b"nothing")
    before = {*(tmp_path / "lake").rglob("*.parquet")}

    with pytest.raises(TablesError, match="cannot be read"):
        lake.export(kohort.tables.snapshot(out), ["lag", "rebalances"], overwrite=True)

    assert groups(lake) == BOTH
    assert {*(tmp_path / "lake").rglob("*.parquet")} == before


def test_a_full_disk_leaves_no_rows_that_count_for_nobody(out, lake, tmp_path, monkeypatch):
    write = iceberg._write

    def fill(*arguments):
        write(*arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(iceberg, "_write", fill)
    with pytest.raises(LakeError, match=r"in \S+/lake: kohort\.lag: No space left on device$"):
        lake.export(kohort.tables.snapshot(out), ["lag"])

    assert not [*(tmp_path / "lake").rglob("*.parquet")]
    assert not lake._opens().table_exists("kohort.lag")


@pytest.mark.parametrize("before", [[], ["x"]], ids=["empty", "not empty"])
@pytest.mark.parametrize("names", [[], ["new"]], ids=["no rows", "rows"])
def test_a_table_that_somebody_else_changes_meanwhile_is_named(
    out, lake, before, names, monkeypatch
):
    """Their rows stay, and ours do not come beside them."""
    publish(out, {"lag": [{"group_id": name} for name in before]})
    lake.export(kohort.tables.snapshot(out), ["rebalances", "lag"])
    publish(out, {"lag": [{"group_id": name} for name in names], "rebalances": []})
    schema = rows_of(lake, "lag").schema
    commit = Lake._commit

    def meet(self, staged, unused):
        theirs = pa.Table.from_pylist([{"group_id": "theirs"}], schema=schema)
        table_of(lake, "lag").append(theirs)
        return commit(self, staged, unused)

    monkeypatch.setattr(Lake, "_commit", meet)
    told = r"^the Iceberg table kohort\.lag was changed .* \(already written: rebalances\)$"
    with pytest.raises(LakeError, match=told):
        lake.export(kohort.tables.snapshot(out), ["rebalances", "lag"], overwrite=True)

    assert rows_of(lake, "rebalances").num_rows == 0
    assert sorted(groups(lake)) == sorted([*before, "theirs"])


def test_a_failed_commit_takes_no_rows_of_those_before_it(out, lake, tmp_path, monkeypatch):
    names = ["rebalances", "lag", "status"]
    publish(out, {"status": [{"group_id": "a"}]})
    commit = CreateTableTransaction.commit_transaction

    def meet(self):
        if self.table_metadata.location.endswith("/lag"):
            raise CommitFailedException("changed")
        return commit(self)

    monkeypatch.setattr(CreateTableTransaction, "commit_transaction", meet)
    with pytest.raises(LakeError, match=r"lag was changed .* \(already written: rebalances\)$"):
        lake.export(kohort.tables.snapshot(out), names)

    assert rows_of(lake, "rebalances")["triggers"].to_pylist() == [["join", "leave"]]
    (left,) = (tmp_path / "lake").rglob("*.parquet")
    assert [str(left)] == files_of(lake, "rebalances")


def test_a_commit_that_may_have_worked_keeps_its_rows(out, lake, monkeypatch):
    commit = CreateTableTransaction.commit_transaction

    def lose(self):
        commit(self)
        raise CommitStateUnknownException("Bad gateway\nand more")

    monkeypatch.setattr(CreateTableTransaction, "commit_transaction", lose)
    told = r"^the Iceberg table kohort\.lag may have its new rows all the same: .* Bad gateway$"
    with pytest.raises(LakeError, match=told):
        lake.export(kohort.tables.snapshot(out), ["lag"])

    assert groups(lake) == BOTH


@pytest.mark.parametrize("name", ["a lake", "p%20q", "é ü", "semi;colon", 'quo"te', "at@host:1"])
def test_a_lake_is_where_it_was_wished_and_nowhere_else(out, tmp_path, name):
    lake = Lake.in_directory(tmp_path / "here" / name)

    lake.export(kohort.tables.snapshot(out), ["lag"])
    lake.export(kohort.tables.snapshot(out), ["lag"], overwrite=True)

    assert groups(lake) == BOTH
    assert [place.name for place in (tmp_path / "here").iterdir()] == [name]
    inside = {place.name for place in (tmp_path / "here" / name).iterdir()}
    assert inside == {"catalog.db", "kohort"}


@pytest.mark.parametrize("name", ["what?x=1", "no#1", "two\nlines"])
def test_places_that_no_uri_has_are_refused(tmp_path, name):
    with pytest.raises(LakeError, match=r"cannot have a lake, expected a path without \? and #"):
        Lake.in_directory(tmp_path / name)


@pytest.mark.parametrize("namespace", ["", "a..b", ".a", "a/b", "a\nb", "a\udcff"])
def test_a_wrong_namespace_is_refused_before_anything_is_made(tmp_path, namespace):
    with pytest.raises(LakeError, match="is no namespace"):
        Lake.in_directory(tmp_path / "lake", namespace)
    with pytest.raises(LakeError, match="is no namespace"):
        Lake("ours", None, namespace)
    assert not [*tmp_path.iterdir()]


def test_a_directory_has_namespaces_of_one_level(tmp_path):
    with pytest.raises(LakeError, match=r"^'a\.b' is no namespace of a directory"):
        Lake.in_directory(tmp_path, "a.b")


def test_a_catalog_that_cannot_be_had_is_named(out, tmp_path):
    snapshot = kohort.tables.snapshot(out)
    with pytest.raises(LakeError, match=r"^pyiceberg is not configured for a catalog 'nowhere'"):
        Lake.of_catalog("nowhere")
    with pytest.raises(TablesError, match="is a directory of tables"):
        Lake.in_directory(out)
    with pytest.raises(LakeError, match=r"File name too long$"):
        Lake.in_directory(tmp_path / ("x" * 300))
    (tmp_path / "file").touch()
    with pytest.raises(LakeError, match=r"^the Iceberg catalog in \S+/file: File exists$"):
        Lake.in_directory(tmp_path / "file").export(snapshot)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").write_text("no database" * 1000)
    with pytest.raises(LakeError, match=r"in \S+/lake: file is not a database$"):
        Lake.in_directory(tmp_path / "lake").export(snapshot)


def test_a_wrong_name_makes_nothing(out, lake, tmp_path):
    with pytest.raises(TablesError, match="no table is called"):
        lake.export(kohort.tables.snapshot(out), ["lagg"])
    assert not (tmp_path / "lake").exists()
