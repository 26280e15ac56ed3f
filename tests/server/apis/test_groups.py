# SPDX-License-Identifier: Apache-2.0
"""Requests about groups on their way to the shards and back."""

from itertools import pairwise

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.runtime.driver import Condition
from kohort.server.apis.groups import DELETED_AT_ONCE, DESCRIBED_AT_ONCE
from kohort.server.scheduler import MACHINES_NS
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

NOT_ASKED = -2147483648

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
    return [one for one in IDS if desk.cluster.placement.shard_of(one) == index]


def test_the_groups_of_every_shard_are_listed(desk):
    assert listed(desk) == (0, sorted(IDS))


@pytest.mark.parametrize("version", [5, 6])
def test_operations_are_told_when_asked_for(desk, version):
    """K40-30."""
    for asked, told in ((False, NOT_ASKED), (True, 3400)):
        request = DescribeGroupsRequest(groups=IDS[:2], include_authorized_operations=asked)
        groups = desk.ask(request, version).groups
        assert [one.authorized_operations for one in groups] == [told, told]


def test_operations_of_no_group_are_those_of_a_dead_one_as_long_as_there_is_no_error(desk):
    """K40-30."""
    request = DescribeGroupsRequest(groups=["none"], include_authorized_operations=True)
    assert desk.ask(request, 5).groups[0].authorized_operations == 3400
    assert desk.ask(request, 6).groups[0].authorized_operations == NOT_ASKED


def test_a_shard_that_cannot_be_loaded_is_left_out(desk):
    lost = of_shard(desk, 0)
    assert lost
    desk.cluster.drivers[0].condition = Condition.FAILED

    assert listed(desk) == (0, sorted(set(IDS).difference(lost)))


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_other_error_of_a_shard_is_the_answer(desk, code, monkeypatch):
    """K40-07."""
    driver = desk.cluster.drivers[2]
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        driver.condition = Condition.LOADING
    else:
        monkeypatch.setattr(driver.machine, "call", lambda call, now: 1 / 0)

    assert listed(desk) == (code, [])


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists_every_group_and_the_newer_ones_their_states(desk, version):
    """K518-03, K518-06, K518-10."""
    answer = desk.ask(ListGroupsRequest(), version)

    assert sorted(one.group_id for one in answer.groups) == sorted(IDS)
    assert {one.group_state for one in answer.groups} == {"Empty" if version >= 4 else ""}


def told_of(desk, ids, node=0):
    """What DescribeGroups, ConsumerGroupDescribe and DeleteGroups say of groups."""
    old = desk.ask(DescribeGroupsRequest(groups=ids), 6, node=node).groups
    new = desk.ask(
        ConsumerGroupDescribeRequest(group_ids=ids, include_authorized_operations=False),
        1,
        node=node,
    ).groups
    gone = desk.ask(DeleteGroupsRequest(groups_names=ids), 2, node=node).results
    return [{one.group_id: one.error_code for one in answer} for answer in (old, new, gone)]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (Condition.LOADING, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (Condition.FAILED, ErrorCode.NOT_COORDINATOR),
        (None, ErrorCode.COORDINATOR_NOT_AVAILABLE),  # its log cannot be opened now
    ],
)
def test_groups_of_a_shard_that_is_not_there_are_refused_and_the_others_served(
    desk, condition, code
):
    """K40-14, K229-09."""
    lost = of_shard(desk, 0)
    assert 0 < len(lost) < len(IDS)
    if condition is None:
        del desk.cluster.drivers[0]
    else:
        desk.cluster.drivers[0].condition = condition

    old, new, gone = told_of(desk, IDS)

    assert old == gone == {one: code if one in lost else 0 for one in IDS}
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert new == {one: code if one in lost else missing for one in IDS}


@pytest.mark.parametrize("version", range(5))
def test_a_member_whose_shard_is_loading_is_alive(desk, version):
    """Any other answer would end the heartbeats of aiokafka for good."""
    request = HeartbeatRequest(group_id=IDS[0], generation_id=1, member_id="m")
    assert desk.ask(request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    for driver in desk.cluster.drivers.values():
        driver.condition = Condition.LOADING
    assert desk.ask(request, version).error_code == ErrorCode.NONE


def test_groups_of_another_node_are_refused_and_the_others_served():
    """K40-23, K229-09."""
    desk = Desk(nodes=3)
    desk.create()
    home = {one: desk.cluster.placement.coordinator_of(one) for one in IDS}
    for group_id in IDS:
        answer = desk.ask(commit(group_id), 9, node=home[group_id])
        assert answer.topics[0].partitions[0].error_code == 0

    for node in range(3):
        old, new, gone = told_of(desk, IDS, node)
        elsewhere = ErrorCode.NOT_COORDINATOR
        assert old == gone == {one: 0 if home[one] == node else elsewhere for one in IDS}
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        assert new == {one: missing if home[one] == node else elsewhere for one in IDS}
    assert set(home.values()) == {0, 1, 2}


def test_many_groups_are_deleted_a_few_at_a_time_and_others_come_in_between(desk):
    """One that cannot be deleted leaves the others alone; the answer is whole and in order.

    Holds K229-28.
    """
    ids = [f"many-{number}" for number in range(5 * DELETED_AT_ONCE)]
    for group_id in ids:
        desk.ask(commit(group_id), 9)
    desk.step_ns = MACHINES_NS
    asked = desk.send(DeleteGroupsRequest(groups_names=[*ids, "none", ids[0]]), 2)
    left = []
    while asked.answer is None:
        desk.step()
        desk.take()
        left.append(sum(len(one.machine.groups) for one in desk.cluster.drivers.values()))

    assert DELETED_AT_ONCE < 100, "each may have thousands of offsets"
    assert all(before - after <= DELETED_AT_ONCE for before, after in pairwise(left))
    assert {one.group_id: one.error_code for one in asked.answer.results} == {
        **dict.fromkeys(ids, 0),
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert listed(desk) == (0, sorted(IDS))


@pytest.mark.parametrize("api", [DescribeGroupsRequest, ConsumerGroupDescribeRequest])
def test_many_groups_are_described_some_at_a_time_and_others_come_in_between(desk, api):
    ids = [f"many-{number}" for number in range(4 * DESCRIBED_AT_ONCE)]
    field = "groups" if api is DescribeGroupsRequest else "group_ids"
    asked = desk.send(api(**{field: [IDS[0], *ids]}), 1 if field == "group_ids" else 5)
    desk.another()
    desk.step_ns = MACHINES_NS
    desk.step()
    short = desk.send(DescribeGroupsRequest(groups=[IDS[1]]), 5, node=1)
    while short.answer is None:
        desk.step()
        desk.take()
    assert (short.answer.groups[0].group_id, asked.answer) == (IDS[1], None)
    desk.settle()

    assert DESCRIBED_AT_ONCE <= 1000, "others wait for them"
    assert {one.group_id for one in asked.answer.groups} == {IDS[0], *ids}
