# SPDX-License-Identifier: Apache-2.0
"""LeaveGroup: each member for itself, then one step of the group."""

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
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kohort.terms import GroupId, GroupState
from kohort.wire.messages.leave_group import LeaveGroupRequest


def group_in(desk: Desk):
    return desk.shard.groups.classic(GroupId("g"))


def codes(answer) -> list[int]:
    assert answer.error_code == 0
    return [one.error_code for one in answer.members]


def test_the_last_member_leaves_an_empty_group():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    desk.written()
    assert codes(leave(desk, leader)) == [0]
    assert group_in(desk).state is GroupState.EMPTY
    (record,) = desk.written()
    assert (record.value.generation, record.value.members) == (2, [])


def test_a_group_that_became_empty_can_be_joined_again():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    leave(desk, leader)
    desk.restart()
    _, again = newcomer(desk, protocol_type="connect")
    assert (again.answer.generation_id, again.answer.protocol_type) == (3, "connect")


def test_several_members_make_one_rebalance():
    desk = Desk(**QUICK)
    leader, second, third = stable(desk, 3)
    generation = group_in(desk).generation
    assert codes(leave(desk, leader, "who", second)) == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert heartbeat(desk, third, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert join(desk, third).answer.generation_id == generation + 1
    assert group_in(desk).leader == third


def test_leaving_ends_the_wait_for_joins():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    waiting = join(desk, leader)
    leave(desk, follower)
    assert len(waiting.answer.members) == 1


def test_parked_calls_of_who_leaves_are_answered():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    joining = join(desk, leader)
    leave(desk, leader)
    assert joining.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joining.answer.member_id == ""
    join(desk, follower)
    newcomer_id, _ = newcomer(desk)
    join(desk, follower)
    syncing = sync(desk, newcomer_id, group_in(desk).generation)
    assert syncing.answer is None
    leave(desk, newcomer_id)
    assert syncing.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_such_an_id_that_leaves_ends_the_wait_for_it():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    expected = join(desk).answer.member_id
    waiting = join(desk, leader)
    assert waiting.answer is None
    leave(desk, expected)
    assert waiting.answer.generation_id == 2


def test_nobody_leaves():
    desk = Desk(**QUICK)
    stable(desk)
    assert codes(leave(desk)) == []
    assert group_in(desk).state is GroupState.STABLE


def test_unknown_groups_and_ids():
    desk = Desk()
    assert codes(leave(desk, "a", "b")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    answer = desk.told(LeaveGroupRequest(group_id=""), 5)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(3))
def test_before_v3_the_error_is_that_of_the_one_member(version):
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    for member_id, code in (("who", ErrorCode.UNKNOWN_MEMBER_ID), (leader, ErrorCode.NONE)):
        answer = desk.told(LeaveGroupRequest(group_id="g", member_id=member_id), version)
        assert (answer.error_code, answer.members) == (code, [])


def static(desk: Desk) -> None:
    members = [
        MemberMetadata(
            member_id=f"m{number}",
            group_instance_id=f"i{number}",
            client_id="app",
            client_host="/127.0.0.1",
            session_timeout=10_000,
            subscription=SUBSCRIBED,
            assignment=b"",
        )
        for number in range(3)
    ]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m0", members=members
    )
    desk.write(Record(GroupMetadataKey(group="g"), value), live=False)
    desk.restart()


@pytest.mark.parametrize(
    ("identity", "code"),
    [
        (("", "i0"), ErrorCode.NONE),
        (("m0", "i0"), ErrorCode.NONE),
        (("m0", "i1"), ErrorCode.FENCED_INSTANCE_ID),
        (("m0", "i9"), ErrorCode.UNKNOWN_MEMBER_ID),
        (("", "i9"), ErrorCode.UNKNOWN_MEMBER_ID),
        ("", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_static_members_of_a_log_are_taken_out_by_instance_id(identity, code):
    desk = Desk()
    static(desk)
    assert codes(leave(desk, identity)) == [code]
    left = code == ErrorCode.NONE
    assert len(group_in(desk).members) == (2 if left else 3)
    assert group_in(desk).state is (GroupState.PREPARING_REBALANCE if left else GroupState.STABLE)


@pytest.mark.parametrize("settled", [True, False])
def test_who_was_only_expected_and_leaves_causes_a_rebalance(settled):
    """As upstream: every entry of the request that was right is a reason."""
    desk = Desk(**QUICK)
    if settled:
        (leader,) = stable(desk)
    else:
        leader, _ = newcomer(desk)
    generation = group_in(desk).generation
    expected = join(desk).answer.member_id
    assert codes(leave(desk, expected)) == [0]
    assert group_in(desk).state is GroupState.PREPARING_REBALANCE
    assert heartbeat(desk, leader, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert join(desk, leader).answer.generation_id == generation + 1
    assert join(desk, expected).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("asked", [[], ["who"]])
def test_nobody_left_so_nothing_happens(asked):
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    leave(desk, *asked)
    assert heartbeat(desk, leader, group_in(desk).generation) == 0


def test_an_expected_member_that_leaves_an_empty_group_leaves_it_empty():
    desk = Desk(**QUICK)
    expected = join(desk).answer.member_id
    assert codes(leave(desk, expected)) == [0]
    assert group_in(desk).state is GroupState.EMPTY
