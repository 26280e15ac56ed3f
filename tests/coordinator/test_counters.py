# SPDX-License-Identifier: Apache-2.0
"""What has happened is counted when it happens, and only then."""

from tests.coordinator.classics import QUICK, commit, join, newcomer, stable, sync
from tests.coordinator.committed import delete
from tests.coordinator.consumers import beat, settled
from tests.coordinator.desk import Desk, topics

from kohort.wire.messages.delete_groups import DeleteGroupsRequest


def test_an_epoch_is_counted_and_a_change_of_state_is_not():
    """K848-133: rebalances can be told from changes of state."""
    desk = Desk()
    a, b = settled(desk, "a", "b")
    counters = desk.shard.counters
    assert counters.group_epochs == 2
    desk.wait(1000)
    a.beat()
    b.beat()
    assert counters.group_epochs == 2
    beat(desk, "b", -1)
    assert (counters.group_epochs, counters.completed_rebalances) == (3, 0)


def test_a_classic_rebalance_counts_when_its_members_get_assignments():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    counters = desk.shard.counters
    assert counters.completed_rebalances == 1
    newcomer(desk)
    join(desk, leader)
    assert counters.completed_rebalances == 1
    sync(desk, leader, 2)
    assert (counters.completed_rebalances, counters.group_epochs) == (2, 0)


def test_offsets_are_counted_one_by_one():
    """K848-134."""
    desk = Desk()
    counters = desk.shard.counters
    commit(desk, {("orders", 0): 1, ("orders", 1): 1, ("payments", 0): 1})
    commit(desk, {("orders", 0): 2})
    assert (counters.offset_commits, desk.shard.offsets.count.number) == (4, 3)
    delete(desk, ("orders", 0), ("orders", 3))
    assert (counters.offset_deletions, desk.shard.offsets.count.number) == (1, 2)
    desk.topics_changed(topics(payments=2))
    assert (counters.offset_deletions, desk.shard.offsets.count.number) == (2, 1)
    desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert (counters.offset_deletions, desk.shard.offsets.count.number) == (3, 0)
    assert counters.offset_expirations == 0


def test_a_commit_that_is_refused_does_not_count():
    desk = Desk()
    commit(desk, {("orders", 0): 1}, member_id="stranger", generation_id_or_member_epoch=4)
    assert desk.shard.counters.offset_commits == 0
