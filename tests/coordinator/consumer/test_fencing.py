# SPDX-License-Identifier: Apache-2.0
"""The ends of a membership: leaving, silence, and partitions that are not given up in time."""

from typing import Any

import pytest
from tests.coordinator.consumers import Consumer, beat, kinds, settled
from tests.coordinator.desk import Desk

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.timers import REVOCATION, SESSION
from kohort.errors import ErrorCode
from kohort.terms import GroupState

GONE = ["-current", "-target", "-member", "epoch"]


def group_of(desk: Desk) -> ConsumerGroup:
    group = desk.shard.groups.consumer("g")
    assert group is not None
    return group


def test_a_member_leaves_at_any_epoch() -> None:
    """K848-032, K848-092."""
    desk = Desk()
    settled(desk, "a", "b")
    desk.written()
    answer = beat(desk, "a", -1)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", -1)
    assert answer.heartbeat_interval_ms == 0
    assert kinds(desk.written()) == GONE
    assert group_of(desk).state is GroupState.ASSIGNING
    assert beat(desk, "a", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_what_a_member_leaves_behind_goes_to_the_others_at_their_next_heartbeat() -> None:
    """K848-092."""
    desk = Desk()
    _, b = settled(desk, "a", "b")
    beat(desk, "a", -1)
    assert b.beat().owned == {"orders": [0, 1, 2, 3]}
    assert group_of(desk).state is GroupState.STABLE


def test_an_emptied_group_has_an_empty_target_of_its_epoch() -> None:
    """KAFKA-20442."""
    desk = Desk()
    beat(desk, "a", 0)
    desk.written()
    beat(desk, "a", -1)
    assert kinds(desk.written()) == [*GONE, "target epoch"]
    group = group_of(desk)
    assert (group.state, group.group_epoch, group.target_epoch) == (GroupState.EMPTY, 3, 3)
    assert (group.targets, group.held, group.metadata_hash) == ({}, {}, 0)
    assert beat(desk, "a", 0).member_epoch == 4


def test_silence_ends_a_membership() -> None:
    """K848-032, K848-096."""
    desk = Desk()
    settled(desk, "a", "b")
    desk.wait(44_999)
    beat(desk, "b", 3)
    desk.written()
    desk.wait(1)
    assert kinds(desk.written()) == GONE
    assert list(group_of(desk).members) == ["b"]
    assert beat(desk, "a", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_every_heartbeat_keeps_a_member_alive() -> None:
    desk = Desk()
    beat(desk, "a", 0)
    for _ in range(5):
        desk.wait(44_000)
        assert beat(desk, "a", 2).error_code == 0


def test_who_leaves_has_no_deadline_any_more() -> None:
    desk = Desk()
    Consumer(desk, "a").join().beat()
    Consumer(desk, "b").join()
    beat(desk, "a", 2)
    assert (REVOCATION, "g", "a") in desk.shard.deadlines
    beat(desk, "a", -1)
    assert (SESSION, "g", "a") not in desk.shard.deadlines
    assert (REVOCATION, "g", "a") not in desk.shard.deadlines


def revoking(desk: Desk, timeout_ms: int) -> None:
    Consumer(desk, "a", rebalance_timeout_ms=timeout_ms).join()
    Consumer(desk, "b").join()
    beat(desk, "a", 2)


def test_who_does_not_give_up_in_time_is_put_out() -> None:
    """K848-032, K848-082."""
    desk = Desk()
    revoking(desk, 10_000)
    desk.wait(9_000)
    assert beat(desk, "a", 2).error_code == 0
    assert beat(desk, "b", 3).assignment is None
    desk.wait(1_000)
    assert list(group_of(desk).members) == ["b"]
    received = beat(desk, "b", 3)
    assert received.member_epoch == 4
    assert received.assignment is not None


def test_who_gives_up_in_time_has_nothing_to_fear() -> None:
    desk = Desk()
    revoking(desk, 10_000)
    assert beat(desk, "a", 2, owned={"orders": [0, 1]}).member_epoch == 3
    assert (REVOCATION, "g", "a") not in desk.shard.deadlines
    desk.wait(20_000)
    assert list(group_of(desk).members) == ["a", "b"]


def test_newer_targets_do_not_give_more_time() -> None:
    """K848-087: KAFKA-16249."""
    desk = Desk()
    revoking(desk, 10_000)
    desk.wait(9_000)
    beat(desk, "c", 0)
    beat(desk, "a", 2)
    desk.wait(1_000)
    assert list(group_of(desk).members) == ["b", "c"]


@pytest.mark.parametrize("timeout_ms", [0, -5])
def test_a_timeout_of_nothing_is_over_at_once(timeout_ms: int) -> None:
    desk = Desk()
    revoking(desk, timeout_ms)
    desk.wait(0)
    assert list(group_of(desk).members) == ["b"]


def test_a_restart_begins_every_session_anew() -> None:
    """K848-028."""
    desk = Desk()
    revoking(desk, 10_000)
    desk.wait(8_000)
    desk.restart()
    desk.wait(9_000)
    assert list(group_of(desk).members) == ["a", "b"]
    desk.wait(1_000)
    assert list(group_of(desk).members) == ["b"]
    desk.wait(35_000)
    assert list(group_of(desk).members) == []


def test_deadlines_of_groups_that_are_gone_do_nothing() -> None:
    from kohort.coordinator.consumer import fencing

    shard: Any = Desk().shard
    assert fencing.session_over(shard, 0, "g", "m").records == []
    assert fencing.revocation_overdue(shard, 0, "g", "m", 3).records == []


def test_several_members_go_with_one_epoch() -> None:
    from kohort.coordinator.consumer import fencing

    desk = Desk()
    settled(desk, "a", "b", "c")
    group = group_of(desk)
    records = fencing.records_without(desk.shard, group, [group.members["a"], group.members["b"]])
    assert kinds(records) == [*GONE[:3], *GONE]


def test_a_refused_answer_to_a_revocation_does_not_end_its_deadline() -> None:
    desk = Desk()
    Consumer(desk, "a").join()
    beat(desk, "b", 0)
    assert beat(desk, "a", 2).error_code == 0
    assert (REVOCATION, "g", "a") in desk.shard.deadlines
    desk.driver.limit_bytes = lambda: 100
    answer = beat(desk, "a", 2, owned={"orders": [0, 1]})
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (REVOCATION, "g", "a") in desk.shard.deadlines


def test_who_was_not_told_to_give_up_has_all_the_time() -> None:
    desk = Desk()
    Consumer(desk, "a").join()
    beat(desk, "b", 0)
    desk.driver.limit_bytes = lambda: 100
    assert beat(desk, "a", 2).error_code == ErrorCode.MESSAGE_TOO_LARGE
    desk.driver.limit_bytes = lambda: 1 << 20
    for _ in range(3):
        desk.wait(30_000)
        assert "a" in group_of(desk).members
        desk.shard.deadlines.set((SESSION, "g", "a"), desk.now + 40_000)


def test_who_could_not_leave_can_still_fall_silent() -> None:
    desk = Desk()
    Consumer(desk, "a").join()
    desk.driver.limit_bytes = lambda: 70
    answer = beat(desk, "a", -1)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (SESSION, "g", "a") in desk.shard.deadlines
