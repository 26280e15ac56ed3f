# SPDX-License-Identifier: Apache-2.0
"""What ends a remembered heartbeat of a classic group: whatever may change its answer."""

import pytest
from tests.coordinator.classics import (
    QUICK,
    SUBSCRIBED,
    heartbeat,
    join,
    leave,
    newcomer,
    stable,
    sync,
)
from tests.coordinator.consumers import request as consumer_request
from tests.coordinator.desk import Desk

from kohort.coordinator.classic.no_op_heartbeats import no_op_heartbeat_or_none
from kohort.errors import ErrorCode
from kohort.machines.effects import Client
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest

CLIENT = Client("app", "/127.0.0.1")


def no_op(desk, member_id, generation, **fields):
    asked = {"group_id": "g", "member_id": member_id, "generation_id": generation, **fields}
    return no_op_heartbeat_or_none(desk.shard, HeartbeatRequest(**asked), CLIENT)


def at_rest(desk):
    """The only member of a group that is Stable. The leader has assigned nothing."""
    member, _ = newcomer(desk)
    assert sync(desk, member, 1).answer.error_code == 0
    return member


def leave_and_delete(desk, member):
    leave(desk, member)
    (result,) = desk.told(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert result.error_code == 0


def upgrade(desk, _member):
    joining = consumer_request("new", 0, names=("orders",))
    assert desk.told(joining, 1).error_code == 0


def rebalance(desk, _member):
    """The whole way to the next generation, which is Stable too."""
    newcomer(desk)
    group = desk.shard.groups.classic("g")
    for known in list(group.members):
        join(desk, known)
    assert group.generation == 2


CHANGES = {
    "another member joins": (lambda desk, _: newcomer(desk), ErrorCode.REBALANCE_IN_PROGRESS),
    "the next generation begins": (rebalance, ErrorCode.ILLEGAL_GENERATION),
    "the member leaves": (leave, ErrorCode.UNKNOWN_MEMBER_ID),
    "its session ends": (lambda desk, _: desk.wait(10_000), ErrorCode.UNKNOWN_MEMBER_ID),
    "the group is deleted": (leave_and_delete, ErrorCode.UNKNOWN_MEMBER_ID),
    "it is a consumer group now": (upgrade, ErrorCode.REBALANCE_IN_PROGRESS),
    "the shard is read anew": (lambda desk, _: desk.restart(), ErrorCode.NONE),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_what_is_remembered(change):
    desk = Desk(**QUICK)
    member = at_rest(desk)
    remembered = no_op(desk, member, 1)
    assert remembered.holds(desk.shard)
    act, code = CHANGES[change]
    act(desk, member)
    assert not remembered.holds(desk.shard)
    assert heartbeat(desk, member, 1) == code


def test_a_static_member_that_comes_back_fences_its_former_self():
    desk = Desk(**QUICK)
    (member,) = stable(desk, group_instance_id="i")
    remembered = no_op(desk, member, 1, group_instance_id="i")
    assert remembered.holds(desk.shard)
    join(desk, group_instance_id="i")
    assert not remembered.holds(desk.shard)
    code = heartbeat(desk, member, 1, group_instance_id="i")
    assert code == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": "none"},
        {"member_id": "who"},
        {"generation_id": 0},
        {"generation_id": 2},
        {"group_instance_id": "i"},
    ],
)
def test_what_is_refused_is_not_remembered(fields):
    desk = Desk(**QUICK)
    (member,) = stable(desk)
    asked = {"group_id": "g", "member_id": member, "generation_id": 1}
    assert no_op_heartbeat_or_none(desk.shard, HeartbeatRequest(**asked), CLIENT)
    assert not no_op_heartbeat_or_none(desk.shard, HeartbeatRequest(**asked | fields), CLIENT)


def test_nothing_is_remembered_between_two_generations():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    newcomer(desk)
    assert no_op(desk, leader, 1) is None  # PreparingRebalance
    join(desk, leader)
    assert heartbeat(desk, leader, 2) == ErrorCode.NONE
    assert no_op(desk, leader, 2) is None  # CompletingRebalance


def test_a_classic_member_of_a_consumer_group_is_not_remembered():
    desk = Desk(**QUICK)
    member = at_rest(desk)
    upgrade(desk, member)
    assert no_op(desk, member, desk.shard.groups.consumer("g").members[member].epoch) is None


def test_a_member_that_comes_with_another_timeout_has_that_one():
    desk = Desk(**QUICK)
    (member,) = stable(desk, session_timeout_ms=10_000)
    remembered = no_op(desk, member, 1)
    group = desk.shard.groups.classic("g")
    group.members[member].session_timeout_ms = 20_000
    assert not remembered.holds(desk.shard)


def test_a_session_is_renewed_as_by_the_normal_path():
    desk = Desk(**QUICK)
    (member,) = stable(desk)
    remembered = no_op(desk, member, 1)
    key = "classic session", "g", member
    desk.wait(5_000)
    desk.shard.deadlines.renew(remembered.session, desk.now)
    at = desk.shard.deadlines.at(key)
    assert at == desk.now + 10_000
    assert heartbeat(desk, member, 1) == ErrorCode.NONE
    assert desk.shard.deadlines.at(key) == at
    desk.wait(9_999)
    assert member in desk.shard.groups.classic("g").members
    desk.wait(1)
    assert member not in desk.shard.groups.classic("g").members


def test_another_subscription_ends_it():
    """The same member joins again with other bytes: the group rebalances."""
    desk = Desk(**QUICK)
    members = stable(desk, 2)
    generation = desk.shard.groups.classic("g").generation
    remembered = no_op(desk, members[1], generation)
    join(desk, members[0], protocols={"range": SUBSCRIBED + b"more"})
    assert not remembered.holds(desk.shard)
