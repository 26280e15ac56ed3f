# SPDX-License-Identifier: Apache-2.0
"""Runs over a live cluster, of now: the lag is that of the moment at which reading was planned.

While a producer writes and a slow consumer commits, two runs follow each other without `as_of`.
What AdminClient says just before and just after each of them bounds what the run may say.
"""

import threading
from contextlib import ExitStack, closing, contextmanager

import pytest

pytest.importorskip("pyspark")

import confluent_kafka as ck
from tests.peers import kafka
from tests.spark.measures import compute_only
from tests.spark.sources.commits import QUIET, create

from kohort.pipeline.format.arrow_reader import Tables
from kohort.spark import jobs
from kohort.spark.gold import MEASURES
from kohort.testing import Broker

GROUP, TOPIC, PARTITIONS = "slow", "orders", 2
NEEDED = ("group_state", "members", "commits", "lag", "status")
NONE_YET = -1001

pytestmark = [pytest.mark.spark, pytest.mark.clients, pytest.mark.timeout(400)]


@pytest.fixture(
    params=["kohort", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.prove])]
)
def bootstrap(request):
    with ExitStack() as stack:
        if request.param == "kohort":
            yield stack.enter_context(Broker()).bootstrap
        else:
            if reason := kafka.unavailable():
                pytest.skip(reason)
            yield stack.enter_context(kafka.Kafka(heap="384M")).address


@contextmanager
def repeating(work, pause_s):
    """Work in a thread of its own, again and again until the block ends."""
    ended = threading.Event()

    def run():
        while not ended.wait(pause_s):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def traffic(bootstrap):
    """Some hundred records a second, of which a consumer reads a part, committing all the time."""
    producer = ck.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **QUIET,
        }
    )

    def produce():
        for n in range(20):
            producer.produce(TOPIC, value=b"v", partition=n % PARTITIONS)
        producer.flush(20)

    def consume():
        if consumer.consume(5, 0.5):
            consumer.commit(asynchronous=False)

    with closing(consumer), repeating(produce, 0.05):
        consumer.subscribe([TOPIC])
        with repeating(consume, 0.05):
            yield


def told(bootstrap):
    """Partition -> committed offset and end, as the cluster tells."""
    places = [ck.TopicPartition(TOPIC, one) for one in range(PARTITIONS)]
    asking = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **QUIET})
    with closing(asking):
        committed = asking.committed(places, timeout=30)
        ends = [asking.get_watermark_offsets(one, timeout=30)[1] for one in places]
    return {one.partition: (one.offset, end) for one, end in zip(committed, ends, strict=True)}


def begun(bootstrap):
    try:
        return all(committed != NONE_YET for committed, _ in told(bootstrap).values())
    except ck.KafkaException:  # the coordinator is still coming up
        return False


def newest(directory):
    """Partition -> its row of `lag` at the moment of the last run."""
    rows = Tables(directory).table("lag").to_pylist()
    last = max(row["at"] for row in rows)
    return {
        row["topic_partition"]: row
        for row in rows
        if row["at"] == last and row["level"] == "partition" and row["group_id"] == GROUP
    }


def test_lag_is_what_the_cluster_said_before_and_after(spark, bootstrap, tmp_path, monkeypatch):
    few = tuple(one for one in MEASURES if one.table.name in NEEDED)
    compute_only(monkeypatch, few)
    create(bootstrap, TOPIC, PARTITIONS)
    with traffic(bootstrap):
        while not begun(bootstrap):
            pass
        for _ in range(2):
            before = told(bootstrap)
            summary = jobs.run(f"cluster:{bootstrap}", tmp_path, spark=spark)
            after = told(bootstrap)

            found = newest(tmp_path)
            assert found.keys() == before.keys()
            for one, row in found.items():
                (committed, end), (committed_then, end_then) = before[one], after[one]
                assert row["at"] == row["end_sampled_at"] == summary.as_of
                assert end <= row["end_offset"] <= end_then
                assert committed <= row["committed_offset"] <= committed_then
                assert end - committed_then <= row["lag_records"] <= end_then - committed
            status = Tables(tmp_path).table("status").to_pylist()
            judged = {row["status"] for row in status if row["rules"] == "kohort"}
            assert judged <= {"OK", "WARN"}
