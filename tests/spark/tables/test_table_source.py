# SPDX-License-Identifier: Apache-2.0
"""The tables as views and as a source of Spark: the same rows, and filters that reach the files."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import datasource as sources
from pyspark.sql.types import StringType, StructField
from tests.tables.published import add_log, publish, write

import kohort.spark
import kohort.tables
from kohort.errors import KohortError
from kohort.pipeline.format.manifest import Gold
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas.progress import LAG, OFFSETS
from kohort.spark.engine.frames import struct_of
from kohort.spark.tables.filter_pushdown import condition_or_none
from kohort.spark.tables.table_source import KohortTables, TablePartition

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
LAGS = [
    {"partition": n % 3, "group_id": f"g{n % 4}", "at": AT + timedelta(hours=n), "lag_records": n}
    | {"lag_seconds": seconds, "reason": None if n % 2 else "lost"}
    for n, seconds in enumerate([0.5, 7.0, float("nan"), None, 60.0, 3.25])
]


@pytest.fixture
def out(tmp_path):
    return publish(tmp_path, {"lag": LAGS, "deletable_groups": []})


def by_lag(rows):
    return sorted((row.asDict() for row in rows), key=lambda row: row["lag_records"])


def test_every_table_is_a_view_of_one_moment(spark, out):
    add_log(out)
    names = kohort.spark.views(spark, out, "k_")

    snapshot = kohort.tables.snapshot(out)
    assert names == [f"k_{one}" for one in snapshot.names]
    publish(out, {"lag": LAGS[:1]})
    assert spark.sql("select count(*) from k_lag").first()[0] == len(LAGS)
    commits = spark.sql("select group_id, count(*) as n from k_offset_commit group by all")
    expected = snapshot.read("offset_commit").group_by("group_id").aggregate([([], "count_all")])
    assert {(one.group_id, one.n) for one in commits.collect()} == {
        (one["group_id"], one["count_all"]) for one in expected.to_pylist()
    }
    assert spark.sql("select * from k_deletable_groups").collect() == []
    kohort.spark.views(spark, out, "k_")
    assert spark.sql("select count(*) from k_lag").first()[0] == 1
    for name in names:
        spark.catalog.dropTempView(name)


def opened(spark, out, **options):
    kohort.spark.register(spark)
    return spark.read.format("kohort.tables").options(path=str(out), table="lag", **options)


def test_the_source_gives_the_rows_and_columns_of_a_table(spark, out):
    add_log(out)

    lag = opened(spark, out).load()
    some = opened(spark, out, columns="lag_records, group_id").load()
    schema = opened(spark, out).schema("at timestamp, lag_records bigint").load()
    silver = opened(spark, out).option("table", "offset_commit").load()

    assert [*lag.schema] == [*struct_of(LAG), StructField("cluster", StringType())]
    assert [one["at"] for one in by_lag(lag.collect())] == [
        one.replace(tzinfo=None) for one in [row["at"] for row in LAGS]
    ]
    assert some.columns == ["lag_records", "group_id"]
    assert [one["group_id"] for one in by_lag(some.collect())] == [one["group_id"] for one in LAGS]
    assert schema.columns == ["at", "lag_records"]
    found = {(row.partition, row.offset, row.topic_id) for row in silver.collect()}
    expected = kohort.tables.read(out, "offset_commit").to_pylist()
    assert found == {(one["partition"], one["offset"], one["topic_id"]) for one in expected}
    assert opened(spark, out).option("table", "deletable_groups").load().collect() == []


CONDITIONS = [
    "partition = 1",
    "group_id in ('g1', 'g3')",
    "group_id like 'g%'",
    "group_id like '%3'",
    "group_id like '%2%'",
    "lag_records > 2 and lag_records <= 4",
    "lag_records < 2",
    "lag_records >= 5",
    "lag_seconds > 5",
    "lag_seconds <= 7",
    "not lag_seconds > 5",
    "lag_seconds is null",
    "reason is not null",
    "reason <> 'lost'",
    "at >= timestamp '2026-11-21 09:00:00Z'",
    "lag_records % 2 = 0",
    "partition = 1 or lag_records = 2",
    "group_id in ('g1', null)",
    "group_id not in ('g1', 'g2')",
    "reason not in ('idle', 'late')",
    "lag_records not in (2, 3)",
    "lag_seconds not in (0.0, 6.0)",
]


def test_a_filter_leaves_the_rows_that_spark_would(spark, out):
    pushed = opened(spark, out).load()
    plain = kohort.spark.read(out, "lag", spark)
    for condition in CONDITIONS:
        rows = by_lag(pushed.where(condition).collect())
        expected = by_lag(plain.where(condition).collect())

        assert [str(one) for one in rows] == [str(one) for one in expected], condition
        assert rows or condition == "reason <> 'lost'", condition


def test_filters_reach_the_files(spark, out):
    lag = opened(spark, out).load()

    def left(condition):
        plan = lag.where(condition)._jdf.queryExecution().executedPlan().toString()
        return "Filter (" in plan

    assert not left("partition = 1 and lag_records > 2 and group_id like 'g%'")
    assert left("lag_records % 2 = 0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "lagg"}, "no table is called 'lagg': did you mean lag?"),
        ({"columns": "lag_record"}, "has no column 'lag_record': did you mean lag_records?"),
        ({"tabel": "lag"}, "kohort.tables has no option 'tabel': did you mean table?"),
        ({"path": "/nowhere/at/all"}, "/nowhere/at/all does not exist: write some with"),
        ({"path": ""}, "kohort.tables needs the option path"),
    ],
)
def test_what_is_not_there_is_told(spark, out, options, words):
    with pytest.raises(KohortError) as told:
        KohortTables({"path": str(out), "table": "lag", **options})
    assert words in str(told.value)
    if "table" in options:
        with pytest.raises(PySparkException, match="did you mean lag"):
            opened(spark, out).option("table", "lagg").load()


def test_files_are_shared_out(out, monkeypatch):
    add_log(out)
    with Writer(out) as writer:
        offsets = [{"partition": one, "committed_offset": one} for one in range(4)]
        parts = (write(writer, OFFSETS, offsets, (1, 3)), write(writer, OFFSETS, offsets[:1]))
        gold = writer.manifest.gold | {"offsets": Gold(columns="", parts=parts)}
        writer.publish(writer.manifest.with_(gold=gold))
    source = KohortTables({"path": str(out), "table": "offsets", "columns": "committed_offset"})
    reader = source.reader(source.schema())

    shares = reader.partitions()

    assert [one.partitions for one in shares] == [(1, 3), None]
    rows = pa.Table.from_batches(batch for share in shares for batch in reader.read(share))
    assert sorted(rows.column(0).to_pylist()) == [0, 1, 3]
    monkeypatch.setattr("kohort.spark.tables.table_source.TASK_BYTES", 1)
    source = KohortTables({"path": str(out), "table": "records"})
    records = source.reader(source.schema())
    many = records.partitions()
    assert len(many) > 5
    assert {len(one.files) for one in many} == {1}
    assert list(records.read(TablePartition())) == []


@pytest.mark.parametrize(
    "asked",
    [
        sources.EqualTo(("a", "b"), 1),
        sources.EqualTo(("nosuch",), 1),
        sources.EqualTo(("partition",), 2**40),
        sources.EqualTo(("partition",), None),
        sources.EqualTo(("lag_seconds",), float("nan")),
        sources.EqualTo(("at",), datetime(2026, 1, 1)),  # noqa: DTZ001
        sources.EqualNullSafe(("partition",), 1),
        sources.Not(sources.EqualNullSafe(("partition",), 1)),
        sources.In(("partition",), (1, None)),
        sources.In(("partition",), ("x",)),
        sources.In(("partition",), ()),
        sources.In(("lag_seconds",), (0.0,)),
    ],
    ids=str,
)
def test_what_arrow_does_not_answer_alike_is_left_to_spark(asked):
    assert condition_or_none(asked, LAG.arrow) is None


def test_clusters_are_one_table_of_spark(spark, out, tmp_path):
    lags = [{"partition": 0, "group_id": "far", "lag_records": 1}]
    with Writer(out) as writer:
        writer.publish(writer.manifest.with_(cluster="near"))
    far = publish(tmp_path / "far", {"lag": lags, "deletable_groups": []}, cluster="far")

    names = kohort.spark.views(spark, [out, far], "c_")
    counted = spark.sql("select cluster, count(*) from c_lag group by cluster order by 1")
    assert [tuple(row) for row in counted.collect()] == [("far", 1), ("near", len(LAGS))]
    for name in names:
        spark.catalog.dropTempView(name)
    both = kohort.spark.read([out, far], "lag", spark)
    assert both.where("cluster = 'far'").select("group_id").collect() == [("far",)]
    lag = opened(spark, out).load()
    assert lag.columns == [*LAG.names, "cluster"]
    assert lag.where("cluster = 'near' and lag_records > 3").count() == 2
    assert opened(spark, out, columns="cluster").load().distinct().collect() == [("near",)]
    with pytest.raises(KohortError, match="are both of cluster near"):
        kohort.spark.read([out, out], "lag", spark)
