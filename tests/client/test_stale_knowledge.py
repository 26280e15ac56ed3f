# SPDX-License-Identifier: Apache-2.0
"""What proves that knowledge is stale makes a client look at once, whoever is told and whatever of.

No age of metadata is waited for here: it is an hour.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.consumer.running import until, within
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient
from kohort.client.consumer import Consumer
from kohort.client.producer import Producer
from kohort.errors import ErrorCode
from kohort.terms import TopicPartition
from kohort.testing import Broker

T0 = TopicPartition("t", 0)
HOUR_MS = 3_600_000
MOST_LOOKS = 30  # a second of a hot loop would be hundreds
CLOSE = "the connection is lost"

LEADERS = [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    CLOSE,
]
IDS = [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID]
GONE = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
COORDINATORS = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, CLOSE]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        broker.create_topic("t", 1)
        broker.produce("t", "0")
        yield broker


Strike = Callable[[], Callable[[], Awaitable[None]]]
"""Has the next request of the API refused. What it returns waits until somebody has looked."""


@asynccontextmanager
async def reading(broker: Broker, protocol: str) -> AsyncIterator[Consumer]:
    often = {"heartbeat_interval_ms": 100} if protocol == "classic" else {}
    async with Consumer(
        "t",
        bootstrap_servers=broker.bootstrap,
        group_id="g",
        group_protocol=protocol,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=HOUR_MS,
        **often,
    ) as consumer:
        await consumer.getone()
        yield consumer


async def fetch(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "consumer") as consumer:
        strike()
        broker.produce("t", "1")
        assert (await consumer.getone()).value == b"1"


async def list_offsets(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "consumer") as consumer:
        strike()
        consumer.seek(T0, "earliest")
        assert (await consumer.getone()).value == b"0"


async def commit(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "consumer") as consumer:
        looked = strike()
        await consumer.commit()
        await looked()


async def offset_fetch(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "consumer") as consumer:
        looked = strike()
        await consumer.committed(T0)
        await looked()


async def heartbeat(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "consumer"):
        await strike()()


async def classic_heartbeat(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "classic"):
        await strike()()


async def join(broker: Broker, strike: Strike) -> None:
    strike()
    async with reading(broker, "classic"):
        pass


async def produce(broker: Broker, strike: Strike) -> None:
    async with Producer(
        bootstrap_servers=broker.bootstrap, metadata_max_age_ms=HOUR_MS
    ) as producer:
        await (await producer.send("t", b"1"))
        strike()
        await (await producer.send("t", b"2"))


async def transact(broker: Broker, strike: Strike) -> None:
    mine = Producer(bootstrap_servers=broker.bootstrap, transactional_id="x")
    async with mine as producer, reading(broker, "classic") as consumer:
        strike()
        async with producer.transaction():
            await producer.send("t", b"1")
            await producer.send_offsets_to_transaction({T0: 1}, consumer.group_metadata())


async def begin_transactions(broker: Broker, strike: Strike) -> None:
    strike()
    async with Producer(bootstrap_servers=broker.bootstrap, transactional_id="x"):
        pass


async def ask_offsets(broker: Broker, strike: Strike) -> None:
    async with AdminClient(broker.bootstrap) as admin:
        await admin.list_offsets({T0: "latest"})
        strike()
        (await admin.list_offsets({T0: "latest"})).all()


async def describe(broker: Broker, strike: Strike) -> None:
    async with reading(broker, "consumer"), AdminClient(broker.bootstrap) as admin:
        strike()
        (await admin.describe_groups(["g"])).all()


FOLLOWS_FROM: list[tuple[Callable[..., Awaitable[None]], str, list[Any], str]] = [
    (fetch, "Fetch", [*LEADERS, *IDS], "Metadata"),
    (list_offsets, "ListOffsets", LEADERS, "Metadata"),
    (commit, "OffsetCommit", GONE, "Metadata"),
    (commit, "OffsetCommit", COORDINATORS, "FindCoordinator"),
    (offset_fetch, "OffsetFetch", GONE[:1], "Metadata"),
    (offset_fetch, "OffsetFetch", COORDINATORS, "FindCoordinator"),
    (heartbeat, "ConsumerGroupHeartbeat", COORDINATORS, "FindCoordinator"),
    (classic_heartbeat, "Heartbeat", COORDINATORS, "FindCoordinator"),
    (join, "JoinGroup", COORDINATORS, "FindCoordinator"),
    (join, "SyncGroup", COORDINATORS, "FindCoordinator"),
    (produce, "Produce", [*LEADERS, *IDS], "Metadata"),
    (begin_transactions, "InitProducerId", COORDINATORS, "FindCoordinator"),
    (transact, "TxnOffsetCommit", COORDINATORS, "FindCoordinator"),
    (transact, "EndTxn", COORDINATORS, "FindCoordinator"),
    (ask_offsets, "ListOffsets", LEADERS[1:], "Metadata"),  # it has just heard that there is one
    (describe, "ConsumerGroupDescribe", COORDINATORS, "FindCoordinator"),
]
ROWS = [
    pytest.param(play, api, code, look, id=f"{play.__name__}-{api}-{getattr(code, 'name', 'lost')}")
    for play, api, codes, look in FOLLOWS_FROM
    for code in codes
]


@pytest.mark.parametrize(("play", "api", "code", "look"), ROWS)
@asynchronous
async def test_stale_knowledge_is_looked_at_again(
    broker: Broker, play: Callable[..., Awaitable[None]], api: str, code: Any, look: str
) -> None:
    """And nobody asks again and again: what is known anew is true."""
    counters: list[Any] = []

    async def looked() -> None:
        await until(lambda: counters[0].hits)

    def strike() -> Callable[[], Awaitable[None]]:
        counters.append(broker.faults.delay(look, 0.0, times=None))
        faults = broker.faults
        counters.append(faults.close(api) if code is CLOSE else faults.error(api, code))
        return looked

    async with within():
        await play(broker, strike)
        looks, refusal = counters
        assert refusal.hits == 1
        assert looks.hits
        assert looks.hits < MOST_LOOKS
