# SPDX-License-Identifier: Apache-2.0
"""SQL over the tables: the same rows as Arrow gives, and nothing but reading."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

from tests.pipeline.format.test_tables import add
from tests.spark.rows import raw
from tests.tables.published import add_log, grow_old, publish, write

import kohort.tables
from kohort.errors import KohortError
from kohort.pipeline.format.arrow_reader import GoneError
from kohort.pipeline.format.manifest import Gold
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas.membership import REBALANCES
from kohort.pipeline.schemas.progress import OFFSETS
from kohort.spark.tables import increments
from kohort.tables.duck import Session
from kohort.tables.snapshots import Snapshots

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
LAGS = [{"group_id": one, "at": AT, "lag_records": lag} for one, lag in [("a", 5), ("b", None)]]
MOVES = [{"topic": "t", "topic_partition": 1, "to_member_id": "m"}]


@pytest.fixture
def out(tmp_path):
    directory = tmp_path / "it's [a] *?"  # no pattern, and no end of a text
    return publish(
        directory, {"lag": LAGS, "rebalances": [{"moves": MOVES}], "deletable_groups": []}
    )


def rows(out, query):
    return kohort.tables.sql(out, query).to_pylist()


def test_a_query_is_answered_as_arrow(out):
    found = kohort.tables.sql(out, 'select group_id, "at" from lag where lag_records > 1')

    assert found.to_pylist() == [{"group_id": "a", "at": AT}]
    assert len(kohort.tables.sql(out, "select range from range(9999)", limit=3)) == 3
    assert rows(out, "select sum(lag_records) as lag from lag") == [{"lag": 5}]
    assert rows(out, "select unnest(moves).topic as topic from rebalances") == [{"topic": "t"}]


def test_a_damaged_file_hides_no_other_table(out):
    (file,) = (out / "gold" / "rebalances").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])

    assert rows(out, "select count(*) as n from lag") == [{"n": len(LAGS)}]
    for query in ("select * from rebalances", "select * from lag, REBALANCES"):
        with pytest.raises(KohortError, match=r"part-0\.parquet cannot be read: .* verify` says"):
            rows(out, query)


def test_every_table_has_the_rows_and_types_that_arrow_gives(out):
    add_log(out)
    snapshot = kohort.tables.snapshot(out)

    assert len(snapshot.names) > 17
    for name in snapshot.names:
        expected = snapshot.read(name)
        order = 'order by partition, "offset"' if "offset" in expected.schema.names else ""
        found = kohort.tables.sql(out, f"select * from {name} {order}")
        assert found.schema.names == expected.schema.names
        in_order = (
            expected.sort_by([("partition", "ascending"), ("offset", "ascending")])
            if order
            else expected
        )
        assert found.to_pylist() == in_order.to_pylist(), name
        for one in expected.schema:
            if not pa.types.is_nested(one.type):
                assert found.schema.field(one.name).type == one.type, one
    assert rows(out, "select count(*) as n from offset_commit")[0]["n"] > 50


def test_rows_that_do_not_count_are_not_seen(tmp_path):
    first = [(n, b"\0\x01k", None) for n in range(10)]
    with Writer(tmp_path) as writer:
        add(writer, raw(first))
        add(writer, raw(first, partition=1))
        cut = increments.cut(writer.manifest.increments, {0: 6})
        offsets = [{"partition": one, "committed_offset": one} for one in range(4)]
        parts = (write(writer, OFFSETS, offsets, (1, 3)), write(writer, OFFSETS, offsets[:1]))
        gold = {"offsets": Gold(columns="", parts=parts)}
        writer.publish(writer.manifest.with_(increments=cut, gold=gold))

    counted = rows(tmp_path, "select partition, count(*) as n from records group by all order by 1")
    assert [(one["partition"], one["n"]) for one in counted] == [(0, 6), (1, 10)]
    kept = rows(tmp_path, "select list(committed_offset order by committed_offset) l from offsets")
    assert kept == [{"l": [0, 1, 3]}]


def test_a_file_of_an_older_kohort_lacks_columns(tmp_path):
    import pyarrow.parquet as pq

    publish(tmp_path, {"rebalances": [{"group_id": "g", "moves": MOVES}]})
    (file,) = (tmp_path / "gold" / "rebalances").rglob("*.parquet")
    pq.write_table(pq.read_table(file).select(["group_id", "moves"]), file)

    (found,) = rows(tmp_path, "select * from rebalances")

    assert found["group_id"] == "g"
    assert list(found) == [*REBALANCES.names, "cluster"]
    assert found["moves"][0]["topic"] == "t"
    assert found["moves"][0]["from_member_id"] is None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select * from lagg", "no table is called 'lagg': did you mean lag?"),
        ("select * from xyzzy", "no table is called 'xyzzy', expected one of records, "),
        ("select * from status", "has no table status yet: the next `kohort pipeline run`"),
        ("select lag_record from lag", "no column is called 'lag_record': did you mean lag_reco"),
        ("selec 1", "syntax error at or near \"selec\" in 'selec 1'"),
        ("select at from lag", 'stand in double quotes: "at", "offset")'),
        ("select nosuch(1)", "Scalar Function with name nosuch does not exist!"),
        ("select group_id::int from lag", "Could not convert string 'a' to INT32"),
        ("", "expected one query, found none"),
        ("select 1; select 2", "expected one query, found 2 statements"),
        ("create table t as select 1", "the tables are only read, expected a SELECT and not CREA"),
        ("copy lag to 'x.csv'", "the tables are only read, expected a SELECT and not COPY"),
        ("drop view lag", "the tables are only read, expected a SELECT and not DROP"),
        ("set enable_external_access=true", "expected a SELECT and not SET"),
        ("attach 'x.db'", "expected a SELECT and not ATTACH"),
        ("select * from read_text('/etc/hostname')", "file system operations are disabled"),
        ("select * from '/etc/hostname'", "no table is called '/etc/hostname', expected one of"),
        ("select * from glob('/etc/*')", "file system operations are disabled"),
        ("select * from variable", "no table is called 'variable'"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(out, query, words):
    variable = pa.table({"a": [1]})
    assert variable

    with pytest.raises(KohortError) as told:
        kohort.tables.sql(out, query)

    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_tables_are_listed_and_described(out):
    assert {"name": "deletable"} in rows(out, "show tables")
    described = rows(out, "describe lag")
    assert {one["column_name"]: one["column_type"] for one in described}["lag_records"] == "BIGINT"


def test_without_duckdb_it_says_what_to_install(out, monkeypatch):
    monkeypatch.setattr("kohort.tables.find_spec", lambda name: name != "duckdb" or None)
    with pytest.raises(KohortError, match=r"duckdb is not installed: pip install '.\[sql\]'"):
        kohort.tables.sql(out, "select 1")


def test_a_query_that_meets_a_flip_is_asked_anew_or_says_so(out, monkeypatch):
    old = kohort.tables.snapshot(out)
    session = Session(Snapshots([old]))
    grow_old(monkeypatch)
    publish(out, {"lag": LAGS[:1]})

    with pytest.raises(GoneError, match="was written anew since its tables were opened"):
        session.ask("select * from lag").read_all()
    session.__exit__(None, None, None)
    assert len(rows(out, "select * from lag")) == 1


def rows_of_lag(directory):
    found = kohort.tables.sql(directory, "select group_id from lag order by all")
    return found.column(0).to_pylist()


def test_clusters_are_asked_as_one(tmp_path):
    hostile = "o'\"; drop table lag"
    directories = [
        publish(tmp_path / str(number), {"lag": LAGS[: number + 1]}, cluster=one)
        for number, one in enumerate(("west", hostile))
    ]

    query = "select cluster, count(*) as n from lag group by cluster order by n"
    assert kohort.tables.sql(directories, query).to_pylist() == [
        {"cluster": "west", "n": 1},
        {"cluster": hostile, "n": 2},
    ]
    late = publish(tmp_path / "late", {}, cluster="late")
    with pytest.raises(KohortError, match="has no table lag yet"):
        kohort.tables.sql([*directories, late], query)
