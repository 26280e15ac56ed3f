# SPDX-License-Identifier: Apache-2.0
"""SyncGroup: the leader's word becomes a record, and everybody's answer."""

import pytest
from tests.coordinator.classics import (
    QUICK,
    SUBSCRIBED,
    heartbeat,
    join,
    newcomer,
    stable,
    sync,
    sync_request,
)
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.records.schemas import GroupMetadataKey
from kohort.terms import GroupId, GroupState


def group_in(desk: Desk):
    return desk.shard.groups.classic(GroupId("g"))


def completing(desk: Desk) -> tuple[str, str]:
    """A group of two that waits for its leader."""
    (leader,) = stable(desk)
    follower, _ = newcomer(desk)
    join(desk, leader)
    assert group_in(desk).state is GroupState.COMPLETING_REBALANCE
    desk.written()
    return leader, follower


def test_the_leader_answers_who_waits_and_who_comes_later():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    waiting = sync(desk, follower, 2)
    assert waiting.answer is None
    leading = sync(desk, leader, 2, {leader: b"some", follower: b"rest", "stranger": b"x"})
    assert (leading.answer.assignment, waiting.answer.assignment) == (b"some", b"rest")
    assert (waiting.answer.protocol_type, waiting.answer.protocol_name) == ("consumer", "range")
    assert group_in(desk).state is GroupState.STABLE
    assert sync(desk, follower, 2).answer.assignment == b"rest"

    (record,) = desk.written()
    assert record.key == GroupMetadataKey(group="g")
    written = record.value
    assert (written.protocol_type, written.protocol, written.generation) == ("consumer", "range", 2)
    assert (written.leader, written.current_state_timestamp) == (leader, desk.now)
    one = written.members[0]
    assert (one.member_id, one.client_id, one.client_host) == (leader, "app", "/127.0.0.1")
    assert (one.rebalance_timeout, one.session_timeout) == (60_000, 10_000)
    assert (one.subscription, one.assignment) == (SUBSCRIBED, b"some")


def test_a_member_without_assignment_gets_an_empty_one():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    sync(desk, leader, 2)
    assert sync(desk, follower, 2).answer.assignment == b""


def test_what_was_synced_survives_a_restart():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    generation = group_in(desk).generation
    desk.restart()
    assert group_in(desk).state is GroupState.STABLE
    assert sync(desk, follower, generation).answer.assignment == follower.encode()
    assert heartbeat(desk, leader, generation) == 0


def test_a_restart_forgets_a_rebalance_under_way():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    desk.restart()
    assert group_in(desk).state is GroupState.STABLE
    assert heartbeat(desk, leader, 1) == 0
    assert heartbeat(desk, leader, 2) == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(desk, follower, 2) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "none"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": None, "group_id": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "who", "generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1, "protocol_type": "connect"}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_refusals(fields, code):
    desk = Desk(**QUICK)
    _, follower = completing(desk)
    answer = desk.told(sync_request(**{"member_id": follower, "generation": 2, **fields}), 5)
    assert answer.error_code == code
    assert (answer.protocol_type, answer.protocol_name, answer.assignment) == (None, None, b"")


def test_before_v5_no_protocol_is_named():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    request = sync_request(leader, 1, protocol_type=None, protocol_name=None)
    assert desk.told(request, 4).assignment == leader.encode()


def test_while_joins_are_awaited():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    newcomer(desk)
    assert sync(desk, leader, 1).answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_empty_group_has_no_members():
    desk = Desk(**QUICK)
    join(desk)
    assert sync(desk, "who", 0).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_never_syncs_is_left_behind():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    sync(desk, leader, 2, {leader: b"all"})
    for _ in range(10):
        desk.wait(6_000)
        heartbeat(desk, leader, 2)
        if follower in group_in(desk).members:
            heartbeat(desk, follower, 2)
    assert list(group_in(desk).members) == [leader]
    assert group_in(desk).state is GroupState.PREPARING_REBALANCE


def test_a_leader_that_never_syncs_is_left_behind():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    waiting = sync(desk, follower, 2)
    for _ in range(10):
        desk.wait(6_000)
        heartbeat(desk, leader, 2)
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(group_in(desk).members) == [follower]


def test_when_all_have_synced_nobody_is_waited_for():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    sync(desk, leader, 2)
    sync(desk, follower, 2)
    assert ("classic sync", "g") not in desk.shard.deadlines


def test_a_second_sync_of_one_member_answers_the_first():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    lost, again = sync(desk, follower, 2), sync(desk, follower, 2)
    assert lost.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    sync(desk, leader, 2, {follower: b"mine"})
    assert again.answer.assignment == b"mine"


def test_an_outcome_without_room_in_a_record_leaves_the_rebalance_as_it_is():
    desk = Desk(**QUICK)
    leader, follower = completing(desk)
    waiting = sync(desk, follower, 2)
    unasked = dict(group_in(desk).pending_sync)
    due = desk.driver.wake_at()

    refused = sync(desk, leader, 2, {leader: bytes(1 << 20)}).answer

    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (waiting.answer, desk.written(), desk.driver.wake_at()) == (None, [], due)
    assert group_in(desk).pending_sync == unasked
    assert group_in(desk).members[leader].sync is None
    assert sync(desk, leader, 2, {follower: b"all"}).answer.error_code == 0
    assert waiting.answer.assignment == b"all"


def test_what_is_let_in_has_room_in_the_log():
    """An outcome that only the log refuses would have taken the rebalance with it."""
    desk = Desk(**QUICK)
    leader, _ = completing(desk)
    unasked = dict(group_in(desk).pending_sync)
    desk.driver.limit_bytes = desk.shard.record_limit = lambda: 1000
    size = 1000
    while sync(desk, leader, 2, {leader: bytes(size)}).answer.error_code:
        assert group_in(desk).pending_sync == unasked
        size -= 1
    assert group_in(desk).state is GroupState.STABLE
