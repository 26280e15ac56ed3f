# SPDX-License-Identifier: Apache-2.0
"""A consumer hands out a record only while it has reason to believe that it owns the partition.

Heartbeats are rare here, so that something else has to tell.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.client.consumer.running import PROTOCOLS, RebalanceRecorder, until, within
from tests.client.scripted import asynchronous

from kohort.client.consumer import Consumer
from kohort.client.producer import Producer
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.terms import TopicPartition
from kohort.testing import Broker

T0 = TopicPartition("t", 0)
RARELY_MS = 60_000
both = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {
        "group.consumer.session.timeout.ms": 2 * RARELY_MS,
        "group.consumer.max.session.timeout.ms": 2 * RARELY_MS,
        "group.consumer.heartbeat.interval.ms": RARELY_MS,
        "group.consumer.max.heartbeat.interval.ms": RARELY_MS,
        "group.min.session.timeout.ms": 1,
    }
    with Broker(settings) as broker:
        broker.create_topic("t", 1)
        broker.produce("t", *map(str, range(1000)))
        yield broker


def reader(broker: Broker, protocol: str, **settings: Any) -> Consumer:
    rarely: dict[str, Any] = {}
    if protocol == "classic":
        rarely = {"heartbeat_interval_ms": RARELY_MS, "session_timeout_ms": 2 * RARELY_MS}
    return Consumer(
        "t",
        bootstrap_servers=broker.bootstrap,
        group_id="g",
        group_protocol=protocol,
        auto_offset_reset="earliest",
        **{"enable_auto_commit": False, **rarely, **settings},
    )


async def commit(it: Consumer, _broker: Broker) -> None:
    await it.commit()


async def commit_an_offset(it: Consumer, _broker: Broker) -> None:
    await it.commit({T0: 1})


async def commit_nowait(it: Consumer, _broker: Broker) -> None:
    await it.commit_nowait()


async def read_on(it: Consumer, _broker: Broker) -> None:
    """There is something to commit by itself."""
    await it.getone()


async def look(it: Consumer, _broker: Broker) -> None:
    await it.committed(T0)


async def send(it: Consumer, broker: Broker) -> None:
    mine = Producer(bootstrap_servers=broker.bootstrap, transactional_id="x")
    async with mine as producer, producer.transaction():
        await producer.send_offsets_to_transaction({T0: 1}, it.group_metadata())


Ask = Callable[[Consumer, Broker], Awaitable[None]]


@both
@pytest.mark.parametrize("ask", [commit, commit_an_offset, commit_nowait, read_on, look, send])
@asynchronous
async def test_whoever_asks_in_its_name_is_the_first_to_tell(
    broker: Broker, protocol: str, ask: Ask
) -> None:
    """The records that were ready at hand are not handed out any more."""
    if ask is look and protocol == "classic":
        pytest.skip("a classic member does not say who it is when it looks at offsets")
    told = RebalanceRecorder()
    settings: dict[str, Any] = {"listener": told}
    if ask is read_on:
        settings |= {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
    async with within(), reader(broker, protocol, **settings) as it:
        assert (await it.getone()).offset == 0
        broker.groups["g"].remove_members()
        with contextlib.suppress(KohortError):
            await ask(it, broker)
        await until(lambda: ("lost", [0]) in told.events)
        begins = (broker.groups["g"].committed() or {T0: 0})[T0]
        found = (await it.getone()).offset
        assert found == begins or ask is read_on  # from where others would begin
        assert told.events == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]


@both
@asynchronous
async def test_what_is_ready_at_hand_is_not_handed_out_after_a_refusal(
    broker: Broker, protocol: str
) -> None:
    """Not one record, though 500 of them are lined up and nobody else has had a turn."""
    async with within(), reader(broker, protocol) as it:
        for offset in range(10):
            assert (await it.getone()).offset == offset
        broker.groups["g"].remove_members()
        with pytest.raises(ApiError) as caught:
            await it.commit()
        assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
        assert (await it.getone()).offset == 0
        for offset in range(1, 10):
            assert (await it.getone()).offset == offset


@both
@asynchronous
async def test_a_farewell_whose_commit_is_refused_is_a_loss(broker: Broker, protocol: str) -> None:
    told = RebalanceRecorder()
    it = reader(broker, protocol, listener=told, enable_auto_commit=True)
    async with within(), it:
        await it.getone()
        broker.groups["g"].remove_members()
    assert told.events[-1] == ("lost", [0])


SILENT_MS = 500
OFTEN = {"group.consumer.heartbeat.interval.ms": 100, "group.min.session.timeout.ms": 1}


@both
@asynchronous
async def test_silence_for_longer_than_a_session_is_an_answer(protocol: str) -> None:
    """The broker is alive and gives records; only the coordinator says nothing."""
    given: dict[str, Any] = {"group_consumer_session_timeout_ms": SILENT_MS}
    if protocol == "classic":
        given = {"heartbeat_interval_ms": 100, "session_timeout_ms": SILENT_MS}
    told = RebalanceRecorder()
    given["request_timeout_ms"] = 1000  # the join that follows is dropped, too
    with Broker(OFTEN) as broker:
        broker.create_topic("t", 1)
        broker.produce("t", *map(str, range(1000)))
        async with within(), reader(broker, protocol, listener=told, **given) as it:
            assert (await it.getone()).offset == 0
            await it.commit()
            api = "Heartbeat" if protocol == "classic" else "ConsumerGroupHeartbeat"
            broker.faults.drop(api, times=None)
            broker.faults.error("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
            await until(lambda: ("lost", [0]) in told.events)
            assert it.assignment() == frozenset()
            assert await it.getmany() == {}
            broker.faults.clear()
            assert (await it.getone()).offset == 1
            assert told.events == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]


@both
@asynchronous
async def test_who_was_frozen_for_a_session_hands_out_nothing_when_it_wakes(protocol: str) -> None:
    """Before any timer or any answer has had its turn."""
    given: dict[str, Any] = {"group_consumer_session_timeout_ms": SILENT_MS}
    if protocol == "classic":
        given = {"heartbeat_interval_ms": 100, "session_timeout_ms": SILENT_MS}
    with Broker(OFTEN) as broker:
        broker.create_topic("t", 1)
        broker.produce("t", *map(str, range(1000)))
        async with within(), reader(broker, protocol, **given) as it:
            for offset in range(5):
                assert (await it.getone()).offset == offset
            member = it._group._member
            assert member is not None
            silent_at = member.protocol.machine.silent_at()
            assert silent_at is not None
            time_left = silent_at / 1000 - asyncio.get_running_loop().time()
            time.sleep(time_left + 0.1)  # noqa: ASYNC251  (the whole loop stands still)
            assert (await it.getone()).offset == 0
