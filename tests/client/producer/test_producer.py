# SPDX-License-Identifier: Apache-2.0
"""The producer against a broker: records arrive once and in order, whatever happens to answers."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.scripted import asynchronous

from kohort.client.accumulator.partitioning import partition_of
from kohort.client.producer import DeliveryError, Producer, TransactionError
from kohort.errors import ApiError, ErrorCode
from kohort.testing import Broker
from kohort.wire.compression import Compression


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_memory=True) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = request.node.originalname[:80].replace("[", "_")
    if name in broker.topics:
        broker.delete_topic(name)
    broker.create_topic(name, 3)
    broker.faults.clear()
    return str(name)


def made(broker: Broker, **settings: Any) -> Producer:
    quick = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}
    return Producer(bootstrap_servers=broker.bootstrap, **{**quick, **settings})


def values(broker: Broker, topic: str, partition: int) -> list[bytes | None]:
    return [one.value for one in broker.read(topic) if one.partition == partition]


@asynchronous
async def test_a_record_is_read_as_it_was_sent(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        told = await producer.send_and_wait(
            topic,
            b"v",
            key=b"k",
            headers=[("a", b"1"), ("b", None)],
            partition=2,
            timestamp_ms=1_700_000_000_000,
        )
        assert told == (topic, 2, 0, 1_700_000_000_000)
        assert (await producer.send_and_wait(topic, None, key=b"k", partition=2)).offset == 1
    one, tombstone = broker.read(topic)
    assert (one.key, one.value, one.partition, one.timestamp_ms) == (b"k", b"v", 2, told[3])
    assert one.headers == (("a", b"1"), ("b", None))
    assert (tombstone.value, tombstone.headers) == (None, ())


@pytest.mark.parametrize("codec", Compression)
@asynchronous
async def test_many_records_arrive_in_the_order_of_each_key(
    broker: Broker, topic: str, codec: Compression
) -> None:
    settings = {"compression_type": codec.name.lower(), "batch_size": 500}
    async with made(broker, **settings) as producer:
        for number in range(1000):
            await producer.send(topic, b"%d" % number, key=b"key %d" % (number % 7))
        await producer.flush()
    records = broker.read(topic)
    assert len(records) == 1000
    for partition in range(3):
        some = [int(one.value or b"") for one in records if one.partition == partition]
        assert some == sorted(some)
    assert all(one.partition == partition_of(one.key or b"", 3) for one in records)


@asynchronous
async def test_records_without_a_key_are_spread(broker: Broker, topic: str) -> None:
    async with made(broker, batch_size=200) as producer:
        for _ in range(500):
            await producer.send(topic, b"0123456789")
    found = [len(values(broker, topic, one)) for one in range(3)]
    assert sum(found) == 500
    assert min(found) > 50


@asynchronous
async def test_serializers_make_bytes(broker: Broker, topic: str) -> None:
    settings = {"key_serializer": str.encode, "value_serializer": lambda one: b"%d" % one}
    async with made(broker, **settings) as producer:
        await producer.send_and_wait(topic, 7, key="k")
        await producer.send_and_wait(topic, None)
    assert sorted((one.key, one.value) for one in broker.read(topic) if one.key) == [(b"k", b"7")]


@asynchronous
async def test_what_is_no_bytes_is_refused(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        with pytest.raises(TypeError, match="value is 7, expected bytes; or give a value_seri"):
            await producer.send(topic, 7)
        with pytest.raises(TypeError, match="key is 'k'"):
            await producer.send(topic, b"", key="k")
        with pytest.raises(TypeError, match="header 'h' is 'x'"):
            await producer.send(topic, b"", headers=[("h", "x")])  # type: ignore[list-item]
    assert broker.read(topic) == []


@pytest.mark.parametrize(
    "headers", ["ab", b"ab", 5, ["ab"], [("h",)], [("h", b"x", b"y")], {"h": "x"}]
)
@asynchronous
async def test_headers_that_are_none_are_named(broker: Broker, topic: str, headers: Any) -> None:
    async with made(broker) as producer:
        with pytest.raises(TypeError, match=r"^header.*, expected .*bytes"):
            await producer.send(topic, b"", headers=headers)
    assert broker.read(topic) == []


@asynchronous
async def test_headers_may_be_a_mapping(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        await producer.send_and_wait(topic, b"", headers={"h": b"x", "empty": None})
    assert [one.headers for one in broker.read(topic)] == [(("h", b"x"), ("empty", None))]


@asynchronous
async def test_what_cannot_name_a_topic_or_a_partition_is_named(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        with pytest.raises(TypeError, match="topic is 5, expected a text"):
            await producer.send(5, b"")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="partition is '0', expected an int"):
            await producer.send(topic, b"", partition="0")  # type: ignore[arg-type]
    assert broker.read(topic) == []


@pytest.mark.parametrize("time", [-1, 1 << 63, 1.5, "5", True])
@asynchronous
async def test_a_time_that_is_none_is_refused(broker: Broker, topic: str, time: Any) -> None:
    async with made(broker, linger_ms=50) as producer:
        good = await producer.send(topic, b"v", partition=0, timestamp_ms=0)
        kind = ValueError if type(time) is int else TypeError
        with pytest.raises(kind, match=f"timestamp_ms is {time!r}, expected"):
            await producer.send(topic, b"w", partition=0, timestamp_ms=time)
        await producer.send(topic, b"x", partition=0, timestamp_ms=1)
        await good
    assert values(broker, topic, 0) == [b"v", b"x"]


@asynchronous
async def test_a_send_that_is_cancelled_has_taken_nothing(broker: Broker, topic: str) -> None:
    async with made(broker, linger_ms=0) as producer:
        await producer.send_and_wait(topic, b"0", partition=0)
        raised = 0
        for _ in range(4):
            sending = asyncio.create_task(producer.send(topic, b"1", partition=0))
            await asyncio.sleep(0)
            sending.cancel()
            (found,) = await asyncio.gather(sending, return_exceptions=True)
            raised += isinstance(found, asyncio.CancelledError)
        await producer.flush()
    assert raised > 0
    assert len(values(broker, topic, 0)) == 5 - raised


@asynchronous
async def test_a_topic_that_is_made_anew_with_fewer_partitions() -> None:
    with Broker(in_memory=True) as broker:
        broker.create_topic("t", 8)
        async with asyncio.timeout(30), made(broker, batch_size=1000) as producer:
            while (await producer.send_and_wait("t", bytes(600))).partition == 0:
                pass
            broker.delete_topic("t")
            broker.create_topic("t", 1)
            assert (await producer.send_and_wait("t", b"v")).partition == 0
            assert (await producer.send_and_wait("t", b"w")).partition == 0


@pytest.mark.parametrize("handled", [True, False])
@asynchronous
async def test_a_lost_answer_writes_nothing_twice(
    broker: Broker,
    topic: str,
    handled: bool,  # noqa: FBT001
) -> None:
    async with made(broker, batch_size=100) as producer:
        broker.faults.close("Produce", handled=handled, times=3)
        for number in range(100):
            await producer.send(topic, b"%d" % number, partition=0)
        await producer.flush()
    assert values(broker, topic, 0) == [b"%d" % number for number in range(100)]


@asynchronous
async def test_what_passes_is_sent_again(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        broker.faults.error("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
        assert (await producer.send_and_wait(topic, b"v", partition=0)).offset == 0


@asynchronous
async def test_a_broker_that_restarts_is_waited_for() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        async with made(broker) as producer:
            await producer.send_and_wait("t", b"0")
            broker.stop()
            delivery = await producer.send("t", b"1")
            await asyncio.sleep(0.05)
            await asyncio.to_thread(broker.start)
            assert (await delivery).offset == 1


@asynchronous
async def test_a_leader_that_moves_is_followed() -> None:
    with Broker(in_memory=True, nodes=2) as broker:
        broker.create_topic("t")
        async with made(broker) as producer:
            for number in range(20):
                await producer.send("t", b"%d" % number)
                if number % 5 == 4:
                    await asyncio.to_thread(broker.move_leader, "t", 0)
                    await producer.flush()
        assert values(broker, "t", 0) == [b"%d" % number for number in range(20)]


@asynchronous
async def test_a_topic_that_is_made_while_waiting() -> None:
    with Broker({"auto.create.topics.enable": "false"}, in_memory=True) as broker:
        async with made(broker) as producer:
            sending = asyncio.create_task(producer.send_and_wait("late", b"v"))
            await asyncio.sleep(0.15)
            assert not sending.done()
            await asyncio.to_thread(broker.create_topic, "late")
            assert (await sending).offset == 0
            assert await producer.partitions_for("late") == [0]


@asynchronous
async def test_a_topic_that_is_not_there() -> None:
    with Broker({"auto.create.topics.enable": "false"}, in_memory=True) as broker:
        async with made(broker, max_block_ms=150) as producer:
            with pytest.raises(DeliveryError, match="nowhere is not there after 150 ms") as raised:
                await producer.send("nowhere", b"v")
            assert not raised.value.maybe_written
            with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION: no topic"):
                await producer.send("no topic", b"v")


@asynchronous
async def test_a_partition_that_is_not_there(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        with pytest.raises(DeliveryError, match="has 3 partitions, partition 9 is not among them"):
            await producer.send(topic, b"v", partition=9)


@asynchronous
async def test_a_record_that_is_too_large(broker: Broker, topic: str) -> None:
    async with made(broker, max_request_size=1000, buffer_memory=500) as producer:
        with pytest.raises(DeliveryError, match="expected at most max_request_size"):
            await producer.send(topic, bytes(1000))
        with pytest.raises(DeliveryError, match="expected at most buffer_memory") as raised:
            await producer.send(topic, bytes(600))
        assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE


@asynchronous
async def test_a_record_that_the_broker_finds_too_large_fails_alone() -> None:
    with Broker({"message.max.bytes": "2000"}, in_memory=True) as broker:
        broker.create_topic("t")
        async with made(broker) as producer:
            some = [await producer.send("t", bytes(size)) for size in (10, 1000, 1500, 3000, 10)]
            found = await asyncio.gather(*some, return_exceptions=True)
        assert [isinstance(one, DeliveryError) for one in found] == [False] * 3 + [True, False]
        assert [len(one or b"") for one in values(broker, "t", 0)] == [10, 1000, 1500, 10]


@asynchronous
async def test_send_waits_for_room(broker: Broker, topic: str) -> None:
    async with made(broker, buffer_memory=2000, max_block_ms=100, linger_ms=0) as producer:
        fault = broker.faults.delay("Produce", 0.4)
        first = await producer.send(topic, bytes(1500))
        with pytest.raises(DeliveryError, match="no room for a record") as raised:
            await producer.send(topic, bytes(1000))
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        await first
        fault.clear()
        await producer.send_and_wait(topic, bytes(1000))


@asynchronous
async def test_flush_waits_for_all_and_raises_nothing(broker: Broker, topic: str) -> None:
    async with made(broker, linger_ms=60_000) as producer:
        good = await producer.send(topic, b"v", partition=0)
        broker.faults.error("Produce", ErrorCode.INVALID_RECORD)
        await producer.flush()
        assert good.done()
        assert isinstance(good.exception(), DeliveryError)


@asynchronous
async def test_close_delivers_what_was_taken(broker: Broker, topic: str) -> None:
    producer = made(broker, linger_ms=60_000)
    async with producer:
        delivery = await producer.send(topic, b"v")
    assert delivery.result().offset == 0
    with pytest.raises(ValueError, match="closed"):
        await producer.send(topic, b"v")
    await producer.close()


@asynchronous
async def test_an_error_in_the_block_does_not_lose_what_was_taken(
    broker: Broker, topic: str
) -> None:
    with contextlib.suppress(KeyError):
        async with made(broker, linger_ms=60_000) as producer:
            delivery = await producer.send(topic, b"v")
            raise KeyError
    assert delivery.result().offset == 0


@asynchronous
async def test_who_is_cancelled_while_closing_says_what_is_known(
    broker: Broker, topic: str
) -> None:
    producer = made(broker)
    await producer.start()
    await producer.send_and_wait(topic, b"v", partition=1)
    broker.faults.drop("Produce")
    sent = await producer.send(topic, b"v", partition=1)
    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    error = sent.exception()
    assert isinstance(error, DeliveryError)
    assert error.maybe_written
    assert "the producer was closed; it may have been written" in str(error)
    assert len(asyncio.all_tasks()) == 1


@asynchronous
async def test_whoever_gives_up_waiting_does_not_take_the_record_back(
    broker: Broker, topic: str
) -> None:
    async with made(broker, linger_ms=50) as producer:
        delivery = await producer.send(topic, b"v", partition=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await delivery
    assert values(broker, topic, 0) == [b"v"]


@asynchronous
async def test_it_has_to_be_started(broker: Broker, topic: str) -> None:
    with pytest.raises(ValueError, match="not started"):
        await made(broker).send(topic, b"v")


@asynchronous
async def test_a_cluster_that_does_not_answer() -> None:
    producer = Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=100)
    with pytest.raises(ApiError, match="cannot connect"):
        await producer.start()
    with pytest.raises(ValueError, match="closed"):
        await producer.start()


@asynchronous
async def test_a_cluster_that_is_still_starting_is_waited_for() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        producer = made(broker)
        broker.stop()
        starting = asyncio.create_task(producer.start())
        await asyncio.sleep(0.1)
        assert not starting.done()
        await asyncio.to_thread(broker.start)
        await starting
        assert (await producer.send_and_wait("t", b"v")).offset == 0
        await producer.close()


@asynchronous
async def test_settings_may_be_a_dict(broker: Broker, topic: str) -> None:
    given = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "acks": "1"}
    async with Producer(bootstrap_servers=given) as producer:
        assert (producer.settings.linger_ms, producer.settings.acks) == (0, 1)
        assert (await producer.send_and_wait(topic, b"v")).offset == 0


def test_two_loops_have_a_producer_each(broker: Broker, topic: str) -> None:
    async def work() -> None:
        async with made(broker) as producer:
            await producer.send_and_wait(topic, b"v", partition=0)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(values(broker, topic, 0)) == 2


# A topic that is made anew


def make_anew(broker: Broker, topic: str, partitions: int = 3) -> None:
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("known", ["by the answer", "before"])
@asynchronous
async def test_records_go_to_partitions_that_there_are_where_a_topic_was_made_anew(
    broker: Broker, topic: str, codec: str, known: str
) -> None:
    """It has fewer of them than before: they do not wait for one that is gone."""
    async with asyncio.timeout(30), made(broker, linger_ms=60_000, compression_type=codec) as it:
        some = [await it.send(topic, b"%d" % one, key=b"%d" % (one % 7)) for one in range(70)]
        some += [await it.send(topic, b"%d" % one, headers={"h": b"x"}) for one in range(70, 80)]
        make_anew(broker, topic, 1)
        if known == "before":
            it._metadata.outdated(topic)
            assert await it.partitions_for(topic) == [0]
        await it.flush()
        places = [await one for one in some]
    assert {place.partition for place in places} == {0}
    read = values(broker, topic, 0)
    assert sorted(read) == sorted(b"%d" % one for one in range(80))
    for key in range(7):  # each key is in its order
        mine = [value for value in read if int(value or b"") < 70 and int(value or b"") % 7 == key]
        assert mine == [b"%d" % one for one in range(key, 70, 7)]
    assert [one.headers for one in broker.read(topic) if one.value == b"75"] == [(("h", b"x"),)]


@asynchronous
async def test_a_record_for_a_partition_that_is_gone_fails_at_once_and_no_other(
    broker: Broker, topic: str
) -> None:
    async with asyncio.timeout(30), made(broker, linger_ms=60_000) as producer:
        here = await producer.send(topic, b"here", partition=0)
        gone = await producer.send(topic, b"gone", partition=2)
        keyed = [await producer.send(topic, b"keyed", key=b"%d" % one) for one in range(9)]
        make_anew(broker, topic, 1)
        await producer.flush()
        with pytest.raises(
            DeliveryError, match="no partition 2 any more, it was made anew"
        ) as error:
            await gone
        assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not error.value.maybe_written
        assert {(await one).partition for one in (here, *keyed)} == {0}
        assert producer._queue.used == 0


@asynchronous
async def test_what_is_sent_to_a_topic_that_was_made_anew_is_there_once_and_in_order(
    broker: Broker, topic: str
) -> None:
    async with made(broker, linger_ms=0, batch_size=100) as producer:
        for number in range(5):
            await producer.send_and_wait(topic, b"old %d" % number, partition=0)
        make_anew(broker, topic)
        some = [await producer.send(topic, b"%d" % one, partition=0) for one in range(200)]
        offsets = [(await one).offset for one in some]
    assert offsets == list(range(200))
    assert values(broker, topic, 0) == [b"%d" % one for one in range(200)]


@asynchronous
async def test_a_transaction_whose_topic_was_made_anew_is_aborted_and_done_again(
    broker: Broker, topic: str
) -> None:
    async with made(broker, transactional_id=topic) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"a", partition=0)
        make_anew(broker, topic)
        delivery = await producer.send(topic, b"b", partition=0)
        with pytest.raises(TransactionError, match="was deleted and made anew") as error:
            await producer.commit_transaction()
        assert error.value.abortable
        assert not error.value.maybe_committed
        with pytest.raises(DeliveryError):
            await delivery
        await producer.abort_transaction()
        async with producer.transaction():
            for one in (b"a", b"b"):
                await producer.send_and_wait(topic, one, partition=0)
    assert values(broker, topic, 0)[:2] == [b"a", b"b"]


@asynchronous
async def test_another_event_loop_is_refused(broker: Broker, topic: str) -> None:
    async with made(broker) as producer:
        await producer.send_and_wait(topic, b"a", partition=0)

        async def elsewhere() -> None:
            for call in (
                lambda: producer.send(topic, b"b", partition=0),
                producer.flush,
                lambda: producer.partitions_for(topic),
                producer.begin_transaction,
                producer.start,
                producer.close,
            ):
                with pytest.raises(RuntimeError, match="belongs to the event loop in which it was"):
                    await call()

        await asyncio.to_thread(asyncio.run, elsewhere())
        await producer.send_and_wait(topic, b"c", partition=0)
    assert values(broker, topic, 0) == [b"a", b"c"]


@asynchronous
async def test_who_closes_second_waits_for_the_first(broker: Broker, topic: str) -> None:
    async with made(broker, linger_ms=0) as producer:
        broker.faults.delay("Produce", 0.3)
        delivery = await producer.send(topic, b"a")
        first, second = (asyncio.create_task(producer.close()) for _ in range(2))
        await asyncio.sleep(0)
        assert not second.done()
        await second
        assert delivery.done()
        await first
