# SPDX-License-Identifier: Apache-2.0
"""What is remembered of topics, and when the cluster is asked again."""

import asyncio
from typing import Any

import pytest
from tests.client.scripted import ReceivedRequest, ScriptedCluster, asynchronous

from kohort.client.network.metadata import Metadata
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition
from kohort.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ORDERS = TopicId(b"o" * 16)


def _answer(*topics: MetadataResponseTopic, brokers: int = 2) -> Any:
    nodes = [
        MetadataResponseBroker(node_id=index, host="127.0.0.1", port=9000 + index)
        for index in range(brokers)
    ]
    return MetadataResponse(brokers=nodes, topics=list(topics))


def _orders(leader: int = 0, epoch: int = 1, topic_id: TopicId = ORDERS) -> MetadataResponseTopic:
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponseTopic(name="orders", topic_id=topic_id, partitions=[part])


def _deadline() -> float:
    return asyncio.get_running_loop().time() + 5


def _script(*answers: Any) -> dict[type, Any]:
    left = list(answers)
    return {MetadataRequest: lambda _asked: left.pop(0) if len(left) > 1 else left[0]}


@asynchronous
async def test_a_topic_is_asked_for_once_until_it_is_outdated() -> None:
    async with ScriptedCluster(2, _script(_answer(_orders(0)), _answer(_orders(1, 2)))) as script:
        metadata = Metadata(script.cluster())
        for _ in range(3):
            found = (await metadata.topics(["orders"], _deadline()))["orders"]
            assert not isinstance(found, ApiError)
        assert len(script.sent("Metadata")) == 1
        assert metadata.name_of(ORDERS) == "orders"
        place = TopicPartition("orders", 0)
        known = metadata.partition(place)
        assert known is not None
        assert known.leader is not None
        assert (known.leader.id, known.leader_epoch) == (0, 1)
        metadata.outdated("orders")
        assert metadata.cached("orders") is found
        await metadata.topics(["orders"], _deadline())
        known = metadata.partition(place)
        assert known is not None
        assert (known.leader, known.leader_epoch) == (metadata.node(1), 2)


@asynchronous
async def test_what_is_too_old_is_asked_for_again() -> None:
    async with ScriptedCluster(1, _script(_answer(_orders()))) as script:
        metadata = Metadata(script.cluster(), max_age_s=0)
        await metadata.topics(["orders"], _deadline())
        await metadata.topics(["orders"], _deadline())
        assert len(script.sent("Metadata")) == 2


@asynchronous
async def test_an_older_epoch_does_not_bring_its_leader_back() -> None:
    async with ScriptedCluster(
        2, _script(_answer(_orders(1, 5)), _answer(_orders(0, 4)))
    ) as script:
        metadata = Metadata(script.cluster())
        await metadata.topics(["orders"], _deadline())
        metadata.outdated("orders")
        await metadata.topics(["orders"], _deadline())
        known = metadata.partition(TopicPartition("orders", 0))
        assert known is not None
        assert known.leader_epoch == 5
        await metadata.topics(["orders"], _deadline())  # still wanted: the answer was too old
        assert len(script.sent("Metadata")) == 3


@asynchronous
async def test_a_topic_made_anew_begins_anew() -> None:
    new = TopicId(b"n" * 16)
    async with ScriptedCluster(
        2, _script(_answer(_orders(1, 5)), _answer(_orders(0, 0, new)))
    ) as script:
        metadata = Metadata(script.cluster())
        await metadata.topics(["orders"], _deadline())
        metadata.outdated("orders")
        await metadata.topics(["orders"], _deadline())
        known = metadata.partition(TopicPartition("orders", 0))
        assert known is not None
        assert known.leader_epoch == 0
        assert (metadata.name_of(ORDERS), metadata.name_of(new)) == (None, "orders")


@asynchronous
async def test_a_missing_topic_is_an_error_of_its_own() -> None:
    missing = MetadataResponseTopic(name="nowhere", error_code=3)
    async with ScriptedCluster(1, _script(_answer(_orders(), missing))) as script:
        metadata = Metadata(script.cluster())
        found = await metadata.topics(["orders", "nowhere", "unsaid"], _deadline())
        assert not isinstance(found["orders"], ApiError)
        for name in ("nowhere", "unsaid"):
            error = found[name]
            assert isinstance(error, ApiError)
            assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert error.message == f"topic {name} does not exist"
        await metadata.topics(["orders"], _deadline())
        assert len(script.sent("Metadata")) == 1


@asynchronous
async def test_a_partition_without_a_leader_is_asked_for_again() -> None:
    async with ScriptedCluster(1, _script(_answer(_orders(-1)), _answer(_orders(0)))) as script:
        metadata = Metadata(script.cluster())
        for leader in (False, True):
            await metadata.topics(["orders"], _deadline())
            known = metadata.partition(TopicPartition("orders", 0))
            assert known is not None
            assert (known.leader is not None) is leader


@asynchronous
async def test_many_who_ask_at_once_ask_once() -> None:
    async with ScriptedCluster(1, _script(_answer(_orders()))) as script:
        metadata = Metadata(script.cluster())
        await asyncio.gather(*(metadata.topics(["orders"], _deadline()) for _ in range(10)))
        assert len(script.sent("Metadata")) == 1


@asynchronous
async def test_only_who_wants_it_has_topics_made() -> None:
    async with ScriptedCluster(1, _script(_answer(_orders()))) as script:
        metadata = Metadata(script.cluster(), max_age_s=0)
        await metadata.topics(["orders"], _deadline())
        await metadata.topics(["orders"], _deadline(), create=True)
        asked = [one.request.allow_auto_topic_creation for one in script.sent("Metadata")]
        assert asked == [False, True]


@asynchronous
async def test_topics_are_found_by_id() -> None:
    strange = TopicId(b"s" * 16)
    unknown = MetadataResponseTopic(name=None, topic_id=strange, error_code=100)

    def answer(asked: ReceivedRequest) -> Any:
        assert [one.topic_id for one in asked.request.topics] == [ORDERS, strange]
        return _answer(_orders(), unknown)

    async with ScriptedCluster(1, {MetadataRequest: answer}) as script:
        metadata = Metadata(script.cluster())
        found = await metadata.by_ids([ORDERS, strange], _deadline())
        topic = found[ORDERS]
        assert not isinstance(topic, ApiError)
        assert topic.name == "orders"
        error = found[strange]
        assert isinstance(error, ApiError)
        assert error.code is ErrorCode.UNKNOWN_TOPIC_ID
        await metadata.by_ids([ORDERS], _deadline())
        assert len(script.sent("Metadata")) == 1


@asynchronous
async def test_old_brokers_know_no_ids() -> None:
    async with ScriptedCluster(1, _script(_answer(_orders(topic_id=NO_TOPIC_ID)))) as script:
        script.offer("Metadata", "0-9")
        metadata = Metadata(script.cluster())
        found = (await metadata.topics(["orders"], _deadline()))["orders"]
        assert not isinstance(found, ApiError)
        assert found.id == NO_TOPIC_ID
        with pytest.raises(UnsupportedVersionError, match="a look-up of topics by id"):
            await metadata.by_ids([ORDERS], _deadline())


@asynchronous
async def test_all_topics_are_always_asked_anew() -> None:
    async with ScriptedCluster(1, _script(_answer(_orders()))) as script:
        metadata = Metadata(script.cluster())
        assert list(await metadata.all_topics(_deadline())) == ["orders"]
        assert list(await metadata.all_topics(_deadline())) == ["orders"]
        assert len(script.sent("Metadata")) == 2


@asynchronous
async def test_whoever_wants_to_know_hears_how_many_partitions_a_topic_has() -> None:
    async with ScriptedCluster(2, _script(_answer(_orders()))) as script:
        metadata = Metadata(script.cluster())
        counts: list[tuple[str, int]] = []
        metadata.on_count = lambda name, partitions: counts.append((name, partitions))
        await metadata.topics(["orders"], _deadline())
        await metadata.topics(["orders"], _deadline())  # nobody has asked
        await metadata.all_topics(_deadline())
        assert counts == [("orders", 1), ("orders", 1)]
        await metadata.cluster.close()
