# SPDX-License-Identifier: Apache-2.0
"""Groups are counted as they change. The desk of these tests also walks after each turn, so every
test of the coordinator is one of the gauges.
"""

from tests.coordinator.classics import QUICK, commit, join, leave, newcomer, stable, sync
from tests.coordinator.consumers import beat, settled
from tests.coordinator.desk import Desk

from kohort.terms import GroupState, GroupType
from kohort.wire.messages.delete_groups import DeleteGroupsRequest


def counted(desk):
    counts = desk.shard.event_log.gauges.counts
    return {(str(kind), str(state)): count for (kind, state), count in counts.items() if count}


def test_a_group_is_counted_in_the_state_that_it_has():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    assert counted(desk) == {("classic", "Stable"): 1}
    newcomer(desk)
    assert counted(desk) == {("classic", "PreparingRebalance"): 1}
    join(desk, leader)
    assert counted(desk) == {("classic", "CompletingRebalance"): 1}
    sync(desk, leader, 2)
    beat(desk, "a", 0, group_id="h")
    assert counted(desk) == {("classic", "Stable"): 1, ("consumer", "Stable"): 1}


def test_a_join_phase_that_ends_by_a_deadline_is_seen():
    """Nothing is written then, and nobody has called."""
    desk = Desk(group_initial_rebalance_delay_ms=3000)
    newcomer(desk)
    assert counted(desk) == {("classic", "PreparingRebalance"): 1}
    desk.wait(3000)
    assert counted(desk) == {("classic", "CompletingRebalance"): 1}


def test_groups_that_go_are_not_counted_any_more():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    leave(desk, leader)
    assert counted(desk) == {("classic", "Empty"): 1}
    desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert counted(desk) == {}


def test_a_group_that_becomes_another_type_is_counted_once():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    leave(desk, leader)
    beat(desk, "a", 0)
    assert counted(desk) == {("consumer", "Stable"): 1}


def test_what_a_log_brings_back_is_counted_once_it_is_read():
    desk = Desk()
    settled(desk, "a", "b")
    commit(desk, {("orders", 0): 1, ("orders", 1): 1}, group_id="simple")
    before = counted(desk)
    desk.restart()
    assert counted(desk) == before
    assert desk.shard.offsets.count.number == 2
    gauges = desk.shard.event_log.gauges
    assert gauges.last_seen("simple") == (GroupType.CLASSIC, GroupState.EMPTY)
    assert gauges.last_seen("nobody") is None
