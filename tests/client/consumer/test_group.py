# SPDX-License-Identifier: Apache-2.0
"""In, out, and in again: by the protocol that the broker has, and as the application is there."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.client.consumer.fakes import FakeFetcher
from tests.client.consumer.running import until, within
from tests.client.scripted import Answer, ScriptedCluster, asynchronous, in_turn

from kohort.client.consumer.assignor import Assignor
from kohort.client.consumer.assignor_runner import AssignorRunner
from kohort.client.consumer.group import Group
from kohort.client.consumer.group_offsets import NOBODY
from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.member import Member
from kohort.client.consumer.ownership import Ownership
from kohort.client.consumer.protocols import ClassicProtocol, ModernProtocol, TopicSubscription
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.network.metadata import Metadata
from kohort.errors import ApiError, ErrorCode
from kohort.testing import Broker
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.wire.messages.join_group import JoinGroupRequest

T, U = TopicSubscription(("t",)), TopicSubscription(("u",))
PROTOCOLS = pytest.mark.parametrize("protocol", ["consumer", "classic"])


class Mine(Assignor):
    name = "mine"


class World:
    """A group with all that belongs to it, but the fetches."""

    def __init__(self, bootstrap: str, *assignors: Assignor, **given: Any) -> None:
        settings = ConsumerSettings(
            **{"group_id": "g", "heartbeat_interval_ms": 100, "enable_auto_commit": False, **given}
        )
        self.cluster = self.new_cluster(bootstrap)
        self.clusters: list[Cluster] = []
        metadata = Metadata(self.cluster)
        fetcher = cast("Any", FakeFetcher())
        self.ownership = Ownership(fetcher, InFlightRecords(), settings, None)
        self.assignor_runner = AssignorRunner(
            assignors, self.cluster, "g", lambda: None, timeout_s=5.0
        )

        def another() -> Cluster:
            self.clusters.append(self.new_cluster(bootstrap))
            return self.clusters[-1]

        self.group = Group(settings, another, metadata, self.ownership, self.assignor_runner)

    @staticmethod
    def new_cluster(bootstrap: str) -> Cluster:
        return Cluster([Address.of(bootstrap)], client_id="test")

    @property
    def owned(self) -> set[str]:
        return {str(one) for one in self.ownership.owned}

    def enter(self, wanted: TopicSubscription) -> None:
        self.group.wanted = wanted
        self.group.enter()


@asynccontextmanager
async def world(bootstrap: str, *assignors: Assignor, **given: Any) -> AsyncIterator[World]:
    async with within():
        made = World(bootstrap, *assignors, **given)
        yield made
        await made.group.close()
        await made.cluster.close()


@asynccontextmanager
async def scripted(answers: dict[type, Answer], **given: Any) -> AsyncIterator[tuple[World, Any]]:
    async with ScriptedCluster(1, answers) as script, world(script.bootstrap, **given) as it:
        yield it, script


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        broker.create_topic("t", 2)
        broker.create_topic("u", 1)
        yield broker


# Who we are


@PROTOCOLS
@asynchronous
async def test_who_commits(broker: Broker, protocol: str) -> None:
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        assert it.group.identity() is NOBODY  # partitions of its own choice
        it.group.wanted = T
        assert it.group.identity() is None
        it.group.enter()
        await until(lambda: it.owned == {"t:0", "t:1"})
        who = it.group.identity()
        assert who is not None
        assert (bool(who.member_id), who.is_modern) == (True, protocol == "consumer")
        assert who.epoch > 0


# In and out


@PROTOCOLS
@asynchronous
async def test_in_another_subscription_and_out(broker: Broker, protocol: str) -> None:
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        it.enter(T)
        await until(lambda: it.owned == {"t:0", "t:1"})
        it.enter(U)
        await until(lambda: it.owned == {"u:0"})
        await it.group.leave(for_good=False)
        assert it.owned == set()
        assert broker.groups["g"].state == "Empty"
        it.enter(T)
        await until(lambda: it.owned == {"t:0", "t:1"})
        assert len(it.clusters) == 2  # each member has its own


@asynchronous
async def test_to_leave_what_was_never_entered(broker: Broker) -> None:
    async with world(broker.bootstrap) as it:
        await it.group.leave(for_good=True)
        await it.group.look_again()
        it.group.on_poll_timeout(9.0)
        it.group.on_poll()
        assert it.clusters == []


@PROTOCOLS
@asynchronous
async def test_to_end_without_a_word(broker: Broker, protocol: str) -> None:
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        it.enter(T)
        await until(lambda: it.owned)
        await it.group.close()
        assert broker.groups["g"].state == "Stable"  # until its session is over


@asynchronous
async def test_another_pattern_is_matched_at_once(broker: Broker) -> None:
    """In a classic group the client matches, and not only when it looks again."""
    async with world(broker.bootstrap, group_protocol="classic") as it:
        it.enter(TopicSubscription((), "t.*"))
        await until(lambda: it.owned == {"t:0", "t:1"})
        it.enter(TopicSubscription((), "u.*"))
        await until(lambda: it.owned == {"u:0"})


@PROTOCOLS
@asynchronous
async def test_a_topic_that_goes_is_given_up(broker: Broker, protocol: str) -> None:
    broker.create_topic("short-lived", 1)
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        it.enter(TopicSubscription(("t", "short-lived")))
        await until(lambda: it.owned == {"t:0", "t:1", "short-lived:0"})
        broker.delete_topic("short-lived")
        await it.group.look_again()
        await until(lambda: it.owned == {"t:0", "t:1"})


@PROTOCOLS
@asynchronous
async def test_topics_that_come_are_found(broker: Broker, protocol: str) -> None:
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        it.enter(TopicSubscription((), "t.*"))
        await until(lambda: it.owned == {"t:0", "t:1"})
        broker.create_topic("t2", 1)
        await it.group.look_again()
        await until(lambda: "t2:0" in it.owned)


@asynchronous
async def test_who_cannot_look_again_goes_on(broker: Broker) -> None:
    async with world(broker.bootstrap, group_protocol="classic") as it:
        it.enter(T)
        await until(lambda: it.owned)
        it.group._metadata.topics = fails  # type: ignore[method-assign]
        await it.group.look_again()
        assert it.owned


async def fails(*_: Any) -> Any:
    raise ApiError(ErrorCode.NETWORK_EXCEPTION)


# An application that stays away


@PROTOCOLS
@asynchronous
async def test_who_stays_away_is_out_until_it_comes_back(broker: Broker, protocol: str) -> None:
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        it.enter(T)
        await until(lambda: it.owned)
        it.group.on_poll()
        assert it.owned
        it.group.on_poll_timeout(9.0)
        it.group.on_poll_timeout(10.0)
        assert it.ownership.hurry
        await until(lambda: broker.groups["g"].state == "Empty" and not it.owned)
        await until(lambda: it.group._member and it.group._member.outside.is_set())
        it.group.on_poll()
        assert not it.ownership.hurry
        await until(lambda: it.owned == {"t:0", "t:1"})
        it.group.on_poll_timeout(9.0)  # and once more
        await until(lambda: not it.owned)


@PROTOCOLS
@asynchronous
async def test_who_comes_back_with_another_wish(broker: Broker, protocol: str) -> None:
    async with world(broker.bootstrap, group_protocol=protocol) as it:
        it.enter(T)
        await until(lambda: it.owned)
        it.group.on_poll_timeout(9.0)
        await until(lambda: it.group._member and it.group._member.outside.is_set())
        it.enter(U)
        assert not it.ownership.hurry
        await until(lambda: it.owned == {"u:0"})
        it.group.on_poll_timeout(9.0)
        await until(lambda: not it.owned)


@asynchronous
async def test_who_stayed_away_and_left_comes_back_like_anybody_else(broker: Broker) -> None:
    async with world(broker.bootstrap) as it:
        it.enter(T)
        await until(lambda: it.owned)
        it.group.on_poll_timeout(9.0)
        await it.group.leave(for_good=False)
        it.enter(T)
        assert not it.ownership.hurry
        await until(lambda: it.owned)
        it.group.on_poll_timeout(9.0)
        await until(lambda: not it.owned)


# By which protocol


@pytest.mark.parametrize(
    ("wish", "expected"),
    [("auto", ModernProtocol), ("consumer", ModernProtocol), ("classic", ClassicProtocol)],
)
@asynchronous
async def test_the_protocol_that_is_wished_for(broker: Broker, wish: str, expected: Any) -> None:
    async with world(broker.bootstrap, group_protocol=wish) as it:
        it.enter(T)
        await until(lambda: it.owned)
        assert it.group._member is not None
        assert isinstance(it.group._member.protocol, expected)


REFUSAL = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("offered", [True, False])
@asynchronous
async def test_a_broker_without_kip_848_is_spoken_to_by_the_classic_one(
    offered: bool,  # noqa: FBT001
) -> None:
    answers = {ConsumerGroupHeartbeatRequest: in_turn(REFUSAL), JoinGroupRequest: in_turn(None)}
    async with scripted(answers) as (it, script):
        if not offered:
            script.offer("ConsumerGroupHeartbeat", None)
        it.enter(T)
        await until(lambda: script.sent("JoinGroup"))
        assert it.ownership.final is None
        assert len(it.clusters) == 2
        it.group.wanted = U
        it.group.enter()  # it stays with what the broker has
        assert isinstance(it.group._member and it.group._member.protocol, ClassicProtocol)


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        ("0-1", "it refuses that"),
        ("0-0", "offers ConsumerGroupHeartbeat v0"),
        (None, "does not offer ConsumerGroupHeartbeat"),
    ],
)
@asynchronous
async def test_a_broker_without_kip_848_where_nothing_else_is_wished_for(
    offered: str | None, why: str
) -> None:
    """The text names what it lacks, and which release has that."""
    answers = {ConsumerGroupHeartbeatRequest: in_turn(REFUSAL)}
    async with scripted(answers, group_protocol="consumer") as (it, script):
        script.offer("ConsumerGroupHeartbeat", offered)
        it.enter(T)
        await until(lambda: it.ownership.final)
        text = str(it.ownership.final)
        assert "group_protocol is consumer, which the broker does not have" in text
        assert "it needs ConsumerGroupHeartbeat v1 (KIP-848, Apache Kafka 4.0), and " in text
        assert why in text
        assert script.sent("JoinGroup") == []


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, True),
        (ErrorCode.INVALID_REQUEST, True),
        (ErrorCode.UNRELEASED_INSTANCE_ID, False),  # the other may leave
    ],
)
@asynchronous
async def test_a_refusal_is_told_where_it_stays(code: ErrorCode, is_told: bool) -> None:  # noqa: FBT001
    answers = {
        ConsumerGroupHeartbeatRequest: in_turn(ConsumerGroupHeartbeatResponse(error_code=code))
    }
    async with scripted(answers) as (it, script):
        it.enter(T)
        await until(lambda: script.sent("ConsumerGroupHeartbeat"))
        if is_told:
            await until(lambda: it.ownership.final)
            assert cast("Any", it.ownership.final).code is code
        else:
            await until(lambda: len(script.sent("ConsumerGroupHeartbeat")) > 1)
            assert it.ownership.final is None


@asynchronous
async def test_a_denied_topic_is_raised_for_each_refusal_until_there_is_a_right() -> None:
    """Java's poll raises it as well, and its member stays: the right may be granted."""
    denied = ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message="Topic authorization failed."
    )
    taken = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=1, heartbeat_interval_ms=50)
    answers = {ConsumerGroupHeartbeatRequest: in_turn(denied, denied, denied, taken)}
    async with scripted(answers) as (it, script):
        it.enter(T)
        for _ in range(2):
            await until(lambda: it.ownership.denied)
            with pytest.raises(ApiError, match=r"User:ANONYMOUS is not authorized for topic t$"):
                it.ownership.raise_trouble()
            it.ownership.raise_trouble()
        await until(lambda: len(script.sent("ConsumerGroupHeartbeat")) > 4)
        it.ownership.raise_trouble()
        assert it.group.identity().epoch == 1


@asynchronous
async def test_to_close_in_the_middle_of_a_change() -> None:
    answers = {ConsumerGroupHeartbeatRequest: in_turn(REFUSAL), JoinGroupRequest: in_turn(None)}
    before = asyncio.all_tasks()
    async with scripted(answers) as (it, script):
        it.enter(T)
        await until(lambda: script.sent("ConsumerGroupHeartbeat"))
        await it.group.close()
        await asyncio.sleep(0.02)
        left = {str(one.get_coro()) for one in asyncio.all_tasks() - before}
        assert not {one for one in left if "Member." in one or "Group." in one}


@asynccontextmanager
async def changing(monkeypatch: Any) -> AsyncIterator[tuple[World, Any, asyncio.Event]]:
    """In the middle of a change to the classic protocol, which goes on at the event."""
    go_on = asyncio.Event()
    usual = Member.close

    async def slow(member: Member) -> None:
        await go_on.wait()
        await usual(member)

    answers = {ConsumerGroupHeartbeatRequest: in_turn(REFUSAL), JoinGroupRequest: in_turn(None)}
    async with scripted(answers) as (it, script):
        monkeypatch.setattr(Member, "close", slow)
        it.enter(T)
        await until(lambda: it.group._changing and it.group._member is None)
        yield it, script, go_on
        monkeypatch.undo()


@asynchronous
async def test_another_wish_in_the_middle_of_a_change(monkeypatch: Any) -> None:
    async with changing(monkeypatch) as (it, script, go_on):
        it.enter(U)
        member = it.group._member
        go_on.set()
        await until(lambda: script.sent("JoinGroup"))
        await asyncio.sleep(0.02)
        assert it.group._member is member
        assert len(it.clusters) == 2


@asynchronous
async def test_to_leave_in_the_middle_of_a_change(monkeypatch: Any) -> None:
    async with changing(monkeypatch) as (it, script, go_on):
        await it.group.leave(for_good=False)
        go_on.set()
        await asyncio.sleep(0.05)
        assert (it.group._member, script.sent("JoinGroup")) == (None, [])


# Assignors of its own


@asynchronous
async def test_who_may_ask_for_an_assignment(broker: Broker) -> None:
    async with world(broker.bootstrap, Mine()) as it:
        with pytest.raises(ValueError, match="no group with assignors of its own"):
            it.group.ask_for_assignment(3)
        it.group.wanted = T
        it.group.enter()
        it.group.ask_for_assignment(3)
        member = it.group._member
        assert member is not None
        assert member.protocol.machine.config.offers[0].reason == 3
    async with world(broker.bootstrap) as it:
        it.enter(T)
        with pytest.raises(ValueError, match="no group with assignors of its own"):
            it.group.ask_for_assignment(3)


@asynchronous
async def test_a_classic_group_computes_nothing(broker: Broker) -> None:
    async with world(broker.bootstrap, Mine(), group_protocol="classic") as it:
        it.enter(T)
        with pytest.raises(ValueError, match="no group with assignors of its own"):
            it.group.ask_for_assignment(3)
