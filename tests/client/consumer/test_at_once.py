# SPDX-License-Identifier: Apache-2.0
"""What a consumer need not wait an interval, or a rebalance, or for ever for."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
from tests.client.consumer.running import RebalanceRecorder, consumer, until, within
from tests.client.scripted import asynchronous

from kohort.client.consumer import Assignor, Consumer, GroupToAssign
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition
from kohort.testing import Broker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
RARELY = {
    "group.consumer.session.timeout.ms": 120_000,
    "group.consumer.max.session.timeout.ms": 120_000,
    "group.consumer.heartbeat.interval.ms": 60_000,
    "group.consumer.max.heartbeat.interval.ms": 60_000,
}


class ToTheFirst(Assignor):
    """All of it to one member."""

    name = "to-the-first"

    def assign(self, group: GroupToAssign) -> dict[str, Collection[TopicPartition]]:
        return {min(group.members): [one for t in group.topics for one in group.partitions_of(t)]}


def modern(broker: Broker, *topics: str, **more: Any) -> Consumer:
    return consumer(broker, *topics, group_protocol="consumer", **more)


@asynchronous
async def test_what_a_member_computes_reaches_it_without_an_interval() -> None:
    """Its heartbeats come once a minute, which is longer than this test may take."""
    with Broker(RARELY) as broker:
        broker.create_topic("t", 2)
        async with within(), modern(broker, "t", assignors=[ToTheFirst()]) as it:
            await until(lambda: it.assignment() == {T0, T1})


@asynchronous
async def test_what_a_pattern_matches_comes_without_an_interval() -> None:
    with Broker(RARELY) as broker:
        broker.create_topic("t", 2)
        broker.create_topic("u", 1)
        async with within(), modern(broker, pattern="t.*") as it:
            await until(lambda: it.assignment() == {T0, T1})
            it.subscribe(pattern="u.*")
            await until(lambda: it.assignment() == {("u", 0)})
            it.subscribe("t")
            await until(lambda: it.assignment() == {T0, T1})


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@asynchronous
async def test_what_is_paused_stays_paused_over_a_rebalance(strategy: str) -> None:
    settings: Any = {"group_protocol": "classic", "partition_assignment_strategy": strategy}
    with Broker() as broker:
        broker.create_topic("t", 2)
        for index in (0, 1):
            broker.produce("t", "before", partition=index)
        told = RebalanceRecorder()
        first, second = (consumer(broker, "t", listener=one, **settings) for one in (told, None))
        async with within(), first:
            assert {(await first.getone()).partition for _ in (0, 1)} == {0, 1}
            first.pause(T0, T1)
            position = await first.position(T0)
            async with second:
                waiting = asyncio.create_task(first.getmany(timeout_ms=30_000))
                await until(lambda: len(second.assignment()) == 1)
                (mine,) = await _settled(first)
                assert first.paused() == {mine}
                for index in (0, 1):
                    broker.produce("t", "after", partition=index)
                assert (await second.getone()).value == b"after"
                assert not waiting.done()
                assert await first.position(mine) == position
                first.resume(mine)
                ((partition, (record,)),) = (await waiting).items()
                assert (partition, record.value) == (mine, b"after")


async def _settled(it: Consumer) -> frozenset[TopicPartition]:
    await until(lambda: len(it.assignment()) == 1)
    return it.assignment()


@pytest.mark.parametrize("ask", ["getone", "getmany", "anext"])
@asynchronous
async def test_wait_for_may_follow_a_bare_call(ask: str) -> None:
    """Below Python 3.12 `asyncio.wait_for` runs the call in a task of its own."""
    with Broker() as broker:
        broker.create_topic("t", 1)
        broker.produce("t", *map(str, range(10)))
        async with within(), consumer(broker, "t") as it:
            calls = {
                "getone": it.getone,
                "getmany": lambda: it.getmany(timeout_ms=1000, max_records=1),
                "anext": lambda: anext(it),
            }
            assert (await it.getone()).offset == 0
            for _ in range(3):
                await asyncio.wait_for(calls[ask](), 20)
            assert (await it.getone()).offset == 4
            await it.commit()
        assert broker.groups["g"].committed() == {T0: 5}


@asynchronous
async def test_an_instance_id_of_somebody_else_becomes_an_error() -> None:
    """The other one lives, so that waiting helps nobody."""
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        broker.create_topic("t", 1)
        broker.produce("t", "0")
        settings: Any = {"group_instance_id": "i", "group_consumer_session_timeout_ms": 300}
        async with within(), modern(broker, "t", **settings) as first:
            await first.getone()
            async with modern(broker, "t", **settings) as second:
                with pytest.raises(
                    ApiError, match="Another member has the group_instance_id i"
                ) as (caught):
                    await second.getone()
                assert caught.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
            broker.produce("t", "1")
            assert (await first.getone()).value == b"1"
