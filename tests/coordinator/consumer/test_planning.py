# SPDX-License-Identifier: Apache-2.0
"""When a target is computed, by whom, and what of it is written."""

from dataclasses import replace
from typing import Any

import pytest
from tests.coordinator.consumers import Consumer, beat, kinds, settled
from tests.coordinator.desk import Desk, topic_id, topics

from kohort.assignors import AssignorError
from kohort.coordinator.consumer import planning
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.target import NOTHING
from kohort.errors import ErrorCode
from kohort.terms import Millis
from kohort.wire.messages.delete_groups import DeleteGroupsRequest


@pytest.mark.parametrize(
    ("interval_ms", "made_at", "epoch", "now", "due"),
    [
        (0, 100, 3, 100, True),
        (0, 100, 2, 100, False),
        (1000, 0, 3, 100, True),
        (1000, 100, 3, 1099, False),
        (1000, 100, 3, 1100, True),
        (1000, 100, 2, 9999, False),
        (1000, 5000, 3, 100, True),  # the clock was set back: found by the simulator
    ],
)
def test_when_it_is_due(interval_ms: int, made_at: int, epoch: int, now: int, due: bool) -> None:  # noqa: FBT001
    """K848-039."""
    shard = Desk(group_consumer_assignment_interval_ms=interval_ms).shard
    group = ConsumerGroup("g", shard.consumer_settings)
    group.target_epoch, group.target_time = 2, Millis(made_at)
    planned = planning.plan(shard, group, Member("a"), epoch, Millis(now))
    assert (planned is not None) is due


def test_only_changed_targets_are_written() -> None:
    desk = Desk(known=topics(orders=2, payments=2))
    settled(desk, "a", "b")
    desk.written()
    beat(desk, "c", 0, names=["payments"])
    assert kinds(desk.written()) == ["member", "epoch", "target", "target epoch", "current"]


def test_a_target_of_nothing_is_written_once() -> None:
    desk = Desk(known=topics(orders=1))
    settled(desk, "a")
    beat(desk, "b", 0)
    assert desk.shard.groups.consumer("g").targets["b"] == NOTHING
    desk.written()
    beat(desk, "c", 0)
    assert kinds(desk.written()).count("target") == 1


def test_the_assignor_sees_the_member_as_it_is_after_the_heartbeat() -> None:
    """K848-039."""
    desk = Desk()
    seen: list[Any] = []

    def spy(members: Any, partitions: Any) -> Any:
        seen.append((dict(members), dict(partitions)))
        return {member: {} for member in members}

    desk.shard.assignors["uniform"] = spy
    beat(desk, "a", 0, names=["orders", "nowhere"], rack_id="r")
    beat(desk, "b", 0, names=["payments"])
    members, partitions = seen[-1]
    assert list(members) == ["a", "b"]
    assert members["a"].topics == (topic_id("orders"),)
    assert (members["a"].rack, members["b"].rack) == ("r", None)
    assert partitions == {topic_id("orders"): 4, topic_id("payments"): 2}


def test_the_assignor_sees_what_each_member_is_meant_to_have() -> None:
    """K848-039, K848-041."""
    desk = Desk()
    settled(desk, "a", "b")
    seen: list[Any] = []

    def spy(members: Any, partitions: Any) -> Any:
        seen.append({name: one.previous for name, one in members.items()})
        return {name: dict(one.previous) for name, one in members.items()}

    desk.shard.assignors["uniform"] = spy
    beat(desk, "c", 0)
    orders = topic_id("orders")
    assert seen == [{"a": {orders: (0, 1)}, "b": {orders: (2, 3)}, "c": {}}]


def test_only_those_who_give_something_up_are_concerned_when_one_joins() -> None:
    """K848-185."""
    desk = Desk(known=topics(orders=200))
    names = [f"m-{number}" for number in range(40)]
    settled(desk, *names)
    desk.written()
    beat(desk, "x", 0)  # stands among the first: dealt anew, everybody would get others
    changed = [one.key.member_id for one in desk.written() if kinds([one]) == ["target"]]
    assert len(changed) == 5  # it gets 4, each of another member
    assert "x" in changed


def test_a_plan_that_cannot_be_made_refuses_the_heartbeat_and_writes_nothing() -> None:
    """K848-056."""
    desk = Desk()

    def fails(members: Any, partitions: Any) -> Any:
        raise AssignorError("no room")

    desk.shard.assignors["uniform"] = fails
    answer = beat(desk, "a", 0)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_message == "assignor uniform has no assignment for group g: no room"
    assert desk.log == []
    assert len(desk.shard.groups) == 0


def test_partitions_that_no_longer_exist_are_not_kept() -> None:
    """A log may come from a cluster where the topic was larger."""
    desk = Desk(known=topics(orders=4))
    settled(desk, "a")
    desk.shard.topics = topics(orders=2)
    answer = beat(desk, "b", 0)
    assert answer.error_code == 0
    held = desk.shard.groups.consumer("g").targets
    assert sorted(one for plan in held.values() for one in plan.partitions[topic_id("orders")]) == [
        0,
        1,
    ]


def test_the_assignor_sees_members_in_the_order_of_upstreams_hash_table() -> None:
    """Uniform deals in that order, so it decides who gets the odd partition."""
    desk = Desk(known=topics(orders=1))
    order = []

    def spy(members: Any, partitions: Any) -> Any:
        order.append(list(members))
        return {name: {} for name in members}

    desk.shard.assignors["uniform"] = spy
    for name in ("member-a", "x", "member-b", "b"):
        beat(desk, name, 0)
    assert order[-1] == ["b", "member-a", "member-b", "x"]


@pytest.mark.parametrize(
    ("names", "alike"),
    [(["orders"], True), (["orders", "none"], False)],
)
def test_the_assignor_knows_whether_all_subscribe_alike(names: list[str], alike: bool) -> None:  # noqa: FBT001
    """What counts are the names, also of topics that do not exist."""
    desk = Desk(known=topics(orders=1))
    seen = []

    def spy(members: Any, partitions: Any) -> Any:
        seen.append([one.alike for one in members.values()])
        return {name: {} for name in members}

    desk.shard.assignors["uniform"] = spy
    beat(desk, "a", 0)
    beat(desk, "b", 0, names=names)
    beat(desk, "a", 2, names=["orders"], owned={})
    assert set(seen[-1]) == {alike}


def all_to_the_last(members: Any, partitions: Any) -> Any:
    last = list(members)[-1]
    return {last: {topic: range(partitions[topic]) for topic in members[last].topics}}


def foreign_desk(assign: Any, **settings: Any) -> Desk:
    """A broker with an assignor that somebody else has written; its tasks are held back."""
    desk = Desk(**settings)
    desk.shard.plugin_assignors = {"theirs": assign}
    desk.shard.assignors["theirs"] = assign
    desk.shard.consumer_settings = replace(
        desk.shard.consumer_settings, assignors=("theirs", "uniform")
    )
    desk.errands_held = True
    return desk


def test_a_foreign_assignor_runs_beside_the_heartbeats() -> None:
    """K848-048."""
    desk = foreign_desk(all_to_the_last)
    a, b = Consumer(desk, "a").join(), Consumer(desk, "b").join()
    assert (a.owned, b.owned) == ({}, {})
    assert desk.shard.groups.consumer("g").state == "Assigning"
    assert len(desk.driver.tasks) == 1

    desk.run_errands()
    for one in (a, b, a):
        one.beat()  # the plan was made before b came
    assert (a.owned, b.owned) == ({"orders": [0, 1, 2, 3]}, {})
    desk.run_errands()
    for one in (a, a, b):
        one.beat()
    assert (a.owned, b.owned) == ({}, {"orders": [0, 1, 2, 3]})
    assert desk.shard.groups.consumer("g").state == "Stable"


def test_a_foreign_plan_leaves_out_who_has_gone() -> None:
    desk = foreign_desk(all_to_the_last)
    a = Consumer(desk, "a").join()
    desk.run_errands()
    a.beat()
    beat(desk, "b", 0)
    beat(desk, "b", -1)
    desk.run_errands()
    assert list(desk.shard.groups.consumer("g").targets) == ["a"]
    a.beat()
    desk.run_errands()
    assert a.beat().owned == {"orders": [0, 1, 2, 3]}


def test_a_foreign_plan_of_an_epoch_that_is_served_changes_nothing() -> None:
    desk = foreign_desk(all_to_the_last)
    a = Consumer(desk, "a").join()
    task = desk.driver.tasks[0]
    desk.run_errands()
    a.beat()
    desk.written()
    assert planning.finished(desk.shard, task, {"a": {}}, desk.now).records == []
    desk.shard.groups.remove("g")
    assert planning.finished(desk.shard, task, {"a": {}}, desk.now).records == []


def spread(members: Any, partitions: Any) -> Any:
    """Deal to the members in the order of their ids."""
    names = sorted(members)
    plan: Any = {name: {} for name in names}
    for topic, count in partitions.items():
        for index in range(count):
            plan[names[index % len(names)]].setdefault(topic, []).append(index)
    return plan


def until_stable(desk: Desk, *members: Consumer) -> None:
    for _ in range(10):
        desk.run_errands()
        for one in members:
            one.beat(instance_id=one.fields.get("instance_id"))
    assert desk.shard.groups.consumer("g").state == "Stable"


@pytest.mark.parametrize("joined", [False, True])
def test_a_static_successor_gets_what_a_foreign_plan_meant_for_the_one_before(joined: bool) -> None:  # noqa: FBT001
    """Its coming raises no epoch, so no other plan would ever be asked for."""
    desk = foreign_desk(spread)
    a = Consumer(desk, "a", instance_id="i").join()
    until_stable(desk, a)
    b = Consumer(desk, "b").join()
    if not joined:
        until_stable(desk, a, b)
        beat(desk, "b", -1)
        a.beat(instance_id="i")
    assert len(desk.driver.tasks) == 1
    beat(desk, "a", -2, instance_id="i")
    successor = Consumer(desk, "a2", instance_id="i").join()
    remaining = [successor, b] if joined else [successor]
    desk.run_errands()
    group = desk.shard.groups.consumer("g")
    assert group.target_epoch == group.group_epoch
    until_stable(desk, *remaining)
    owned = sorted(index for one in remaining for index in one.owned["orders"])
    assert owned == [0, 1, 2, 3]


def test_what_was_meant_for_a_member_with_another_ones_instance_id_goes_to_nobody() -> None:
    desk = foreign_desk(spread)
    Consumer(desk, "a", instance_id="i").join()
    b = Consumer(desk, "b").join()
    desk.run_errands()
    b.beat()  # asks for a plan of a and b
    beat(desk, "a", -1, instance_id="i")
    b = Consumer(desk, "b", instance_id="i").join()
    desk.run_errands()
    assert list(desk.shard.groups.consumer("g").targets) == ["b"]
    until_stable(desk, b)
    assert b.owned == {"orders": [0, 1, 2, 3]}


def test_a_foreign_plan_of_a_group_made_anew_is_its_own() -> None:
    desk = foreign_desk(spread)
    beat(desk, "a", 0)
    (old,) = desk.driver.tasks
    beat(desk, "a", -1)
    assert desk.told(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
    c = Consumer(desk, "c").join()
    group = desk.shard.groups.consumer("g")
    assert group.group_epoch == old.about.epoch
    assert len(desk.driver.tasks) == 2, "that of the old group is no reason not to ask"
    assert planning.finished(desk.shard, old, {"a": {}}, desk.now).records == []
    desk.run_errands()
    assert c.beat().owned == {"orders": [0, 1, 2, 3]}


def test_while_a_foreign_plan_is_out_heartbeats_do_not_walk_over_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = foreign_desk(spread)
    walks = []
    subscription = planning.Subscription
    monkeypatch.setattr(
        planning, "Subscription", lambda *given: walks.append(1) or subscription(*given)
    )
    members = [Consumer(desk, f"m{number}").join() for number in range(5)]
    assert len(walks) == 1, "the first one has asked, for itself"
    for one in members:
        one.beat()
    assert len(walks) == 1
    desk.run_errands()
    members[0].beat()
    assert len(walks) == 1 + 5


def test_a_foreign_plan_that_lacks_a_member_is_asked_for_again() -> None:
    desk = foreign_desk(spread)
    a = Consumer(desk, "a").join()
    (task,) = desk.driver.tasks
    assert planning.finished(desk.shard, task, {}, desk.now).records == []
    desk.driver.task_done(desk.driver.tasks.popleft(), {})
    a.beat()
    a.beat()
    until_stable(desk, a)
    assert a.owned == {"orders": [0, 1, 2, 3]}


def raising(_members: Any, _partitions: Any) -> Any:
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize("assign", [raising, lambda *_: {"nobody": {}}, lambda *_: None])
def test_a_foreign_assignor_that_fails_takes_down_its_groups_rebalance_alone(assign: Any) -> None:
    """K848-048, K848-056: members keep what they have; who has nothing yet hears of it."""
    desk = foreign_desk(all_to_the_last)
    a = Consumer(desk, "a").join()
    desk.run_errands()
    a.beat()
    desk.shard.plugin_assignors = {"theirs": assign}

    answer = beat(desk, "b", 0)
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    desk.run_errands()
    answer = beat(desk, "b", 2)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "assignor theirs has no assignment for group g: " in answer.error_message
    assert a.beat().owned == {"orders": [0, 1, 2, 3]}
    warnings = desk.told_lines.warnings
    assert any("members keep what they have" in line for line in warnings)
    other = Consumer(desk, "x", group_id="other", server_assignor="uniform").join()
    assert other.owned == {"orders": [0, 1, 2, 3]}

    desk.shard.plugin_assignors = {"theirs": all_to_the_last}
    desk.wait(planning.AGAIN_MS)
    b = Consumer(desk, "b")
    b.epoch = 2
    b.beat()
    desk.run_errands()
    for one in (a, a, b):
        one.beat()
    assert (a.owned, b.owned) == ({}, {"orders": [0, 1, 2, 3]})


def test_a_restart_forgets_the_foreign_plan_and_asks_again() -> None:
    desk = foreign_desk(all_to_the_last)
    a = Consumer(desk, "a").join()
    plugin_assignors, settings = desk.shard.plugin_assignors, desk.shard.consumer_settings
    desk.restart()
    desk.shard.plugin_assignors, desk.shard.consumer_settings = plugin_assignors, settings
    group = desk.shard.groups.consumer("g")
    group.settings = settings
    group.changed()
    assert not desk.driver.tasks
    a.beat()
    desk.run_errands()
    assert a.beat().owned == {"orders": [0, 1, 2, 3]}
