# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch: what was committed is read back, for those who may read."""

import pytest
from tests.coordinator.classics import QUICK, commit, commit_request, stable
from tests.coordinator.committed import FIRST, NOTHING, G, fetched
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk, topic_id

from kohort.errors import ErrorCode
from kohort.terms import GroupState
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


def test_what_was_committed_is_read_back_also_after_a_restart():
    desk = Desk()
    request = commit_request({FIRST: 5, ("orders", 2): 7, ("payments", 0): -5}, metadata="m")
    request.topics[0].partitions[1].committed_leader_epoch = 4
    desk.told(request, 9)
    expected = {
        FIRST: (5, -1, "m", 0),
        ("orders", 2): (7, 4, "m", 0),
        ("payments", 0): (-5, -1, "m", 0),
    }
    assert fetched(desk) == expected
    desk.restart()
    assert fetched(desk) == expected
    assert desk.shard.groups.classic(G).state is GroupState.EMPTY


def test_what_was_never_committed_is_no_error():
    """K709-17."""
    desk = Desk()
    commit(desk, {("orders", 2): 7})
    wanted = [FIRST, ("orders", 2), ("orders", 99), ("orders", -1), ("unknown", 0)]
    assert fetched(desk, wanted=wanted) == {
        FIRST: NOTHING,
        ("orders", 2): (7, -1, "", 0),
        ("orders", 99): NOTHING,
        ("orders", -1): NOTHING,
        ("unknown", 0): NOTHING,
    }
    assert fetched(desk, "none", [FIRST]) == {FIRST: NOTHING}
    assert fetched(desk, "none") == {}


def test_many_groups_in_one_request():
    """K709-03, K709-13, K709-16."""
    desk = Desk()
    for number in range(3):
        commit(desk, {FIRST: number}, group_id=f"g{number}")
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g2", "none", "g0")
        ]
    )
    answer = desk.told(request, 10)
    assert [group.group_id for group in answer.groups] == ["g2", "none", "g0"]
    assert [len(group.topics) for group in answer.groups] == [1, 0, 1]
    assert answer.groups[0].topics[0].topic_id == topic_id("orders")
    assert desk.told(OffsetFetchRequest(groups=[]), 10).groups == []


def test_one_request_may_ask_for_all_of_one_group_and_for_some_of_another():
    """K709-03, K709-18: the empty id is an id."""
    desk = Desk()
    for group_id in ("", "g", "h"):
        commit(desk, {FIRST: 5, ("orders", 1): 6}, group_id=group_id)
    some = [OffsetFetchRequestTopics(name="orders", partition_indexes=[1, 3])]
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="h", topics=None),
            OffsetFetchRequestGroup(group_id="", topics=some),
            OffsetFetchRequestGroup(group_id="g", topics=[]),
        ]
    )
    groups = desk.told(request, 10).groups
    assert [(group.group_id, group.error_code) for group in groups] == [("h", 0), ("", 0), ("g", 0)]
    assert [
        [
            (one.partition_index, one.committed_offset)
            for topic in group.topics
            for one in topic.partitions
        ]
        for group in groups
    ] == [[(0, 5), (1, 6)], [(1, 6), (3, -1)], []]


def test_members_of_classic_groups_are_not_checked():
    desk = Desk(**QUICK)
    stable(desk)
    assert fetched(desk, wanted=[FIRST], member_id="who", member_epoch=9) == {FIRST: NOTHING}


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        ({}, None),
        ({"member_id": "m", "member_epoch": 2}, None),
        ({"member_id": "m", "member_epoch": 1}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "m", "member_epoch": 3}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "who", "member_epoch": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": None, "member_epoch": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_members_of_consumer_groups_are_checked(caller, code):
    """K848-103."""
    desk = Desk()
    beat(desk, "m", 0)
    commit(desk, {FIRST: 5}, member_id="m", generation_id_or_member_epoch=2)
    expected = {FIRST: (5, -1, "", 0)} if code is None else code
    assert fetched(desk, wanted=[FIRST], **caller) == expected
