# SPDX-License-Identifier: Apache-2.0
"""One contract for all sources: the same log gives the same rows, whole, in parts and as a stream.

Spark is slow to start anything, so each test asks it for much at once.
"""

import asyncio
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.sources.commits import commit, create
from tests.spark.sources.logs import log_source

from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows, raw
from kohort.pipeline.schemas import DECODED
from kohort.pipeline.sources.log_position import Plan
from kohort.spark.sources.registry import source
from kohort.testing import Broker

pytestmark = pytest.mark.clients

SHOWN = ("partition", "offset", "timestamp", "key", "value", "kind", "group_id", "committed_offset")


@pytest.fixture(scope="module")
def broker():
    with Broker({"offsets.topic.num.partitions": "4"}, process=True) as one:
        create(one.bootstrap, "orders")
        commit(one.bootstrap, [f"group-{number}" for number in range(12)])
        yield one


@pytest.fixture(scope="module")
def rows(broker):
    """The raw rows, read without Spark."""
    one = log_source(broker.data_dir)
    spans = [weighed.span for weighed in one._feed.weigh(one.plan({}).ranges)]
    return pa.Table.from_batches(map(raw, one._feed.read(spans)))


class SourceContract:
    """`subject` is a source of the rows of `broker`."""

    def test_the_rows_whole_and_in_parts(self, spark, subject, rows):
        plan = subject.plan({})
        begin = plan.ranges[0][0]
        single = plan._replace(ranges={0: (begin + 3, begin + 4)})
        first = {index: (start, start + 7) for index, (start, _) in plan.ranges.items()}
        second = {index: (start + 7, end) for index, (start, end) in plan.ranges.items()}
        halves = [plan._replace(ranges=first), plan._replace(ranges=second)]
        expected = shown(decode(ArrowRows(rows.combine_chunks().to_batches()[0])).to_pylist())

        frames = [subject.frame(spark, one) for one in (plan, *halves, single)]
        marked = [
            frame.selectExpr(f"{index} as part", *SHOWN) for index, frame in enumerate(frames)
        ]
        found = [row.asDict() for row in reduce(type(frames[0]).union, marked).collect()]

        assert set(plan.ranges) == {0, 1, 2, 3}
        assert shown(row for row in found if row["part"] == 0) == expected
        assert shown(row for row in found if row["part"] in {1, 2}) == expected
        assert shown(row for row in found if row["part"] == 3) == [
            row for row in expected if row[:2] == (0, begin + 3)
        ]

    def test_few_rows_are_the_same_without_spark(self, subject, rows):
        plan = subject.plan({})
        expected = decode(ArrowRows(rows.combine_chunks().to_batches()[0]))

        found = subject.few_or_none(plan)

        if self.reads_without_spark:
            assert found.schema == DECODED.arrow
            assert shown(found.to_pylist()) == shown(expected.to_pylist())

            async def asked():  # as from a notebook, where a loop is running
                return subject.few_or_none(plan)

            assert asyncio.run(asked()).num_rows == found.num_rows
        else:
            assert found is None

    reads_without_spark = False

    def test_nothing_new(self, subject):
        plan = subject.plan({})
        after = subject.plan(plan.positions)

        assert after == Plan({}, {}, (), plan.positions)
        assert subject.changes(plan) == ()
        assert subject.identity().matches(subject.identity())

    def test_a_stream_gives_what_a_batch_gives(self, spark, subject, rows, tmp_path):
        plan = subject.plan({})
        plan = plan._replace(ranges={**plan.ranges, 0: (5, plan.ranges[0][1])})
        expected = [row[:2] for row in shown(rows.to_pylist()) if row[0] != 0 or row[1] >= 5]
        batches = []

        def take(frame, _):
            batches.append([tuple(row) for row in frame.select("partition", "offset").collect()])

        frame = subject.stream(spark, plan, max_records=self.limit)
        for _ in range(self.runs):  # a second begins where the first ended, and finds nothing
            query = (
                frame.writeStream.foreachBatch(take)
                .trigger(availableNow=True)
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .start()
            )
            query.awaitTermination()

        assert sorted(row for one in batches for row in one) == expected
        if self.limit is not None:
            assert len(batches) == -(-len(expected) // self.limit)
            assert max(map(len, batches)) <= self.limit

    limit = 60
    runs = 1


class TestLog(SourceContract):
    reads_without_spark = True
    runs = 2

    @pytest.fixture
    def subject(self, broker):
        return source(f"log:{broker.data_dir}")


class TestTopic(SourceContract):
    reads_without_spark = True

    @pytest.fixture
    def subject(self, broker):
        return source(f"cluster:{broker.bootstrap}")


class TestParquet(SourceContract):
    limit = None  # a file is read whole

    @pytest.fixture
    def subject(self, rows, tmp_path):
        """As Spark's connector gives rows: without producers, and of another topic too."""
        topic = pa.array(["__consumer_offsets"] * rows.num_rows)
        kind = pa.array([0] * rows.num_rows, pa.int32())
        table = rows.select(["key", "value"]).append_column("topic", topic)
        for name in ("partition", "offset", "timestamp"):
            table = table.append_column(name, rows.column(name))
        table = table.append_column("timestampType", kind)
        other = table.slice(0, 3).set_column(2, "topic", pa.array(["orders"] * 3))
        (tmp_path / "rows").mkdir()
        pq.write_table(table.slice(0, 50), tmp_path / "rows" / "a.parquet")
        pq.write_table(pa.concat_tables([table.slice(50), other]), tmp_path / "rows" / "b.parquet")
        return source(f"parquet:{tmp_path / 'rows'}")


def shown(rows):
    """Rows as tuples, in order; times without a zone, as a session in UTC gives them."""
    return sorted(
        tuple(
            row[name].replace(tzinfo=None) if name == "timestamp" else row.get(name)
            for name in SHOWN
        )
        for row in rows
    )
