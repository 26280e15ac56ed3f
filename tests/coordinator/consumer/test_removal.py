# SPDX-License-Identifier: Apache-2.0
"""Members of consumer groups that an administrator takes out by LeaveGroup."""

from dataclasses import replace

import pytest
from tests.coordinator.classics import (
    leave,
)
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.terms import GroupId, GroupState
from kohort.wire.messages.leave_group import LeaveGroupRequest


def codes(answer) -> list[int]:
    assert answer.error_code == 0
    return [one.error_code for one in answer.members]


def test_members_of_a_consumer_group_can_be_taken_out_too():
    desk = Desk()
    for member_id in ("a", "b"):
        beat(desk, member_id, 0)
    desk.written()
    who = ErrorCode.UNKNOWN_MEMBER_ID
    assert codes(leave(desk, "a", "who", "a", ("", "i"))) == [0, who, 0, who]
    group = desk.shard.groups.consumer(GroupId("g"))
    assert (list(group.members), group.group_epoch) == (["b"], 4)
    assert [type(record.key).__name__ for record in desk.written()] == [
        "ConsumerGroupCurrentMemberAssignmentKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMetadataKey",
    ]
    answer = desk.told(LeaveGroupRequest(group_id="g", member_id="b"), 2)
    assert (answer.error_code, answer.members) == (0, [])
    assert codes(leave(desk)) == []
    assert group.state is GroupState.EMPTY


@pytest.mark.parametrize(
    ("identity", "code"),
    [
        (("", "i"), ErrorCode.NONE),
        (("m", "i"), ErrorCode.NONE),
        (("x", "i"), ErrorCode.FENCED_INSTANCE_ID),
        (("m", "j"), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_so_can_static_members_of_a_consumer_group(identity, code):
    desk = Desk()
    beat(desk, "m", 0)
    group = desk.shard.groups.consumer(GroupId("g"))
    group.put(replace(group.members["m"], instance_id="i"))
    assert codes(leave(desk, identity)) == [code]
    assert len(group.members) == (0 if code == ErrorCode.NONE else 1)
