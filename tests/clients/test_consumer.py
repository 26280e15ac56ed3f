# SPDX-License-Identifier: Apache-2.0
"""Our own consumer beside others, above all against Apache Kafka."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.clients.conftest import SETTINGS
from tests.clients.member_processes import (
    Crew,
    assert_nothing_committed_is_read_again,
    create_topic,
    numbers_read,
    produce,
    settled,
)
from tests.clients.test_migration import OF_KAFKA
from tests.peers.kafka import Kafka, unavailable
from tests.waiting import SOON_S, eventually

from kohort import Consumer
from kohort.client.admin import AdminClient, CommittedOffset, NewTopic
from kohort.terms import TopicPartition
from kohort.testing import Broker

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

PROTOCOLS = ("classic", "consumer")


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    """One for all tests here: each has topics and groups of its own."""
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka(OF_KAFKA) as peer:
        yield peer.address


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_of_kafka_grows_and_shrinks(protocol: str, kafka: str, crew: Crew) -> None:
    """Beside a member of librdkafka: one leaves, one is killed; every record is seen."""
    topic = f"orders-{protocol}"
    create_topic(kafka, topic, 6)
    produce(kafka, topic, range(500))
    members = []
    for kind in (f"kohort-{protocol}", f"confluent-{protocol}", f"kohort-{protocol}"):
        members.append(crew.join(kind, kafka, topic, topic))
        settled(members, 6)
    produce(kafka, topic, range(500, 1000))
    eventually(lambda: len(numbers_read(crew.members)) == 1000, "1,000 records are read")

    members.pop(0).leave()
    settled(members, 6)
    members.append(crew.join(f"kohort-{protocol}", kafka, topic, topic))
    settled(members, 6)
    members.pop().kill()
    settled(members, 6)
    produce(kafka, topic, range(1000, 100_000))
    eventually(lambda: len(numbers_read(crew.members)) == 100_000, "all is read", 3 * SOON_S)

    assert_nothing_committed_is_read_again(crew.members)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_of_kafka_takes_its_place_again(
    protocol: str, kafka: str, crew: Crew
) -> None:
    topic, kind = f"static-{protocol}", f"kohort-{protocol}"
    create_topic(kafka, topic, 6)
    first, second = (crew.join(kind, kafka, topic, topic, name) for name in ("i-1", "i-2"))
    settled([first, second], 6)
    owned, told = first.owns, len(second.notes("owns"))
    first.leave()
    again = crew.join(kind, kafka, topic, topic, "i-1")
    eventually(lambda: again.owns == owned, "it has its partitions again")
    assert len(second.notes("owns")) == told


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_aborted_transactions_of_kafka_nothing_is_read(protocol: str, kafka: str) -> None:
    nothing_aborted_is_read(kafka, protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_aborted_transactions_nothing_is_read(protocol: str) -> None:
    with Broker(SETTINGS, process=True) as broker:
        nothing_aborted_is_read(broker.bootstrap, protocol)


def nothing_aborted_is_read(bootstrap: str, protocol: str) -> None:
    """`read_committed` gives what was committed, in order, and nothing of what was aborted between;
    `read_uncommitted` gives everything.
    """
    topic = f"fates-{protocol}"
    create_topic(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SOON_S)
    fates = [True, False, False, True, False, True]
    for number, committed in enumerate(fates):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(topic, f"{number}-{part}")
        if committed:
            producer.commit_transaction(SOON_S)
        else:
            producer.flush(SOON_S)
            producer.abort_transaction(SOON_S)
    expected = [f"{n}-{part}" for n, kept in enumerate(fates) if kept for part in range(3)]

    assert asyncio.run(values(bootstrap, topic, protocol, "read_committed", 9)) == expected
    assert len(asyncio.run(values(bootstrap, topic, protocol, "read_uncommitted", 18))) == 18


async def values(
    bootstrap: str, topic: str, protocol: str, isolation: str, count: int
) -> list[str]:
    """The first so many values, and whatever comes within half a second more."""
    found: list[str] = []
    async with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-{isolation}",
        group_protocol=protocol,
        auto_offset_reset="earliest",
        isolation_level=isolation,
    ) as consumer:
        async with asyncio.timeout(SOON_S):
            while len(found) < count:
                some = await consumer.getmany(timeout_ms=500)
                found += [one.value.decode() for ones in some.values() for one in ones]
        some = await consumer.getmany(timeout_ms=500)
        return found + [one.value.decode() for ones in some.values() for one in ones]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_of_kafka_that_is_made_anew_is_read_from_its_begin(
    protocol: str, kafka: str
) -> None:
    """It has more records than the former one: nobody would be told of an offset out of range."""
    asyncio.run(topic_recreated(kafka, f"anew-{protocol}", protocol))


async def topic_recreated(bootstrap: str, topic: str, protocol: str) -> None:
    settings = {"group_protocol": protocol, "metadata_max_age_ms": 1000}
    async with (
        AdminClient(bootstrap) as admin,
        Consumer(topic, bootstrap_servers=bootstrap, group_id=topic, **settings) as consumer,
        asyncio.timeout(3 * SOON_S),
    ):
        await asyncio.to_thread(create_topic, bootstrap, topic, 1)
        place = TopicPartition(topic, 0)
        while place not in consumer.assignment():
            await consumer.getmany(timeout_ms=100)
        await consumer.position(place)
        await asyncio.to_thread(produce, bootstrap, topic, range(100))
        assert await read(consumer, 100) == list(range(100))
        await consumer.commit()
        (await admin.delete_topics([topic])).all()
        while (await admin.create_topics([NewTopic(topic, 1, 1)])).failed:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # the former one may still be about to go
        await asyncio.to_thread(produce, bootstrap, topic, range(1000, 1300))
        assert await read(consumer, 300) == list(range(1000, 1300))
        await consumer.commit()
        assert await consumer.committed(place) == {place: CommittedOffset(300, 0, "")}


async def read(consumer: Consumer, count: int) -> list[int]:
    """The next so many numbers."""
    found: list[int] = []
    while len(found) < count:
        some = await consumer.getmany(timeout_ms=500)
        found += [int(one.value) for ones in some.values() for one in ones]
    return found
