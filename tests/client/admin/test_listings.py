# SPDX-License-Identifier: Apache-2.0
"""An answer of the admin client knows what it should have covered, and names what is missing."""

import asyncio

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import AdminClient, OffsetReset
from kohort.errors import ApiError, ErrorCode
from kohort.storage.files import DiskFiles
from kohort.storage.segments import SegmentLog
from kohort.terms import TopicPartition
from kohort.testing import Broker
from kohort.wire.batch import build
from kohort.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponseTopic
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

OFFSETS = "__consumer_offsets"
GROUPS = [f"g{number}" for number in range(10)]
PLACES = [TopicPartition("t", index) for index in range(6)]
LED_BY_1 = {TopicPartition("t", 2), TopicPartition("t", 5)}
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.fixture(scope="module")
def two_of_three():
    """A cluster whose node 1 is away, and nobody leads what it has led. Its groups g0 to g9 are
    spread over all coordinators, and topic t over all nodes.
    """
    with Broker(nodes=3) as broker:
        broker.create_topic("t", 6)
        for group in GROUPS:
            broker.groups[group].commit("t")
        away = [group for group in GROUPS if broker.groups[group].coordinator() == 1]
        assert 0 < len(away) < len(GROUPS)
        broker.node(1).stop(takeover=False)
        yield broker, set(away)


def ask(broker, question, timeout=2.0):
    async def asked():
        async with AdminClient(broker.bootstrap, timeout=timeout) as admin:
            return await question(admin)

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            lambda admin: admin.list_groups(),
            {TopicPartition(OFFSETS, 0), TopicPartition(OFFSETS, 3)},
        ),
        (
            lambda admin: admin.list_groups(states=["Empty"]),
            {TopicPartition(OFFSETS, 0), TopicPartition(OFFSETS, 3)},
        ),
        (lambda admin: admin.describe_groups(GROUPS), "groups"),
        (lambda admin: admin.list_group_offsets(GROUPS), "groups"),
        (lambda admin: admin.end_offsets(PLACES), LED_BY_1),
        (lambda admin: admin.list_offsets(dict.fromkeys(PLACES, "earliest")), LED_BY_1),
        (lambda admin: admin.describe_topics(["t"]), LED_BY_1),
        (lambda admin: admin.describe_cluster(), {1}),
        (lambda admin: admin.describe_group_configs(GROUPS), "groups"),
        (
            lambda admin: admin.plan_offset_reset("g0", OffsetReset.latest(), ["t"], timeout=1),
            LED_BY_1,
        ),
    ],
)
def test_what_a_node_that_is_away_takes_along_is_named(two_of_three, question, expected):
    broker, away = two_of_three
    answer = ask(broker, question)
    assert set(answer.missing) == (away if expected == "groups" else expected)
    assert not answer.complete
    for error in answer.missing.values():
        assert isinstance(error, ApiError)


def test_what_lacks_nothing_is_complete(two_of_three):
    broker, _ = two_of_three
    topics = ask(broker, lambda admin: admin.list_topics())
    assert topics.complete
    (there,) = sorted(set(PLACES) - LED_BY_1)[:1]
    assert ask(broker, lambda admin: admin.end_offsets([there])).complete


def test_the_groups_of_those_who_answered_are_there_all_the_same(two_of_three):
    broker, away = two_of_three
    listings = ask(broker, lambda admin: admin.list_groups())
    assert {one.group_id for one in listings} == set(GROUPS) - away
    for place, error in listings.errors.items():
        assert error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert error.message == f"nobody coordinates partition {place.partition} of {OFFSETS}"
    assert listings.unverified is None


def test_a_coordinator_whose_log_cannot_be_read_is_named(tmp_path):
    """Its broker leaves its groups out, and says that the leader of its partition is offline."""
    with Broker(data_dir=tmp_path) as broker:
        broker.create_topic("t")
        for group in GROUPS:
            broker.groups[group].commit("t")
    log = SegmentLog(f"{tmp_path}/{OFFSETS}-3", DiskFiles())
    log.append(build([(b"\x00\x02\x00\x01x", b"\x00\x63")], 1), 1)  # a version to come
    log.sync()
    log.close()
    with Broker(data_dir=tmp_path) as broker:
        listings = ask(broker, lambda admin: admin.list_groups())
        described = ask(broker, lambda admin: admin.describe_groups(GROUPS))
    assert [*listings.errors] == [TopicPartition(OFFSETS, 3)]
    missing = {*GROUPS} - {one.group_id for one in listings}
    assert missing == {*described.failed}
    assert missing


def listed(*names):
    return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])


@asynchronous
async def test_a_coordinator_that_moves_while_groups_are_listed_is_asked_where_it_has_gone():
    async with ScriptedCluster(2) as scripted, scripted.admin() as admin:
        scripted.topics[OFFSETS] = [0, 1]
        first = scripted.answers[MetadataRequest]

        def moved(asked):
            scripted.topics[OFFSETS] = [0, 0]
            return listed()

        scripted.answers[ListGroupsRequest] = lambda asked: (
            moved(asked) if asked.node else in_order.pop(0)
        )
        in_order = [listed("a"), listed("a", "b")]
        listings = await admin.list_groups()
        assert scripted.answers[MetadataRequest] is first
        scripted.topics[OFFSETS] = [0, 1]
        in_order = [listed("a"), listed("a", "b")]
        heard = [
            (part, [one.group_id for one in groups]) async for part, groups in admin.list_groups()
        ]
    assert [one.group_id for one in listings] == ["a", "b"]
    assert listings.errors == {}
    assert sorted(heard[:2]) == [(0, ["a"]), (1, [])]
    assert heard[2:] == [(TopicPartition(OFFSETS, 1), ["b"])]  # under no key that was heard before


@asynchronous
async def test_a_coordinator_that_is_elected_meanwhile_is_waited_for():
    async with ScriptedCluster(1, {ListGroupsRequest: lambda _: listed("a")}) as scripted:
        scripted.topics[OFFSETS] = [-1]
        honest = scripted.answers[MetadataRequest]
        looks = []

        def elected(asked):
            looks.append(asked)
            if len(looks) == 3:
                scripted.topics[OFFSETS] = [0]
            return honest(asked)

        scripted.answers[MetadataRequest] = elected
        async with scripted.admin() as admin:
            listings = await admin.list_groups()
    assert [one.group_id for one in listings] == ["a"]
    assert listings.errors == {}


@asynchronous
async def test_who_may_not_see_the_coordinators_is_told_what_is_not_known():
    async with ScriptedCluster(2, {ListGroupsRequest: lambda _: listed("a")}) as scripted:
        honest = scripted.answers[MetadataRequest]

        def refused(asked):
            answer = honest(asked)
            answer.topics = [
                MetadataResponseTopic(name=one.name, error_code=29) for one in answer.topics
            ]
            return answer

        scripted.answers[MetadataRequest] = refused
        async with scripted.admin() as admin:
            listings = await admin.list_groups()
            assert listings.errors == {}
            assert listings.unverified.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert "whether all coordinators have answered is not known" in str(listings.unverified)
            await scripted.stop(1)
            listings = await admin.list_groups()
    assert list(listings.errors) == [1]


@asynchronous
async def test_a_cluster_that_never_had_a_group_lacks_nothing():
    answers = {ListGroupsRequest: lambda _: listed()}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        listings = await admin.list_groups()
    assert (len(listings), listings.errors, listings.unverified) == (0, {}, None)


@asynchronous
async def test_a_node_that_cannot_be_asked_is_named_once_and_not_again_for_what_it_leads():
    async with ScriptedCluster(2, {ListGroupsRequest: lambda _: listed("a")}) as scripted:
        scripted.topics[OFFSETS] = [0, 1, 1]
        await scripted.stop(1)
        async with scripted.admin() as admin:
            listings = await admin.list_groups()
    assert list(listings.errors) == [1]


@asynchronous
async def test_a_topic_that_cannot_be_looked_at_is_listed_with_its_error():
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        scripted.topics["t"] = [0]
        honest = scripted.answers[MetadataRequest]

        def answer(asked):
            told = honest(asked)
            told.topics.append(MetadataResponseTopic(name="u", error_code=5))
            return told

        scripted.answers[MetadataRequest] = answer
        listings = await admin.list_topics()
    t, u = listings
    assert (t.name, t.partitions, t.error) == ("t", 1, None)
    assert (u.name, u.partitions) == ("u", None)
    assert u.error.code is ErrorCode.LEADER_NOT_AVAILABLE
    assert listings.missing == {"u": u.error}


# One thing of two is refused for good, or for as long as the caller has time: the other is there.

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def describe(code):
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id="a", error_code=code),
            DescribedGroup(group_id="b", group_state="Empty"),
        ]
    )


def fetch(code):
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(group_id="a", error_code=code),
            OffsetFetchResponseGroup(group_id="b"),
        ]
    )


def find(code):
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="t",
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=0, error_code=code),
                    ListOffsetsPartitionResponse(partition_index=1, offset=7),
                ],
            )
        ]
    )


def configs(code):
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(resource_type=32, resource_name="a", error_code=code),
            DescribeConfigsResult(resource_type=32, resource_name="b"),
        ]
    )


@pytest.mark.parametrize("code", [LOADING, ErrorCode.GROUP_AUTHORIZATION_FAILED])
@pytest.mark.parametrize(
    ("request_class", "answer", "question", "failed", "there"),
    [
        (
            ConsumerGroupDescribeRequest,
            describe,
            lambda admin: admin.describe_groups(["a", "b"]),
            "a",
            "b",
        ),
        (
            OffsetFetchRequest,
            fetch,
            lambda admin: admin.list_group_offsets(["a", "b"]),
            "a",
            "b",
        ),
        (ListOffsetsRequest, find, lambda admin: admin.end_offsets([A, B]), A, B),
        (
            DescribeConfigsRequest,
            configs,
            lambda admin: admin.describe_group_configs(["a", "b"]),
            "a",
            "b",
        ),
    ],
)
@asynchronous
async def test_one_item_that_is_refused_is_named_and_hides_no_other(
    request_class, answer, question, failed, there, code
):
    async with ScriptedCluster(1, {request_class: lambda _: answer(code)}) as scripted:
        scripted.topics["t"] = [0, 0]
        async with scripted.admin(timeout=0.3) as admin:
            outcomes = await question(admin)
    assert {name: error.code for name, error in outcomes.failed.items()} == {failed: code}
    assert list(outcomes.succeeded) == [there]


@asynchronous
async def test_a_coordinator_that_is_still_loading_is_waited_for_and_named_when_time_is_up():
    loading = ListGroupsResponse(error_code=LOADING)
    async with ScriptedCluster(2) as scripted:
        scripted.topics[OFFSETS] = [0, 1]
        scripted.answers[ListGroupsRequest] = lambda asked: loading if asked.node else listed("a")
        async with scripted.admin(timeout=0.3) as admin:
            listings = await admin.list_groups()
            assert {node: error.code for node, error in listings.errors.items()} == {1: LOADING}
        scripted.answers[ListGroupsRequest] = lambda asked: (
            late(asked) if asked.node else listed("a")
        )
        late = in_turn(loading, loading, listed("b"))
        async with scripted.admin() as admin:
            listings = await admin.list_groups()
    assert [one.group_id for one in listings] == ["a", "b"]
    assert listings.errors == {}


@asynchronous
async def test_what_an_answer_leaves_out_is_named():
    """A broker that answers, and says nothing of one thing that it was asked for."""
    empty = {
        ConsumerGroupDescribeRequest: lambda _: ConsumerGroupDescribeResponse(groups=[]),
        OffsetFetchRequest: lambda _: OffsetFetchResponse(groups=[]),
        ListOffsetsRequest: lambda _: ListOffsetsResponse(topics=[]),
        DescribeConfigsRequest: lambda _: DescribeConfigsResponse(results=[]),
    }
    async with ScriptedCluster(1, empty) as scripted, scripted.admin() as admin:
        scripted.topics["t"] = [0]
        answers = [
            await admin.describe_groups(["a"]),
            await admin.list_group_offsets(["a"]),
            await admin.end_offsets([A]),
            await admin.describe_group_configs(["a"]),
        ]
    for answer in answers:
        (error,) = answer.failed.values()
        assert isinstance(error, ApiError)
        assert "lacks an entry for" in error.message
