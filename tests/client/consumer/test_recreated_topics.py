# SPDX-License-Identifier: Apache-2.0
"""A topic is deleted and made anew under a consumer: it is another topic, by both protocols.

Nothing of the new one is skipped, and no offset of the former becomes one of it.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.consumer.running import PROTOCOLS, Worker, consumer, until, within
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient, NewTopic
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition
from kohort.testing import Broker

T0 = TopicPartition("t", 0)
both = pytest.mark.parametrize("protocol", PROTOCOLS)
QUICK = {"metadata_max_age_ms": 300, "fetch_max_wait_ms": 50}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        yield broker


def values(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


async def make_anew(broker: Broker, *, partitions: int = 1, records: int = 0) -> list[str]:
    """Delete the topic and make another one of its name, with records, as fast as can be."""
    new = values("new", records)
    async with AdminClient(broker.bootstrap) as admin:
        (await admin.delete_topics(["t"])).all()
        (await admin.create_topics([NewTopic("t", partitions, 1)])).all()
        for index in range(partitions):
            some = new[index::partitions]
            if some:
                broker.produce("t", *some, partition=index)
    return new


def committed(broker: Broker) -> dict[int, int]:
    return {place.partition: one for place, one in broker.groups["g"].committed().items()}


@both
@pytest.mark.parametrize("policy", ["earliest", "latest"])
@pytest.mark.parametrize("more", [4, 40])
@asynchronous
async def test_all_of_the_new_topic_is_read(
    broker: Broker, protocol: str, policy: str, more: int
) -> None:
    """Whether its log has the offset that the former one was read to, or not."""
    broker.create_topic("t", 2)
    settings: dict[str, Any] = {"group_protocol": protocol, "auto_offset_reset": policy, **QUICK}
    reader = consumer(broker, "t", auto_commit_interval_ms=50, **settings)
    async with within(), Worker(reader) as worker:
        await until(lambda: len(reader.assignment()) == 2)
        for place in sorted(reader.assignment()):
            await reader.position(place)
        old = values("old", 20)
        for index in range(2):
            broker.produce("t", *old[index::2], partition=index)
        await until(lambda: len(worker.seen) == 20)
        await until(lambda: committed(broker) == {0: 10, 1: 10})
        new = await make_anew(broker, partitions=2, records=more)
        await until(lambda: set(new) <= set(worker.seen))
        assert sorted(worker.seen) == sorted(old + new)
        await until(lambda: committed(broker) == {0: more // 2, 1: more // 2})


@both
@asynchronous
async def test_who_was_away_meanwhile_reads_all_of_the_new_topic(
    broker: Broker, protocol: str
) -> None:
    """The broker forgets the offsets of a topic with the topic."""
    broker.create_topic("t", 1)
    broker.produce("t", *values("old", 5))
    async with within():
        async with Worker(consumer(broker, "t", group_protocol=protocol)) as worker:
            await until(lambda: len(worker.seen) == 5)
        assert committed(broker) == {0: 5}
        new = await make_anew(broker, records=8)
        assert committed(broker) == {}
        async with Worker(consumer(broker, "t", group_protocol=protocol)) as worker:
            await until(lambda: len(worker.seen) >= 8)
            assert worker.seen == new


@both
@asynchronous
async def test_no_offset_of_the_former_topic_is_committed_in_the_new_one(
    broker: Broker, protocol: str
) -> None:
    """The application works on records while their topic is deleted, and then commits."""
    broker.create_topic("t", 1)
    broker.produce("t", *values("old", 5))
    settings: dict[str, Any] = {"group_protocol": protocol, "enable_auto_commit": False, **QUICK}
    async with within(), consumer(broker, "t", **settings) as reader:
        batch = await reader.getmany(timeout_ms=20_000)
        assert [one.offset for one in batch[T0]] == [0, 1, 2, 3, 4]
        new = await make_anew(broker, records=8)
        with pytest.raises(ApiError) as refusal:  # nobody here knows of the new topic yet
            await reader.commit({T0: 5})
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert committed(broker) == {}
        seen: list[str] = []
        while len(seen) < 8:
            for records in (await reader.getmany(timeout_ms=100)).values():
                seen += [one.value.decode() for one in records]
        assert seen == new
        await reader.commit()
        assert committed(broker) == {0: 8}


@asynchronous
async def test_what_is_in_work_when_it_is_noticed_cannot_be_committed(broker: Broker) -> None:
    broker.create_topic("t", 1)
    broker.produce("t", *values("old", 5))
    settings: dict[str, Any] = {"group_protocol": "classic", "enable_auto_commit": False, **QUICK}
    async with within(), consumer(broker, "t", **settings) as reader:
        await reader.getmany(timeout_ms=20_000)
        await make_anew(broker, records=8)
        await until(lambda: reader._ownership.void_in_work)
        for offsets in (None, {T0: 5}):
            with pytest.raises(ApiError, match="deleted and made anew") as refusal:
                await reader.commit(offsets)
            assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert committed(broker) == {}


@both
@asynchronous
async def test_a_group_shares_the_new_topic_and_reads_each_record_once(
    broker: Broker, protocol: str
) -> None:
    broker.create_topic("t", 4)
    settings: dict[str, Any] = {"group_protocol": protocol, "auto_offset_reset": "latest", **QUICK}
    readers = [consumer(broker, "t", **settings) for _ in range(2)]
    async with within(), Worker(readers[0]) as first, Worker(readers[1]) as second:
        await until(lambda: all(len(one.assignment()) == 2 for one in readers))
        for reader in readers:
            for place in sorted(reader.assignment()):
                await reader.position(place)
        for index in range(4):
            broker.produce("t", *values(f"old{index}-", 5), partition=index)
        await until(lambda: len(first.seen + second.seen) == 20)
        new = await make_anew(broker, partitions=4, records=40)
        await until(lambda: set(new) <= set(first.seen + second.seen))
        await asyncio.sleep(0)
        assert len(first.seen + second.seen) == 60
