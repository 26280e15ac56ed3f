# SPDX-License-Identifier: Apache-2.0
"""`kohort.log` and `kohort.topic` as a user of Spark has them: options, columns, errors."""

from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType
from tests import golden_logs
from tests.spark.sources.logs import FIRST, Writer, log_source

from kohort.cli.arguments import SOURCE_FORMS
from kohort.pipeline.columns.decode import OFFSET_COMMITS, offset_commits
from kohort.pipeline.sources.log_position import SourceError
from kohort.pipeline.sources.options import Options
from kohort.spark.sources.log import KohortLog
from kohort.spark.sources.reader import share, spark_schema
from kohort.spark.sources.registry import SOURCES, register, source

GROUP_LOG = "__consumer_offsets"
GOLDEN = [name for name in golden_logs.NAMES if not name.startswith("user")]


def test_the_rows_of_real_logs_are_what_kafkas_own_tool_reads(spark, tmp_path):
    """All folders in one job, and the typed commits of one of them."""
    register(spark)
    expected = []
    for name in GOLDEN:
        golden_logs.unpack(name, tmp_path)
        expected += [
            (
                name,
                int(line["file"].partition("/")[0].rpartition("-")[2]),
                line["offset"],
                line["timestamp"],
                *(line[f"{part}_hex"] for part in ("key", "value")),
                "control" in line,
            )
            for line in golden_logs.dump(name)
            if line["kind"] == "record" and line["file"].startswith(GROUP_LOG)
        ]
    frames = [
        spark.read.format("kohort.log")
        .load(str(tmp_path / name))
        .selectExpr(
            f"'{name}' as name",
            "partition",
            "offset",
            "unix_millis(timestamp)",
            "lower(hex(key))",
            "lower(hex(value))",
            "control",
            "error",
        )
        for name in GOLDEN
    ]

    found = reduce(type(frames[0]).union, frames).collect()

    assert {row.error for row in found} == {None}
    assert sorted(tuple(row)[:-1] for row in found if not row.control) == sorted(
        row for row in expected if not row[-1]
    )
    markers = sorted(tuple(row)[:4] for row in found if row.control)
    assert markers == sorted(row[:4] for row in expected if row[-1])


def test_columns_rows_and_errors(spark, tmp_path):
    folder = str(golden_logs.unpack("4-killed", tmp_path))
    register(spark)
    some = spark.read.format("kohort.log").schema("key binary, offset bigint").load(folder)
    commits = spark.read.format("kohort.log").option("rows", "offset_commits").load(folder)
    one = log_source(folder)
    spans = [weighed.span for weighed in one._feed.weigh(one.plan({}).ranges)]
    expected = pa.Table.from_batches(
        [offset_commits(rows) for rows in one._feed.read(spans)], OFFSET_COMMITS
    )

    assert some.columns == ["key", "offset"]
    assert some.where("key is not null").count() == 250
    assert commits.columns == OFFSET_COMMITS.names
    assert sorted(
        map(tuple, commits.select("partition", "offset", "committed_offset").collect())
    ) == (
        sorted(
            zip(
                *(
                    expected.column(name).to_pylist()
                    for name in ("partition", "offset", "committed_offset")
                ),
                strict=True,
            )
        )
    )
    with pytest.raises(Exception, match=r"option 'topik' is not known, expected one of path, rows"):
        spark.read.format("kohort.log").option("topik", "x").load(folder).count()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, 'option \'path\' is missing, expected .option\\("path", "/var/kafka/data"\\)'),
        ({"rows": "typed"}, "option rows is 'typed', expected one of raw, decoded, offset_commits"),
        ({"startingOffsets": "17"}, "option startingOffsets is '17', expected earliest, latest or"),
        ({"endingOffsets": '{"0": -1}'}, "option endingOffsets is"),
        ({"partitions": "a"}, "option partitions is 'a', expected numbers as in 0,3,7"),
        ({"maxRecordsPerTrigger": "0"}, "is '0', expected a whole number from 1 on"),
        ({"startingTimestamp": "soon"}, "option startingTimestamp is 'soon', expected a whole"),
        ({"path": "/none"}, "there is no directory /none"),
    ],
)
def test_options_are_checked(options, words, tmp_path):
    Writer(tmp_path).append("a")
    given = options if "path" in options or not options else {"path": str(tmp_path), **options}

    with pytest.raises(SourceError, match=words):
        reader({**given})


def test_an_option_is_known_in_any_case():
    assert Options.of({"StartingOffsets": "latest"}, ()).starting == "latest"


def test_options_that_only_the_log_can_refuse(tmp_path):
    Writer(tmp_path).append("a")

    with pytest.raises(SourceError, match="option partitions names 7, the log has 0"):
        reader({"path": str(tmp_path), "partitions": "0,7"}).partitions()
    with pytest.raises(SourceError, match="endingOffsets is earliest"):
        reader({"path": str(tmp_path), "endingOffsets": "earliest"}).partitions()


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ({}, range(10)),
        ({"startingOffsets": '{"0": 3}'}, range(3, 10)),
        ({"startingOffsets": "latest"}, ()),
        ({"endingOffsets": '{"0": 3}'}, range(3)),
        ({"startingOffsets": '{"0": 3}', "endingOffsets": '{"0": 5}', "partitions": "0"}, (3, 4)),
        ({"partitions": ""}, ()),
        ({"startingTimestamp": str(FIRST + 4000), "endingTimestamp": str(FIRST + 6001)}, (4, 5, 6)),
    ],
)
def test_what_is_read(options, offsets, tmp_path):
    Writer(tmp_path).append("a", times=10)
    one = reader({"path": str(tmp_path), **options})

    rows = [
        row for task in one.partitions() for batch in one.read(task) for row in batch.to_pylist()
    ]

    assert [row["offset"] for row in rows] == list(offsets)


def test_columns_that_are_not_there(tmp_path):
    Writer(tmp_path).append("a")
    for field, words in [
        (StructField("nothing", StringType()), "column nothing string .* has no such column: ask"),
        (StructField("offset", IntegerType()), "column offset int is asked for, rows=raw has big"),
    ]:
        with pytest.raises(SourceError, match=words):
            KohortLog({"path": str(tmp_path)}).reader(StructType([field]))
    fine = KohortLog({"path": str(tmp_path)}).reader(
        StructType([StructField("offset", LongType())])
    )
    (batch,) = fine.read(fine.partitions()[0])
    assert batch.schema.names == ["offset"]


# ---- a stream, without Spark


def test_a_stream_goes_on_from_its_offsets_and_finds_a_cut(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=10)
    stream = streaming(tmp_path)
    start = stream.initialOffset()
    assert start == {"0": {"next": 0}}
    assert stream.latestOffset(start, ReadMaxRows(4))["0"]["next"] == 4
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert end["0"]["next"] == 10
    assert stream.partitions(end, end) == []
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    writer.append("b", times=3)
    Writer(tmp_path, 1).append("c", times=2)  # a partition that is new
    after = stream.latestOffset(end, ReadAllAvailable())
    assert {index: one["next"] for index, one in after.items()} == {"0": 13, "1": 2}
    (task,) = stream.partitions(end, after)
    assert [row["offset"] for rows in stream.read(task) for row in rows.to_pylist()] == [
        *(10, 11, 12),
        *(0, 1),
    ]

    writer.cut(8)
    writer.append("d", times=9)

    for one in (stream, streaming(tmp_path)):  # also the next to run it
        with pytest.raises(
            SourceError, match=r"partition 0 was cut after it was read to 13.* again"
        ):
            one.latestOffset(after, ReadAllAvailable())


def test_available_now_ends_where_the_log_ended_when_it_began(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=10)
    stream = streaming(tmp_path, maxRecordsPerTrigger="6")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    writer.append("b", times=10)

    seen = [start]
    while (end := stream.latestOffset(seen[-1], stream.getDefaultReadLimit())) != seen[-1]:
        seen.append(end)

    assert [one["0"]["next"] for one in seen] == [0, 6, 10]


def test_a_stream_of_nothing_but_what_comes(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=10)
    stream = streaming(tmp_path, startingOffsets="latest")
    start = stream.initialOffset()
    writer.append("b")

    assert start["0"]["next"] == 10
    assert stream.latestOffset(start, ReadAllAvailable())["0"]["next"] == 11


def test_a_limit_is_shared_by_how_much_there_is():
    begins = {0: 0, 1: 100, 2: 0}

    assert share(begins, {0: 10, 1: 190, 2: 0}, 1000) == {0: 10, 1: 190, 2: 0}
    assert share(begins, {0: 10, 1: 190, 2: 0}, 50) == {0: 5, 1: 145, 2: 0}
    assert share(begins, {0: 1, 1: 101, 2: 1}, 2) == {0: 1, 1: 101, 2: 0}


# ---- Parquet


def test_files_that_are_no_raw_rows_are_said(tmp_path):
    (tmp_path / "empty").mkdir()
    pq.write_table(pa.table({"partition": [1], "offset": [2]}), tmp_path / "few.parquet")
    pq.write_table(
        pa.table({name: [1] for name in ("partition", "offset", "timestamp", "key", "value")}),
        tmp_path / "times.parquet",
    )
    (tmp_path / "text.parquet").write_text("no Parquet")
    for path, words in [
        ("none", "there is no directory"),
        ("empty", "have no column partition: they have none, raw rows have partition, offset"),
        ("few.parquet", "have no column timestamp: they have partition, offset, raw rows have"),
        ("times.parquet", "column timestamp in .* is int64, expected a timestamp"),
        ("text.parquet", "cannot be read as Parquet"),
    ]:
        with pytest.raises(SourceError, match=words):
            source(f"parquet:{tmp_path / path}")


def reader(options):
    one = KohortLog(options)
    return one.reader(spark_schema(options))


def streaming(directory, **options):
    return KohortLog({"path": str(directory), **options}).streamReader(spark_schema({}))


def test_the_command_line_knows_every_source_by_its_form():
    assert {word: form for word, (_, form) in SOURCES.items()} == SOURCE_FORMS
