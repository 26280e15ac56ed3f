# SPDX-License-Identifier: Apache-2.0
"""Heartbeat, and what becomes of members that fall silent."""

import pytest
from tests.coordinator.classics import QUICK, heartbeat, join, newcomer, stable, sync
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.terms import GroupId, GroupState


def group_in(desk: Desk):
    return desk.shard.groups.classic(GroupId("g"))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "none"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, ErrorCode.NONE),
    ],
)
def test_answers_in_a_stable_group(fields, code):
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    assert heartbeat(desk, **{"member_id": leader, "generation": 1, **fields}) == code


def test_answers_while_the_group_rebalances():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    follower, _ = newcomer(desk)
    assert heartbeat(desk, leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    join(desk, leader)
    assert heartbeat(desk, leader, 2) == ErrorCode.NONE
    assert heartbeat(desk, follower, 2) == ErrorCode.NONE


def test_an_id_that_was_only_given_out_has_no_heartbeat():
    desk = Desk(**QUICK)
    member_id = join(desk).answer.member_id
    assert heartbeat(desk, member_id, 0) == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_session_and_write_nothing():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    desk.written()
    for _ in range(5):
        desk.wait(9_999)
        assert heartbeat(desk, leader, 1) == ErrorCode.NONE
    assert desk.written() == []


def test_the_group_of_a_silent_member_becomes_empty():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    desk.written()
    desk.wait(10_000)
    assert heartbeat(desk, leader, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    group = group_in(desk)
    assert (group.state, group.generation, group.leader) == (GroupState.EMPTY, 2, None)
    (record,) = desk.written()
    assert (record.value.protocol_type, record.value.protocol) == ("consumer", None)
    assert (record.value.generation, record.value.members) == (2, [])


def test_a_silent_member_makes_the_others_rebalance():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    generation = group_in(desk).generation
    desk.wait(9_000)
    heartbeat(desk, follower, generation)
    desk.wait(1_000)
    assert heartbeat(desk, follower, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = join(desk, follower).answer
    assert (answer.leader, len(answer.members)) == (follower, 1)
    assert leader not in group_in(desk).members


def test_a_member_whose_join_is_parked_is_not_silent():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    waiting = join(desk, leader)
    for _ in range(3):
        desk.wait(9_000)
        heartbeat(desk, follower, 2)
    assert waiting.answer is None
    assert leader in group_in(desk).members
    join(desk, follower)
    assert waiting.answer.generation_id == 3


def test_a_member_whose_sync_is_parked_is_not_silent():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    join(desk, leader)
    join(desk, follower)
    waiting = sync(desk, follower, 3)
    for _ in range(3):
        desk.wait(9_000)
        heartbeat(desk, leader, 3)
    assert waiting.answer is None
    sync(desk, leader, 3)
    assert waiting.answer.error_code == 0
    desk.wait(9_999)
    assert follower in group_in(desk).members


def test_a_silent_member_ends_the_wait_for_joins():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    waiting = join(desk, leader)
    desk.wait(10_000)
    assert waiting.answer.generation_id == 3
    assert follower not in group_in(desk).members


def test_a_new_member_may_wait_five_minutes_for_its_first_answer():
    desk = Desk(**QUICK)
    leader, *_ = stable(desk, 1, rebalance_timeout_ms=1_000_000, session_timeout_ms=1_000_000)
    _, waiting = newcomer(desk)
    desk.wait(299_999)
    assert waiting.answer is None
    desk.wait(1)
    assert waiting.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(group_in(desk).members) == [leader]
