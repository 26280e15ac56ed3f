# SPDX-License-Identifier: Apache-2.0
"""The producer against Apache Kafka: the same promises, kept by the broker they were made for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.client.scripted import asynchronous
from tests.peers.kafka import Kafka, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.client.consumer import Consumer
from kohort.client.producer import DeliveryError, Producer, TransactionError
from kohort.terms import TopicPartition
from kohort.wire.compression import Compression

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": 4, "transaction.state.log.num.partitions": 4}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka(SETTINGS, heap="512M") as broker:
        yield broker


def made(kafka: Kafka, **settings: Any) -> Producer:
    return Producer(bootstrap_servers=kafka.address, **settings)


async def make(kafka: Kafka, name: str, partitions: int = 2, **configs: str) -> str:
    async with AdminClient(kafka.address) as admin:
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        (await admin.create_topics([NewTopic(name, partitions, configs=dotted)])).all()
    return name


@contextlib.asynccontextmanager
async def reader_of(kafka: Kafka, topic: str, **settings: Any) -> AsyncIterator[Consumer]:
    given = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", **settings}
    async with Consumer(bootstrap_servers=kafka.address, **given) as reader:
        await reader.assign([TopicPartition(topic, index) for index in range(2)])
        yield reader


async def read(kafka: Kafka, topic: str, count: int) -> list[bytes]:
    async with asyncio.timeout(60), reader_of(kafka, topic) as reader:
        return [(await reader.getone()).value for _ in range(count)]


@pytest.mark.parametrize("codec", Compression)
@asynchronous
async def test_every_codec_is_read_back(kafka: Kafka, codec: Compression) -> None:
    name = codec.name.lower()
    topic = await make(kafka, f"codec-{name}")
    async with made(kafka, compression_type=name) as producer:
        for number in range(2000):
            await producer.send(topic, b"%d" % number, partition=0)
        last = await producer.send_and_wait(topic, b"last", partition=0)
    assert last.offset == 2000
    assert await read(kafka, topic, 2001) == [*(b"%d" % one for one in range(2000)), b"last"]


@asynchronous
async def test_a_batch_that_is_too_large_is_sent_in_parts(kafka: Kafka) -> None:
    topic = await make(kafka, "small", max_message_bytes="3000")
    async with made(kafka, linger_ms=100) as producer:
        some = [
            await producer.send(topic, bytes([one]) * 700, partition=0, key=None)
            for one in range(20)
        ]
        some.append(await producer.send(topic, bytes(5000), partition=0))
        found = await asyncio.gather(*some, return_exceptions=True)
    assert isinstance(found.pop(), DeliveryError)
    assert [one.offset for one in found] == list(range(20))  # type: ignore[union-attr]
    assert [one[0] for one in await read(kafka, topic, 20)] == list(range(20))


@pytest.mark.parametrize("acks", [0, 1])
@asynchronous
async def test_other_acks(kafka: Kafka, acks: int) -> None:
    topic = await make(kafka, f"acks-{acks}")
    async with made(kafka, acks=acks) as producer:
        for number in range(10):
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
    assert await read(kafka, topic, 10) == [b"%d" % number for number in range(10)]


async def transact(kafka: Kafka, topic: str, *, is_v2: bool) -> None:
    """Commits, aborts, offsets and a successor."""
    place = TopicPartition(topic, 0)
    async with made(kafka, transactional_id=topic) as producer:
        for number in range(3):
            async with producer.transaction():
                for partition in (0, 1):
                    await producer.send(topic, b"%d" % number, partition=partition)
                await producer.send_offsets_to_transaction({place: number + 1}, f"g-{topic}")
            with contextlib.suppress(KeyError):
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"aborted", partition=0)
                    await producer.send(topic, b"aborted", partition=1)
                    await producer.send_offsets_to_transaction({place: 99}, f"g-{topic}")
                    raise KeyError
        assert producer._coordinating is not None
        assert producer._coordinating.transactions.is_v2 is is_v2
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"of the former", partition=0)
        async with made(kafka, transactional_id=topic) as successor:
            async with successor.transaction():
                await successor.send(topic, b"last", partition=0)
            with pytest.raises(TransactionError, match="has taken over its transactional id"):
                await producer.commit_transaction()
    found = sorted(await read(kafka, topic, 7))
    assert found == sorted([b"0", b"1", b"2"] * 2 + [b"last"])
    async with Consumer(bootstrap_servers=kafka.address, group_id=f"g-{topic}") as group:
        told = (await group.committed(place))[place]
    assert told is not None
    assert told.offset == 3


@asynchronous
async def test_transactions(kafka: Kafka) -> None:
    await transact(kafka, await make(kafka, "transactions-v2"), is_v2=True)


@asynchronous
async def test_from_topic_to_topic_exactly_once(kafka: Kafka) -> None:
    source, target = await make(kafka, "source"), await make(kafka, "target")
    async with made(kafka) as producer:
        for number in range(100):
            await producer.send(source, b"%d" % number)
    settings = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "group_id": "copy"}
    async with (
        asyncio.timeout(60),
        Consumer(source, bootstrap_servers=kafka.address, **settings) as consumer,
        made(kafka, transactional_id="copy") as producer,
    ):
        copied = 0
        while copied < 100:
            batch = await consumer.getmany(timeout_ms=1000, max_records=30)
            async with producer.transaction():
                for place, records in batch.items():
                    for record in records:
                        await producer.send(target, record.value)
                    ends = {place: records[-1].offset + 1}
                    await producer.send_offsets_to_transaction(ends, consumer.group_metadata())
                    copied += len(records)
        places = list(consumer.assignment())
        assert sum(one.offset for one in (await consumer.committed(*places)).values() if one) == 100
    found = await read(kafka, target, 100)
    assert sorted(found, key=int) == [b"%d" % number for number in range(100)]


@asynchronous
async def test_a_restart_loses_and_doubles_nothing(kafka: Kafka) -> None:
    topic = await make(kafka, "restarted")
    async with made(kafka, batch_size=300) as producer:
        for number in range(3000):
            await producer.send(topic, b"%d" % number, partition=0)
            if number == 1000:
                restarting = asyncio.create_task(asyncio.to_thread(kafka.restart))
            if number % 10 == 0:
                await asyncio.sleep(0.001)
        await restarting
        await producer.flush()
        assert (await producer.send_and_wait(topic, b"last", partition=0)).offset == 3000
    found = await read(kafka, topic, 3001)
    assert found[:-1] == [b"%d" % number for number in range(3000)]


@asynchronous
async def test_transactions_of_the_first_version(kafka: Kafka) -> None:
    """The last test of this broker: the feature stays where it is."""
    done = await asyncio.to_thread(
        kafka.tool,
        "org.apache.kafka.tools.FeatureCommand",
        *("downgrade", "--feature", "transaction.version=1"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    await transact(kafka, await make(kafka, "transactions-v1"), is_v2=False)
