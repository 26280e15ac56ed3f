# SPDX-License-Identifier: Apache-2.0
"""Topics and offsets by time, by the admin client."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import FoundOffset, NewTopic, TopicPartition
from kohort.client.network.cluster import Backoff
from kohort.errors import ErrorCode
from kohort.terms import EPOCH
from kohort.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kohort.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kohort.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kohort.wire.messages.metadata import MetadataRequest


def created(asked):
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=one.name,
                error_code=36 if one.name == "old" else 0,
                error_message="Topic 'old' already exists." if one.name == "old" else None,
                topic_id=b"1" * 16,
                num_partitions=3,
                replication_factor=1,
            )
            for one in asked.request.topics
        ]
    )


def grown(asked):
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=one.name,
                error_code=37 if one.count < 3 else 0,
                error_message="It has 3 already." if one.count < 3 else None,
            )
            for one in asked.request.topics
        ]
    )


@asynchronous
async def test_topics_are_given_more_partitions_each_by_itself():
    answers = {CreatePartitionsRequest: grown}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        outcomes = await admin.create_partitions({"t": 4, "u": 2}, validate_only=True)
    assert outcomes["t"] is None
    assert outcomes.failed["u"].code is ErrorCode.INVALID_PARTITIONS
    assert outcomes.failed["u"].message == "It has 3 already."
    (asked,) = scripted.sent("CreatePartitions")
    assert asked.request.validate_only
    assert [(one.name, one.count) for one in asked.request.topics] == [("t", 4), ("u", 2)]


@asynchronous
async def test_more_partitions_are_never_asked_for_twice():
    """It may have happened: a second request would be refused for that."""
    async with ScriptedCluster(1, {CreatePartitionsRequest: lambda _: CLOSE}) as scripted:
        async with scripted.admin() as admin:
            outcomes = await admin.create_partitions({"t": 4})
        assert outcomes.failed["t"].code is ErrorCode.NETWORK_EXCEPTION
        assert len(scripted.sent("CreatePartitions")) == 1


@asynchronous
async def test_topics_are_created_by_the_controller_each_by_itself():
    async with (
        ScriptedCluster(2, {CreateTopicsRequest: created}) as scripted,
        scripted.admin() as admin,
    ):
        topics = [NewTopic("new", 3, 1, {"retention.ms": "1"}), NewTopic("old")]
        outcomes = await admin.create_topics(topics, validate_only=True)
    assert outcomes["new"].partitions == 3
    assert outcomes["new"].topic_id == b"1" * 16
    assert outcomes.failed["old"].code is ErrorCode.TOPIC_ALREADY_EXISTS
    (asked,) = scripted.sent("CreateTopics")
    assert asked.node == 0
    assert asked.request.validate_only
    assert 0 < asked.request.timeout_ms <= 5000
    first, second = asked.request.topics
    assert [(one.name, one.value) for one in first.configs] == [("retention.ms", "1")]
    assert (second.num_partitions, second.replication_factor) == (-1, -1)


@asynchronous
async def test_a_controller_that_moved_is_looked_up_again():
    moved = CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=41)])
    answers = {CreateTopicsRequest: in_turn(moved, created)}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        metadata = scripted.answers[MetadataRequest]

        def second_is_controller(asked):
            answer = metadata(asked)
            answer.controller_id = 1
            return answer

        scripted.answers[MetadataRequest] = in_turn(metadata, second_is_controller)
        assert (await admin.create_topics([NewTopic("new")])).all()
    assert [one.node for one in scripted.sent("CreateTopics")] == [0, 1]


@asynchronous
async def test_a_controller_that_is_just_elected_is_waited_for():
    async with (
        ScriptedCluster(1, {CreateTopicsRequest: created}) as scripted,
        scripted.admin() as admin,
    ):
        honest = scripted.answers[MetadataRequest]

        def nobody(asked):
            metadata = honest(asked)
            metadata.controller_id = -1
            return metadata

        scripted.answers[MetadataRequest] = in_turn(nobody, nobody, honest)
        result = await admin.create_topics([NewTopic("t", 1, 1)])
    assert list(result.succeeded) == ["t"]


@asynchronous
async def test_a_change_beyond_the_quota_is_asked_for_again():
    """KIP-599: it was not made, and may be in a moment."""
    much = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=89)])
    answers = {CreateTopicsRequest: in_turn(much, much, created)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert list((await admin.create_topics([NewTopic("t", 1, 1)])).succeeded) == ["t"]


@pytest.mark.parametrize(
    ("request_class", "refusal", "call"),
    [
        (
            CreateTopicsRequest,
            CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=89)]),
            lambda admin, **how: admin.create_topics([NewTopic("t", 1, 1)], **how),
        ),
        (
            CreatePartitionsRequest,
            CreatePartitionsResponse(
                results=[CreatePartitionsTopicResult(name="t", error_code=89)]
            ),
            lambda admin, **how: admin.create_partitions({"t": 3}, **how),
        ),
        (
            DeleteTopicsRequest,
            DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_code=89)]),
            lambda admin, **how: admin.delete_topics("t", **how),
        ),
    ],
)
@asynchronous
async def test_who_does_not_want_to_wait_for_the_quota_hears_of_it(request_class, refusal, call):
    """The option of upstream's calls (KIP-599)."""
    answers = {request_class: lambda _: refusal}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        outcomes = await call(admin, retry_on_quota_violation=False)
    assert outcomes.failed["t"].code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert len(scripted.sent(request_class.name)) == 1


@asynchronous
async def test_a_new_leader_that_does_not_know_its_end_yet_is_asked_again():
    def unknown(asked):
        answer = found(asked)
        answer.topics[0].partitions[0].error_code = 78
        return answer

    answers = {ListOffsetsRequest: in_turn(unknown, unknown, found)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.topics = {"t": [0, 0]}
        ends = await admin.end_offsets([("t", 0), ("t", 1)])
    assert list(ends.all()) == [("t", 0), ("t", 1)]
    asked = [len(one.request.topics[0].partitions) for one in scripted.sent("ListOffsets")]
    assert asked == [2, 1, 1]


@asynchronous
async def test_a_broker_that_is_asked_late_is_given_the_time_that_is_left():
    """It would go on when nobody waits any more."""
    moved = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=41)])
    answers = {CreateTopicsRequest: in_turn(moved, created)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin(5.0) as admin:
        admin._cluster._backoff = Backoff(0.1, 0.1)
        (await admin.create_topics([NewTopic("t", 1, 1)])).all()
        first, second = (one.request.timeout_ms for one in scripted.sent("CreateTopics"))
        assert second <= first - 80
        admin._timeout_s = float("inf")
        (await admin.create_topics([NewTopic("t", 1, 1)])).all()
    assert scripted.asked[-1].request.timeout_ms == 2**31 - 1


@asynchronous
async def test_a_change_is_not_sent_when_the_time_is_up_already():
    async with (
        ScriptedCluster(1, {CreateTopicsRequest: created}) as scripted,
        scripted.admin(0.5) as admin,
    ):
        controller = admin._cluster.controller

        async def slow(deadline):
            node = await controller(deadline)
            await asyncio.sleep(0.6)
            return node

        admin._cluster.controller = slow
        result = await admin.create_topics([NewTopic("t", 1, 1)])
    assert not result.failed["t"].sent
    assert "the time was up before node 0 at" in result.failed["t"].message
    assert scripted.sent("CreateTopics") == []


@asynchronous
async def test_the_brokers_defaults_need_a_broker_that_has_them():
    async with (
        ScriptedCluster(1, {CreateTopicsRequest: created}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("CreateTopics", "2-3")
        outcomes = await admin.create_topics([NewTopic("new", 3)])
        assert "needs v4 (KIP-464" in outcomes.failed["new"].message
        assert scripted.sent("CreateTopics") == []
        outcomes = await admin.create_topics([NewTopic("new", 3, 1)])
    assert (outcomes["new"].topic_id, outcomes["new"].partitions) == (None, None)


@pytest.mark.parametrize("newest", [6, 5])
@asynchronous
async def test_topics_are_deleted_by_name_in_both_layouts(newest):
    def deleted(asked):
        request = asked.request
        names = [one.name for one in request.topics] if asked.version >= 6 else request.topic_names
        results = [
            DeletableTopicResult(name=name, error_code=3 if name == "nope" else 0) for name in names
        ]
        return DeleteTopicsResponse(responses=results)

    async with (
        ScriptedCluster(1, {DeleteTopicsRequest: deleted}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("DeleteTopics", f"1-{newest}")
        outcomes = await admin.delete_topics(["t", "nope"])
    assert outcomes.succeeded == {"t": None}
    assert outcomes.failed["nope"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@asynchronous
async def test_a_deletion_that_may_have_arrived_is_not_sent_again():
    async with (
        ScriptedCluster(1, {DeleteTopicsRequest: lambda _: CLOSE}) as scripted,
        scripted.admin() as admin,
    ):
        outcomes = await admin.delete_topics("t")
    assert outcomes.failed["t"].code is ErrorCode.NETWORK_EXCEPTION
    assert len(scripted.sent("DeleteTopics")) == 1


@asynchronous
async def test_internal_topics_are_listed_when_asked_for():
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        metadata = scripted.answers[MetadataRequest]

        def with_internal(asked):
            answer = metadata(asked)
            for topic in answer.topics:
                topic.is_internal = topic.name.startswith("__")
            return answer

        scripted.answers[MetadataRequest] = with_internal
        scripted.topics = {"b": [0, 0], "a": [0], "__consumer_offsets": [0]}
        assert [(one.name, one.partitions) for one in await admin.list_topics()] == [
            ("a", 1),
            ("b", 2),
        ]
        assert [one.name for one in await admin.list_topics(internal=True)] == [
            *("__consumer_offsets", "a", "b")
        ]


@pytest.mark.parametrize("newest", [13, 3])
@asynchronous
async def test_topics_are_described_and_unknown_ones_named(newest):
    async with ScriptedCluster(2) as scripted, scripted.admin() as admin:
        scripted.offer("Metadata", f"0-{newest}")
        scripted.topics = {"orders": [0, 1, -1], "other": [0]}
        described = await admin.describe_topics(["orders", "nope"])
    assert [one.leader for one in described["orders"].partitions] == [0, 1, None]
    assert list(described) == ["orders", "nope"]
    assert described.failed["nope"].message == "topic nope does not exist"


# --- offsets by time


def found(asked):
    newest = {"orders": 100}
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=one.partition_index,
                        offset={-1: newest.get(topic.name, 7), -2: 0, -3: 9}.get(one.timestamp, -1),
                        timestamp=500 if one.timestamp == -3 else -1,
                        leader_epoch=2,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in asked.request.topics
        ]
    )


@asynchronous
async def test_each_leader_is_asked_once_for_all_that_it_leads():
    async with (
        ScriptedCluster(2, {ListOffsetsRequest: found}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.topics = {"orders": [0, 1], "pay": [0]}
        ends = await admin.end_offsets([("orders", 0), ("orders", 1), ("pay", 0), ("pay", 9)])
    assert {key: one.offset for key, one in ends.succeeded.items()} == {
        TopicPartition("orders", 0): 100,
        TopicPartition("orders", 1): 100,
        TopicPartition("pay", 0): 7,
    }
    assert ends.failed[TopicPartition("pay", 9)].message == "partition pay:9 does not exist"
    assert sorted(one.node for one in scripted.sent("ListOffsets")) == [0, 1]


@asynchronous
async def test_a_partition_without_a_leader_keeps_the_others_waiting_for_a_moment_only():
    """It has its error after a few look-ups, long before the deadline, and alone."""
    async with (
        ScriptedCluster(1, {ListOffsetsRequest: found}) as scripted,
        scripted.admin(600) as admin,
    ):
        scripted.topics = {"orders": [0, -1]}
        ends = await admin.end_offsets([("orders", 0), ("orders", 1)])
    assert ends["orders", 0].offset == 100
    error = ends.failed[TopicPartition("orders", 1)]
    assert (error.code, error.message) == (
        ErrorCode.LEADER_NOT_AVAILABLE,
        "partition orders:1 has no leader",
    )
    assert len(scripted.sent("Metadata")) == 5
    assert len(scripted.sent("ListOffsets")) == 1


@asynchronous
async def test_a_leader_that_is_elected_meanwhile_is_asked():
    async with (
        ScriptedCluster(1, {ListOffsetsRequest: found}) as scripted,
        scripted.admin() as admin,
    ):
        look_up = scripted.answers[MetadataRequest]

        def elect(asked):
            scripted.topics = {"orders": [0]}
            return look_up(asked)

        scripted.topics = {"orders": [-1]}
        scripted.answers[MetadataRequest] = in_turn(look_up, look_up, elect)
        ends = await admin.end_offsets([("orders", 0)])
    assert ends["orders", 0].offset == 100


@asynchronous
async def test_points_and_times():
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    async with (
        ScriptedCluster(1, {ListOffsetsRequest: found}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.topics = {"t": [0] * 5}
        points = ["earliest", "latest", "max_timestamp", 1234, noon]
        offsets = await admin.list_offsets(
            {("t", index): point for index, point in enumerate(points)}, read_committed=True
        )
    assert offsets["t", 0] == FoundOffset(0, None, 2)
    assert offsets["t", 2] == FoundOffset(9, 500, 2)
    assert offsets["t", 3] == FoundOffset(None, None, 2)
    (asked,) = scripted.sent("ListOffsets")
    assert asked.request.isolation_level == 1
    times = [one.timestamp for one in asked.request.topics[0].partitions]
    assert times == [-2, -1, -3, 1234, 1_767_268_800_000]


@asynchronous
async def test_a_datetime_asks_for_its_own_millisecond():
    """By way of a float that of 2004 comes out one too low."""
    moments = [EPOCH + timedelta(milliseconds=at) for at in (1_073_747_268_419, 1_767_225_600_001)]
    async with (
        ScriptedCluster(1, {ListOffsetsRequest: found}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.topics = {"t": [0, 0]}
        await admin.list_offsets({("t", index): when for index, when in enumerate(moments)})
    (asked,) = scripted.sent("ListOffsets")
    times = [one.timestamp for one in asked.request.topics[0].partitions]
    assert times == [1_073_747_268_419, 1_767_225_600_001]


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("newest", "'newest' is not a point in a log, expected one of latest, earliest"),
        (-1, "timestamp -1 is out of bounds"),
        (2**63, "timestamp 9223372036854775808 is out of bounds"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), "timestamp -1 is out of bounds"),
        (datetime(2026, 1, 1), "has no time zone"),  # noqa: DTZ001
    ],
)
@asynchronous
async def test_times_that_make_no_sense(when, message):
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        with pytest.raises(ValueError, match=message):
            await admin.list_offsets({("t", 0): when})


@asynchronous
async def test_a_leader_that_moved_is_looked_up_again():
    def moved(asked):
        scripted.topics["t"] = [1]
        answer = found(asked)
        answer.topics[0].partitions[0].error_code = 6
        return answer

    answers = {ListOffsetsRequest: in_turn(moved, found)}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.topics = {"t": [0]}
        assert (await admin.end_offsets([("t", 0)]))["t", 0].offset == 7
    assert [one.node for one in scripted.sent("ListOffsets")] == [0, 1]


@asynchronous
async def test_the_latest_timestamp_needs_a_broker_that_has_it():
    async with (
        ScriptedCluster(1, {ListOffsetsRequest: found}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("ListOffsets", "1-6")
        scripted.topics = {"t": [0]}
        outcome = await admin.list_offsets({("t", 0): "max_timestamp"})
    assert "needs v7 (KIP-734" in outcome.failed["t", 0].message
