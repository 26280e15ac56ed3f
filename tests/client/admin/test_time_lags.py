# SPDX-License-Identifier: Apache-2.0
"""Lag in seconds: by the record's own time where the log has it, else a bound with its reason."""

import time

import pytest
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient
from kohort.client.admin.time_lags import TimeLag, _Reading
from kohort.client.producer import Producer
from kohort.errors import ErrorCode
from kohort.figures import Bound
from kohort.terms import TopicPartition
from kohort.testing.broker import Broker
from kohort.wire.batch import build, build_marker
from kohort.wire.messages.fetch import FetchRequest, PartitionData

HOUR_MS = 3_600_000
SLACK_S = 60  # how long a test may take


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        yield broker


@pytest.fixture
def now_ms():
    return time.time_ns() // 1_000_000


async def asked(broker, offsets, **options):
    async with AdminClient(broker.bootstrap) as admin:
        return await admin.time_lags(offsets, **options)


def hours(lag):
    """Its age in whole hours, which the test does not outlast."""
    assert lag.seconds % 3600 < SLACK_S
    return lag.seconds // 3600, lag.bound, lag.reason


@asynchronous
async def test_is_the_age_of_the_record_at_the_offset(broker, now_ms):
    broker.create_topic("ages", partitions=2)
    for age in (5, 3, 1):
        broker.produce("ages", f"{age}", partition=0, timestamp_ms=now_ms - age * HOUR_MS)
    found = (await asked(broker, {("ages", 0): 1, ("ages", 1): 0})).all()
    lag = found["ages", 0]
    assert hours(lag) == (3, Bound.EXACT, None)
    assert (lag.record_offset, lag.timestamp_ms) == (1, now_ms - 3 * HOUR_MS)
    assert lag.timestamp_type == "create"
    assert found["ages", 1] == TimeLag(0.0)
    for offset in (3, 77):  # the end, and beyond it
        assert (await asked(broker, {("ages", 0): offset})).all() == {("ages", 0): TimeLag(0.0)}


@asynchronous
async def test_one_request_reads_all_partitions_of_a_leader(broker, now_ms, monkeypatch):
    from kohort.client.network.cluster import Cluster

    broker.create_topic("many", partitions=20)
    for index in range(20):
        broker.produce("many", "x", partition=index, timestamp_ms=now_ms - HOUR_MS)
    asks, ask = [], Cluster.ask

    async def counted(self, node, request, **options):
        asks.append(type(request))
        return await ask(self, node, request, **options)

    monkeypatch.setattr(Cluster, "ask", counted)
    found = (await asked(broker, {("many", index): 0 for index in range(20)})).all()
    assert {hours(lag) for lag in found.values()} == {(1, Bound.EXACT, None)}
    assert asks.count(FetchRequest) == 1


@asynchronous
async def test_batches_that_are_longer_than_what_is_asked_for(broker, now_ms):
    broker.create_topic("long", partitions=12)
    for index in range(12):
        long = "x" * 100_000
        broker.produce("long", long, "y", partition=index, timestamp_ms=now_ms - HOUR_MS)
    found = (await asked(broker, {("long", index): 1 for index in range(12)})).all()
    assert {hours(lag) for lag in found.values()} == {(1, Bound.EXACT, None)}


@asynchronous
async def test_a_deleted_record_is_older_than_what_is_left(broker, now_ms):
    broker.create_topic("cut", partitions=2)
    for age in (5, 3, 1):
        broker.produce("cut", "x", partition=0, timestamp_ms=now_ms - age * HOUR_MS)
    broker.produce("cut", "x", partition=1)
    async with AdminClient(broker.bootstrap) as admin:
        (await admin.delete_records({("cut", 0): 2, ("cut", 1): "latest"})).all()
        found = (await admin.time_lags({("cut", 0): 0, ("cut", 1): 0})).all()
    assert hours(found["cut", 0]) == (1, Bound.AT_LEAST, "deleted")
    assert found["cut", 1] == TimeLag(0.0, Bound.AT_LEAST, "deleted")


@asynchronous
async def test_a_time_that_is_still_to_come_and_one_of_the_broker(broker, now_ms):
    broker.create_topic("ahead")
    broker.produce("ahead", "x", timestamp_ms=now_ms + HOUR_MS)
    (lag,) = (await asked(broker, {("ahead", 0): 0})).all().values()
    assert (lag.seconds, lag.bound, lag.reason) == (0.0, Bound.AT_LEAST, "clock")
    broker.create_topic("append", configs={"message.timestamp.type": "LogAppendTime"})
    broker.produce("append", "x", timestamp_ms=now_ms - HOUR_MS)
    (lag,) = (await asked(broker, {("append", 0): 0})).all().values()
    assert (lag.timestamp_type, lag.bound) == ("append", Bound.EXACT)
    assert 0 <= lag.seconds < SLACK_S


@asynchronous
async def test_markers_and_aborted_records_are_nothing_to_read(broker, now_ms):
    broker.create_topic("paid")
    settings = {"bootstrap_servers": broker.bootstrap, "transactional_id": "t"}
    async with Producer(**settings) as producer:
        for age, is_good in ((4, True), (3, False), (2, True)):
            await producer.begin_transaction()
            await producer.send("paid", b"x", timestamp_ms=now_ms - age * HOUR_MS)
            await producer.flush()
            await (producer.commit_transaction() if is_good else producer.abort_transaction())
    place = ("paid", 0)  # records at 0, 2 and 4, each with a marker behind it
    for offset, committed, expected in (
        (0, True, (4, Bound.EXACT, None)),
        (1, False, (3, Bound.EXACT, None)),
        (1, True, (2, Bound.EXACT, None)),
        (5, False, (0, Bound.EXACT, None)),
        (5, True, (0, Bound.EXACT, None)),
    ):
        found = (await asked(broker, {place: offset}, read_committed=committed)).all()
        assert hours(found[place]) == expected


@asynchronous
async def test_a_partition_that_is_not_there_fails_alone(broker):
    broker.create_topic("there")
    broker.produce("there", "x")
    found = await asked(broker, {("there", 0): 0, ("there", 9): 0})
    assert list(found.succeeded) == [("there", 0)]
    assert found.failed["there", 9].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("offset", [-1, None, "1", 1 << 63])
@asynchronous
async def test_an_offset_that_is_none_is_refused(broker, offset):
    with pytest.raises(ValueError, match="offset"):
        await asked(broker, {("ages", 0): offset})


KEY = TopicPartition("t", 0)


def lag_of(data, end=10, *, place=3):
    reading = _Reading(None, {KEY: place}, read_committed=False)
    return reading._lag_or_error(KEY, PartitionData(records=data, high_watermark=end))


def test_a_record_that_compaction_has_removed_is_older_than_the_next_one():
    lag = lag_of(build([(b"k", b"v")], 1000, base_offset=5))
    assert (lag.bound, lag.reason, lag.record_offset) == (Bound.AT_LEAST, "compacted", 5)


def test_a_marker_before_the_record_removes_nothing():
    marker = build_marker(
        commit=True,
        timestamp=1,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=3,
    )
    lag = lag_of(marker + build([(b"k", b"v")], 1000, base_offset=4))
    assert (lag.bound, lag.record_offset) == (Bound.EXACT, 4)


def test_a_record_without_a_time_has_an_unknown_age():
    lag = lag_of(build([(b"k", b"v")], -1, base_offset=3))
    assert lag == TimeLag(None, Bound.UNKNOWN, "no_timestamp", 3)
    assert lag.figure.text(str) == "unknown (no_timestamp)"


@pytest.mark.parametrize("cut", [0, 10, 61, 65])
def test_a_batch_that_is_cut_is_read_again(cut):
    lag = lag_of(build([(b"k", b"v")], 1000, base_offset=3)[:cut])
    assert (lag.seconds, lag.bound, lag.reason) == (None, Bound.UNKNOWN, "not_read")


def test_bytes_that_are_damaged_are_an_error():
    data = bytearray(build([(b"k", b"v")], 1000, base_offset=3))
    data[-1] ^= 1
    assert lag_of(bytes(data)).code is ErrorCode.CORRUPT_MESSAGE
