# SPDX-License-Identifier: Apache-2.0
"""Appending to partitions: where a key goes, who is asked, and what is never sent twice."""

import pytest
from tests.client.network.test_connection import soon
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.accumulator.partitioning import partition_of
from kohort.client.admin import TopicPartition
from kohort.client.topic_writer import append
from kohort.errors import ErrorCode
from kohort.wire.batch import build, entries
from kohort.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # of Apache Kafka's own tests of its client
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_java_puts_it(key, hashed):
    for count in (1, 2, 3, 50, 1000):
        assert partition_of(key, count) == (hashed & 0x7FFFFFFF) % count


def taken(asked, codes=None):
    """An honest leader: it tells the offset 100 + partition."""
    codes = codes or {}
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(
                        index=one.index,
                        error_code=codes.get(one.index, 0),
                        base_offset=-1 if one.index in codes else 100 + one.index,
                    )
                    for one in topic.partition_data
                ],
            )
            for topic in asked.request.topic_data
        ]
    )


def refusing(**codes):
    return lambda asked: taken(asked, {int(name[1:]): code for name, code in codes.items()})


def sent(asked):
    """What a request carries: partition -> keys and values."""
    return {
        one.index: [(key, value) for _, _, key, value in entries(one.records)]
        for topic in asked.request.topic_data
        for one in topic.partition_data
    }


async def outcomes(scripted, *partitions):
    """What becomes of a record for each of these partitions."""
    places = [TopicPartition("orders", index) for index in partitions]
    batches = {place: build([(None, b"v")], 1000, base_sequence=-1) for place in places}
    cluster = scripted.cluster()
    try:
        return await append(cluster, batches, soon())
    finally:
        await cluster.close()


@asynchronous
async def test_each_leader_is_asked_once_for_all_that_it_leads():
    async with ScriptedCluster(2, {ProduceRequest: taken}) as scripted:
        scripted.topics = {"orders": [0, 1, 0]}
        found = await outcomes(scripted, 2, 1, 0)
    assert found.all() == {TopicPartition("orders", one): 100 + one for one in (2, 1, 0)}
    asked = {one.node: sent(one) for one in scripted.sent("Produce")}
    assert asked == {0: {2: [(None, b"v")], 0: [(None, b"v")]}, 1: {1: [(None, b"v")]}}
    assert {one.request.acks for one in scripted.sent("Produce")} == {-1}
    assert {one.version for one in scripted.sent("Produce")} == {12}


@asynchronous
async def test_one_partition_that_refuses_is_alone():
    async with ScriptedCluster(answers={ProduceRequest: refusing(p1=10)}) as scripted:
        scripted.topics = {"orders": [0, 0]}
        found = await outcomes(scripted, 0, 1)
    assert found[TopicPartition("orders", 0)] == 100
    assert found.failed[TopicPartition("orders", 1)].code is ErrorCode.MESSAGE_TOO_LARGE


@asynchronous
async def test_a_leader_that_has_moved_is_looked_up_anew():
    async with ScriptedCluster(2, {ProduceRequest: in_turn(refusing(p0=6), taken)}) as scripted:
        scripted.topics = {"orders": [0]}
        found = await outcomes(scripted, 0)
    assert found.all() == {TopicPartition("orders", 0): 100}
    assert len(scripted.sent("Produce")) == 2


@asynchronous
async def test_what_may_have_arrived_is_not_sent_again():
    async with ScriptedCluster(answers={ProduceRequest: lambda _: CLOSE}) as scripted:
        scripted.topics = {"orders": [0]}
        found = await outcomes(scripted, 0)
    (error,) = found.failed.values()
    assert error.code is ErrorCode.NETWORK_EXCEPTION
    assert len(scripted.sent("Produce")) == 1


@asynchronous
async def test_what_a_leader_has_appended_before_it_went_away_is_not_sent_again():
    def appended(asked):
        answer = refusing(p0=6)(asked)
        answer.responses[0].partition_responses[0].base_offset = 70
        return answer

    async with ScriptedCluster(answers={ProduceRequest: in_turn(appended, taken)}) as scripted:
        scripted.topics = {"orders": [0]}
        found = await outcomes(scripted, 0)
    (error,) = found.failed.values()
    assert error.code is ErrorCode.NETWORK_EXCEPTION
    assert "appended at offset 70" in error.message
    assert len(scripted.sent("Produce")) == 1
