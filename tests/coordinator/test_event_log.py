# SPDX-License-Identifier: Apache-2.0
"""What a broker's log says of groups: who did what, and from which state to which."""

from tests.coordinator.classics import QUICK, commit, join, leave, newcomer, stable, sync
from tests.coordinator.consumers import Consumer, beat, settled
from tests.coordinator.desk import Desk

from kohort.wire.messages.delete_groups import DeleteGroupsRequest


def told(desk: Desk) -> list[str]:
    """The lines since this was last asked."""
    lines = list(desk.told_lines.lines)
    desk.told_lines.lines.clear()
    return lines


def test_a_consumer_group_comes_grows_and_ends() -> None:
    desk = Desk()
    told(desk)
    beat(desk, "a", 0)
    assert told(desk) == ["group g: new -> consumer Stable; member a joins; epoch 2"]
    beat(desk, "b", 0)
    assert told(desk) == [
        "group g: consumer Stable -> consumer Reconciling; member b joins; epoch 3"
    ]
    beat(desk, "a", -1)
    beat(desk, "b", -1)
    assert told(desk) == [
        "group g: consumer Reconciling -> consumer Assigning; member a leaves; epoch 4",
        "group g: consumer Assigning -> consumer Empty; member b leaves; epoch 5",
    ]
    desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert told(desk) == ["group g: consumer Empty -> deleted; an administrator deletes it"]


def test_who_is_put_out_is_named_with_the_reason() -> None:
    desk = Desk()
    Consumer(desk, "a", rebalance_timeout_ms=10_000).join()
    Consumer(desk, "b").join()
    beat(desk, "a", 2)
    told(desk)
    desk.wait(10_000)
    (line,) = told(desk)
    assert "member a" in line
    assert "10000 ms" in line
    desk.wait(35_000)
    (line,) = told(desk)
    assert "consumer Empty; the session of member b is over" in line
    assert "45000 ms" in line


def test_heartbeats_and_commits_are_no_story() -> None:
    desk = Desk()
    a, b = settled(desk, "a", "b")
    told(desk)
    for _ in range(3):
        a.beat()
        b.beat()
    commit(desk, {("orders", 0): 1}, member_id="a", generation_id_or_member_epoch=3)
    assert told(desk) == []


def test_a_classic_rebalance_is_told_although_nothing_is_written() -> None:
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    told(desk)
    follower, _ = newcomer(desk)
    assert told(desk) == [
        f"group g: classic Stable -> classic PreparingRebalance; member {follower} joins"
    ]
    join(desk, leader)
    sync(desk, leader, 2)
    assert [line.partition(";")[0] for line in told(desk)] == [
        "group g: classic PreparingRebalance -> classic CompletingRebalance",
        "group g: classic CompletingRebalance -> classic Stable",
    ]
    leave(desk, leader)
    (line,) = told(desk)
    assert f"member {leader} leaves" in line


def test_what_a_log_has_brought_back_is_not_told_anew() -> None:
    desk = Desk()
    settled(desk, "a")
    told(desk)
    desk.restart()
    assert [line for line in told(desk) if line.startswith("group ")] == []
