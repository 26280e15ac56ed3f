"""Requests about groups on their way to the shards and back."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.runtime.driver import Condition
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

IDS = [f"group-{number}" for number in range(12)]


def commit(group_id, **more):
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    return OffsetCommitRequest(group_id=group_id, member_id="", topics=[topic], **more)


@pytest.fixture
def desk():
    desk = Desk()
    desk.create()
    for group_id in IDS:
        desk.ask(commit(group_id), 9)
    return desk


def listed(desk):
    answer = desk.ask(ListGroupsRequest(), 5)
    return answer.error_code, sorted(group.group_id for group in answer.groups)


def of_shard(desk, index):
    return [one for one in IDS if desk.cluster.coordinator(one)[1] is desk.cluster.drivers[index]]


def test_the_groups_of_every_shard_are_listed(desk):
    assert listed(desk) == (0, sorted(IDS))


def test_a_shard_that_cannot_be_loaded_is_left_out(desk):
    lost = of_shard(desk, 0)
    assert lost
    desk.cluster.drivers[0].condition = Condition.FAILED

    assert listed(desk) == (0, sorted(set(IDS).difference(lost)))


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_other_error_of_a_shard_is_the_answer(desk, code, monkeypatch):
    driver = desk.cluster.drivers[2]
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        driver.condition = Condition.LOADING
    else:
        monkeypatch.setattr(driver.shard, "call", lambda call, now: 1 / 0)

    assert listed(desk) == (code, [])


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i"), 4),
        (ConsumerGroupHeartbeatRequest(group_id="g", member_epoch=0, instance_id="i"), 0),
    ],
)
def test_static_membership_is_refused(desk, asked, version):
    answer = desk.ask(asked, version)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    text = getattr(answer, "error_message", "static membership is not supported yet")
    assert "static membership is not supported yet" in text


def test_commits_of_static_members_are_refused(desk):
    answer = desk.ask(commit("g", group_instance_id="i"), 9)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_regular_expression_is_refused(desk):
    asked = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, subscribed_topic_regex="a.*"
    )
    answer = desk.ask(asked, 1)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "'a.*': server-side regular expressions are not supported yet" in answer.error_message
