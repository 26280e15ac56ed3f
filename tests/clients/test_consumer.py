"""Our own consumer against Apache Kafka, where it has to be as good a client as any."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.clients.crew import (
    Crew,
    assert_nothing_committed_is_read_again,
    create_topic,
    numbers_read,
    produce,
    settled,
)
from tests.clients.test_migration import OF_KAFKA
from tests.peers.either import WHOSE, either
from tests.peers.kafka import Kafka, unavailable
from tests.waiting import SOON_S, eventually

from kohort import Consumer

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(900)]

PROTOCOLS = ("classic", "consumer")


@pytest.fixture
def kafka() -> Iterator[str]:
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka(OF_KAFKA) as peer:
        yield peer.address


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_of_kafka_grows_and_shrinks(protocol: str, kafka: str, crew: Crew) -> None:
    """Beside a member of librdkafka: one leaves, one is killed; every record is seen."""
    create_topic(kafka, "orders", 6)
    produce(kafka, "orders", range(500))
    members = []
    for kind in (f"kohort-{protocol}", f"confluent-{protocol}", f"kohort-{protocol}"):
        members.append(crew.join(kind, kafka, "orders", "g"))
        settled(members, 6)
    produce(kafka, "orders", range(500, 1000))
    eventually(lambda: len(numbers_read(crew.members)) == 1000, "1,000 records are read")

    members.pop(0).leave()
    settled(members, 6)
    members.append(crew.join(f"kohort-{protocol}", kafka, "orders", "g"))
    settled(members, 6)
    members.pop().kill()
    settled(members, 6)
    produce(kafka, "orders", range(1000, 100_000))
    eventually(lambda: len(numbers_read(crew.members)) == 100_000, "all is read", 3 * SOON_S)

    assert_nothing_committed_is_read_again(crew.members)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_of_kafka_takes_its_place_again(
    protocol: str, kafka: str, crew: Crew
) -> None:
    create_topic(kafka, "orders", 6)
    kind = f"kohort-{protocol}"
    first, second = (crew.join(kind, kafka, "orders", "g", name) for name in ("i-1", "i-2"))
    settled([first, second], 6)
    owned, told = first.owns, len(second.notes("owns"))
    first.leave()
    again = crew.join(kind, kafka, "orders", "g", "i-1")
    eventually(lambda: again.owns == owned, "it has its partitions again")
    assert len(second.notes("owns")) == told


@pytest.mark.parametrize("whose", WHOSE)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_aborted_transactions_nothing_is_read(whose: str, protocol: str) -> None:
    """`read_committed` gives what was committed, in order, also behind an open transaction that
    is committed later; `read_uncommitted` gives everything.
    """
    if whose != "ours" and (reason := unavailable()):
        pytest.skip(reason)
    with either(whose, OF_KAFKA) as bootstrap:
        create_topic(bootstrap, "t", 1)
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
        producer.init_transactions(SOON_S)
        fates = [True, False, False, True, False, True]
        for number, committed in enumerate(fates):
            producer.begin_transaction()
            for part in range(3):
                producer.produce("t", f"{number}-{part}")
            if committed:
                producer.commit_transaction(SOON_S)
            else:
                producer.flush(SOON_S)
                producer.abort_transaction(SOON_S)
        expected = [f"{n}-{part}" for n, kept in enumerate(fates) if kept for part in range(3)]

        assert asyncio.run(values(bootstrap, protocol, "read_committed", 9)) == expected
        assert len(asyncio.run(values(bootstrap, protocol, "read_uncommitted", 18))) == 18


async def values(bootstrap: str, protocol: str, isolation: str, count: int) -> list[str]:
    """The first so many values, and whatever comes within half a second more."""
    found: list[str] = []
    async with Consumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id=f"{protocol}-{isolation}",
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
