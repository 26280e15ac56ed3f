# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete: offsets of topics that nobody reads."""

import pytest
from tests.coordinator.classics import QUICK, commit, leave, newcomer, stable
from tests.coordinator.committed import FIRST, G, delete, fetched
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey


def test_offsets_are_deleted_and_those_that_are_not_there_too():
    desk = Desk()
    commit(desk, {FIRST: 5, ("orders", 1): 6})
    desk.written()
    assert delete(desk, FIRST, ("orders", 3), ("payments", 0), FIRST) == {
        FIRST: 0,
        ("orders", 3): 0,
        ("payments", 0): 0,
    }
    assert desk.written() == [Record(OffsetCommitKey(group="g", topic="orders", partition=0), None)]
    assert fetched(desk) == {("orders", 1): (6, -1, "", 0)}


def test_the_last_offset_leaves_nothing_behind():
    desk = Desk()
    commit(desk, {FIRST: 5}, metadata="m")
    delete(desk, FIRST)
    assert desk.shard.offsets.committed == {}
    assert desk.shard.groups.classic(G) is not None


@pytest.mark.parametrize("group_id", ["", "none"])
def test_a_group_to_delete_from_must_be_there(group_id):
    expected = ErrorCode.GROUP_ID_NOT_FOUND if group_id else ErrorCode.INVALID_GROUP_ID
    assert delete(Desk(), FIRST, group_id=group_id) == expected


def test_topics_that_are_read_keep_their_offsets():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    assert delete(desk, ("payments", 0), FIRST) == {
        FIRST: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("payments", 0): 0,
    }
    leave(desk, leader)
    assert delete(desk, FIRST) == {FIRST: 0}


def test_topics_that_a_consumer_group_reads_keep_their_offsets():
    desk = Desk()
    beat(desk, "m", 0)
    assert delete(desk, FIRST, ("payments", 0)) == {
        FIRST: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("payments", 0): 0,
    }
    beat(desk, "m", -1)
    assert delete(desk, FIRST) == {FIRST: 0}


def test_a_group_of_another_protocol_type_keeps_all_while_it_has_members():
    desk = Desk(**QUICK)
    member_id, _ = newcomer(desk, protocol_type="connect")
    assert delete(desk, FIRST) == ErrorCode.NON_EMPTY_GROUP
    leave(desk, member_id)
    assert delete(desk, FIRST) == {FIRST: 0}
