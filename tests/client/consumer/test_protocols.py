# SPDX-License-Identifier: Apache-2.0
"""Two protocols of groups behind one face: what each says of a consumer, and how it counts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.joining import soon
from tests.client.scripted import ReceivedRequest, ScriptedCluster, asynchronous

from kohort.client.consumer.protocols import (
    HEARTBEAT,
    ClassicProtocol,
    ModernProtocol,
    TopicSubscription,
)
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.members.classic_membership import ClassicStage
from kohort.client.members.events import TopicIdPartition
from kohort.client.members.heartbeat import MemberConfig, Offer
from kohort.client.members.membership import Stage
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.client.network.metadata import Metadata
from kohort.errors import ApiError, ErrorCode
from kohort.terms import MemberId, Millis, PartitionIndex, TopicId, TopicPartition
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponse
from kohort.wire.messages.sync_group import SyncGroupRequest

NOW = Millis(1000)
TOPIC = TopicSubscription(("t",))
ID, GONE = TopicId(b"t" * 16), TopicId(b"g" * 16)


def test_what_is_subscribed_to_is_in_order_and_each_topic_once():
    assert TopicSubscription.of(["u", "t", "u"], None) == TopicSubscription(("t", "u"), "")
    assert TopicSubscription.of((), "t.*") == TopicSubscription((), "t.*")


@pytest.mark.parametrize(
    ("topics", "pattern", "error", "text"),
    [
        ((["t"],), None, TypeError, r"topics has \['t'\], expected a text for each"),
        ((("t", "u"),), None, TypeError, r"topics has \('t', 'u'\), expected a text for each, as"),
        (
            ({"sasl.password": "x"},),
            None,
            TypeError,
            "^topics has a mapping, .* settings go to",
        ),
        ((b"t",), None, TypeError, "topics has b't', expected a text for each"),
        ((), None, ValueError, "nothing to subscribe to, expected a topic or a pattern"),
        (("t",), 5, TypeError, "pattern is 5, expected its text"),
        ((), "(?=x)", ValueError, r"pattern '\(\?=x\)' is none of RE2: inv"),
    ],
)
def test_what_no_broker_could_match_is_refused(topics, pattern, error, text):
    with pytest.raises(error, match=text):
        TopicSubscription.of(topics, pattern)


def settings(**given: Any) -> ConsumerSettings:
    return ConsumerSettings(**{"group_id": "g", **given})


class Topics(ScriptedCluster):
    """A cluster with these topics; `codes` refuse some of them."""

    def __init__(self, **topics: int) -> None:
        super().__init__()
        self.topics = {name: [0] * count for name, count in topics.items()}
        self.codes: dict[str, int] = {}
        self.internal: set[str] = set()
        self.answers[MetadataRequest] = self.told

    def told(self, asked: ReceivedRequest) -> MetadataResponse:
        wanted = asked.request.topics
        for one in wanted or ():
            if one.name is None:
                one.name = "t" if one.topic_id == ID else "gone"
        answer = self._metadata(asked)
        for topic in answer.topics:
            name = topic.name or ""
            topic.topic_id = ID if name == "t" else bytes(16)
            topic.is_internal = name in self.internal
            topic.error_code = self.codes.get(name, topic.error_code)
        return answer


@asynccontextmanager
async def metadata(script: Topics) -> AsyncIterator[Metadata]:
    async with script:
        made = Metadata(script.cluster())
        yield made
        await made.cluster.close()


def modern(
    metadata: Any = None,
    wanted: TopicSubscription = TOPIC,
    **given: Any,
) -> ModernProtocol:
    offers = given.pop("offers", None)
    return ModernProtocol(settings(**given), metadata, wanted, RetryBackoff(), lambda: offers)


def classic(
    metadata: Any = None,
    wanted: TopicSubscription = TOPIC,
    **given: Any,
) -> ClassicProtocol:
    return ClassicProtocol(settings(**given), metadata, wanted, RetryBackoff())


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (TopicSubscription(("t", "u")), "t, u"),
        (TopicSubscription((), "p.*"), "/p.*/"),
        (TopicSubscription(("t",), "p.*"), "t, /p.*/"),
        (TopicSubscription(), ""),
    ],
)
def test_a_subscription_as_text(wanted: TopicSubscription, shown: str) -> None:
    assert str(wanted) == shown


# KIP-848's


def test_what_a_modern_member_says() -> None:
    offers = (Offer("mine"),)
    one = modern(
        wanted=TopicSubscription(("t", "u"), "p.*"),
        max_poll_interval_ms=7000,
        group_remote_assignor="range",
        client_rack="r",
        group_instance_id="i",
        offers=offers,
    )
    assert one.machine.config == MemberConfig(("t", "u"), "p.*", 7000, "range", "r", offers)
    assert (one.machine.group_id, one.machine.instance_id) == ("g", "i")


def test_each_modern_member_has_an_id_of_its_own() -> None:
    first, second = modern(), modern()
    assert len(first.machine.member_id) == 36
    assert first.machine.member_id != second.machine.member_id


def test_a_modern_member_wants_something_else() -> None:
    one = modern()
    one.wanted = TopicSubscription((), "p.*")
    assert one.want(NOW) == []
    assert (one.machine.config.names, one.machine.config.regex) == ((), "p.*")


def test_who_commits_in_a_modern_group() -> None:
    one = modern(group_instance_id="i")
    assert one.identity() is None
    one.machine.stage, one.machine.epoch = Stage.MEMBER, 4
    who = one.identity()
    assert who is not None
    assert (who.member_id, who.epoch) == (one.machine.member_id, 4)
    assert (who.instance_id, who.is_modern) == ("i", True)


def test_versions_and_patience_of_a_modern_member() -> None:
    one, request = (
        modern(),
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="", member_epoch=0),
    )
    assert one.need(request) is HEARTBEAT
    assert (one.at_most(request), one.patience_ms(request)) == (1, 0)


@asynchronous
async def test_a_modern_member_learns_the_names_of_topics() -> None:
    known, gone = TopicIdPartition(ID, PartitionIndex(1)), TopicIdPartition(GONE, PartitionIndex(0))
    script = Topics(t=2)
    async with metadata(script) as some:
        one = modern(some)
        assert await one.named([known, gone], soon()) == {known: TopicPartition("t", 1)}
        assert await one.named([], soon()) == {}
        assert await one.look_again(NOW, soon()) == []
        assert len(script.sent("Metadata")) == 1


@asynchronous
async def test_a_modern_member_has_let_go() -> None:
    one = modern()
    assert one.released([TopicIdPartition(ID, PartitionIndex(0))], NOW) == []


# The classic one


def test_what_a_classic_member_says() -> None:
    one = classic(
        wanted=TopicSubscription(("u", "t")),
        partition_assignment_strategy=("roundrobin",),
        session_timeout_ms=9000,
        heartbeat_interval_ms=700,
        max_poll_interval_ms=7000,
        client_rack="r",
        group_instance_id="i",
    )
    assert one.machine.config == (("t", "u"), ("roundrobin",), 9000, 7000, 700, "r")
    assert (one.machine.group_id, one.machine.instance_id) == ("g", "i")


def test_who_commits_in_a_classic_group() -> None:
    one = classic(group_instance_id="i")
    assert one.identity() is None
    one.machine.member_id, one.machine.generation = MemberId("m"), 4
    who = one.identity()
    assert who is not None
    assert (who.member_id, who.epoch, who.instance_id, who.is_modern) == ("m", 4, "i", False)


def test_versions_and_patience_of_a_classic_member() -> None:
    """Only a join is answered after the members that the group waits for."""
    one = classic(max_poll_interval_ms=7000)
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=[]
    )
    others: list[Any] = [
        SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]),
        HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        LeaveGroupRequest(group_id="g"),
    ]
    assert one.patience_ms(join) == 12_000
    assert [one.at_most(request) for request in (join, *others)] == [9, 5, 4, 5]
    assert [one.patience_ms(request) for request in others] == [0, 0, 0]
    assert one.need(join) is None


@asynchronous
async def test_a_classic_member_names_topics_as_they_are() -> None:
    place = TopicPartition("t", 3)
    assert await classic().named([place], 0.0) == {place: place}
    assert classic().released([place], NOW) == []


@asynchronous
async def test_a_pattern_is_matched_here() -> None:
    script = Topics(t=1, **{"p-1": 1, "p-2": 1, "xp-1": 1, "p-internal": 1})
    script.internal, script.codes = {"p-internal"}, {"p-2": 29}
    async with metadata(script) as some:
        one = classic(some, TopicSubscription(("t", "z"), "p-.*"))
        assert one.machine.config.topics == ("t", "z")
        await one.look_again(NOW, soon())
        assert one.machine.config.topics == ("p-1", "t", "z")
        script.codes = {}
        del script.topics["p-1"]
        await one.look_again(NOW, soon())
        assert one.machine.config.topics == ("p-2", "t", "z")


@pytest.mark.parametrize("wanted", [TopicSubscription(("u",)), TopicSubscription(("u",), "q-.*")])
@asynchronous
async def test_what_another_pattern_has_matched_is_not_wanted_any_more(
    wanted: TopicSubscription,
) -> None:
    async with metadata(Topics(**{"p-1": 1, "q-1": 1})) as some:
        one = classic(some, TopicSubscription((), "p-.*"))
        await one.look_again(NOW, soon())
        assert one.machine.config.topics == ("p-1",)
        one.wanted = wanted
        one.want(NOW)
        assert one.machine.config.topics == ("u",)
        await one.look_again(NOW, soon())
        assert one.machine.config.topics == (("q-1", "u") if wanted.pattern else ("u",))


@asynchronous
async def test_a_leader_counts_partitions() -> None:
    script = Topics(t=3, u=1)
    script.codes = {"u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    async with metadata(script) as some:
        found = await classic(some).count(("t", "u", "gone"), soon())
    assert found == {"t": 3, "u": 0, "gone": 0}


@pytest.mark.parametrize("code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT])
@asynchronous
async def test_a_topic_that_is_not_known_now_is_not_one_without_partitions(code: ErrorCode) -> None:
    """Its partitions would go to nobody until the leader looks again."""
    script = Topics(t=3, u=1)
    script.codes = {"u": code}
    async with metadata(script) as some:
        one = classic(some)
        with pytest.raises(ApiError, match=code.name):
            await one.count(("t", "u"), soon())
        script.codes.clear()
        assert await one.count(("t", "u"), soon()) == {"t": 3, "u": 1}


@asynchronous
async def test_a_leader_has_its_group_rebalance_once_when_a_topic_grows_or_goes() -> None:
    script = Topics(t=1, u=1)
    async with metadata(script) as some:
        one = classic(some)
        asked: list[int] = []
        one.machine.join_again = lambda now: asked.append(now) or []  # type: ignore[func-returns-value]
        one.machine.stage, one.machine.leads = ClassicStage.MEMBER, True
        some.on_count = lambda name, count: one.topic_changed(name, count, NOW)  # as the consumer
        await one.count(("t", "gone"), soon())
        await one.look_again(NOW, soon())
        assert asked == []
        script.topics["t"].append(0)
        one.machine.leads = False
        await one.look_again(NOW, soon())
        assert asked == []  # another one leads
        one.machine.leads = True
        await one.look_again(NOW, soon())
        assert asked == [NOW]
        await one.look_again(NOW, soon())
        assert asked == [NOW]
        script.topics["gone"] = [0]
        await one.look_again(NOW, soon())
        assert asked == [NOW, NOW]
        script.topics["other"] = [0]
        await one.look_again(NOW, soon())
        assert asked == [NOW, NOW]  # which nobody in the group wants
        del script.topics["t"]
        await one.look_again(NOW, soon())
        assert asked == [NOW, NOW, NOW]
        await one.look_again(NOW, soon())
        assert asked == [NOW, NOW, NOW]


@asynchronous
async def test_a_leader_has_its_group_rebalance_as_soon_as_anybody_hears_of_more() -> None:
    script = Topics(t=1)
    async with metadata(script) as some:
        one = classic(some)
        asked: list[int] = []
        one.machine.join_again = lambda now: asked.append(now) or []  # type: ignore[func-returns-value]
        one.machine.stage, one.machine.leads = ClassicStage.MEMBER, True
        await one.count(("t", "late"), soon())
        assert list(one.missing()) == ["late"]
        one.topic_changed("t", 1, NOW)
        one.topic_changed("of nobody", 1, NOW)
        assert asked == []
        one.machine.leads = False
        one.topic_changed("late", 2, NOW)
        assert (asked, list(one.missing())) == ([], [])
        one.machine.leads, one.machine.stage = True, ClassicStage.ASSIGNING
        one.topic_changed("late", 2, NOW)
        assert asked == []  # what it counts at this moment goes into this assignment
        one.machine.stage = ClassicStage.MEMBER
        one.topic_changed("late", 2, NOW)
        assert (asked, list(one.missing())) == ([NOW], [])
        one.topic_changed("late", 2, NOW)
        assert asked == [NOW]


@asynchronous
async def test_a_leader_counts_anew_for_each_generation() -> None:
    script = Topics(t=1)
    async with metadata(script) as some:
        one = classic(some)
        assert await one.count(("t",), soon()) == {"t": 1}
        script.topics["t"].append(0)
        assert await one.count(("t",), soon()) == {"t": 2}


def test_the_broker_looks_for_a_modern_member() -> None:
    one = modern()
    assert one.topic_changed("t", 9, NOW) == []
    assert list(one.missing()) == []
