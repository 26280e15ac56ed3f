# SPDX-License-Identifier: Apache-2.0
"""The log of groups says why: headers on tombstones, epochs and generations."""

from tests.coordinator.classics import (
    QUICK,
    commit,
    heartbeat,
    join,
    leave,
    newcomer,
    stable,
    sync,
)
from tests.coordinator.consumers import Consumer, beat, settled
from tests.coordinator.desk import Desk, topics
from tests.coordinator.mixed import mixed_group

from kohort.coordinator.causes import Causes
from kohort.coordinator.groups import Groups
from kohort.machines.effects import Effects, GroupEvent
from kohort.records.causes import Because, Cause, causes_in
from kohort.records.codec import Record, decode
from kohort.records.schemas import GroupMetadataKey, OffsetCommitKey
from kohort.wire import batch
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity


def causes(desk):
    """Of each record with causes, in the log's order: its kind, whether it is a value, and why."""
    found = []
    for data in desk._batches.read(desk._batches.start, 1 << 30):
        for one in batch.records(data):
            why = causes_in(one.headers)
            if why:
                record = decode(one.key, one.value)
                kind = type(record.key).__name__.removesuffix("Key")
                found.append((kind, record.value is not None, why))
    return found


def of_epochs(desk):
    return [why for kind, is_value, why in causes(desk) if kind == "ConsumerGroupMetadata"]


def of_generations(desk):
    return [why for kind, is_value, why in causes(desk) if kind == "GroupMetadata" and is_value]


def ended_offsets(desk):
    return [
        (key.group, key.topic, key.partition)
        for data in desk._batches.read(desk._batches.start, 1 << 30)
        for one in batch.records(data)
        if one.value is None and type(key := decode(one.key, None).key) is OffsetCommitKey
    ]


def test_an_epoch_says_who_has_come_and_who_has_gone():
    desk = Desk()
    settled(desk, "a", "b")
    beat(desk, "b", -1)
    assert of_epochs(desk) == [
        [Because(Cause.JOIN, "a")],
        [Because(Cause.JOIN, "b")],
        [Because(Cause.LEAVE, "b")],
    ]


def test_every_tombstone_of_a_member_says_why():
    desk = Desk()
    settled(desk, "a", "b")
    beat(desk, "b", -1)
    ends = [(kind, why) for kind, is_value, why in causes(desk) if not is_value]
    assert ends == [
        ("ConsumerGroupCurrentMemberAssignment", [Because(Cause.LEAVE, "b")]),
        ("ConsumerGroupTargetAssignmentMember", [Because(Cause.LEAVE, "b")]),
        ("ConsumerGroupMemberMetadata", [Because(Cause.LEAVE, "b")]),
    ]


def test_an_expression_that_names_other_topics_is_a_cause():
    desk = Desk(known=topics(orders=1))
    beat(desk, "a", 0, names=None, subscribed_topic_regex="order.*")
    assert of_epochs(desk) == []  # the records tell that it came with the member
    desk.topics_changed(topics(orders=1, order_items=1))
    beat(desk, "a", 1)
    assert of_epochs(desk) == [[Because(Cause.TOPICS)]]


def test_deadlines_are_told_apart():
    desk = Desk()
    Consumer(desk, "a", rebalance_timeout_ms=10_000).join()
    Consumer(desk, "b").join()
    beat(desk, "a", 2)
    desk.wait(10_000)
    desk.wait(45_000)
    assert of_epochs(desk)[2:] == [[Because(Cause.REBALANCE, "a")], [Because(Cause.SESSION, "b")]]


def test_an_administrator_is_told_from_a_member_and_gives_a_reason():
    desk = Desk()
    settled(desk, "a", "b")
    gone = [MemberIdentity(member_id=one, reason=f"no more {one}") for one in ("a", "b")]
    desk.told(LeaveGroupRequest(group_id="g", members=gone), 5)
    both = [Because(Cause.KICKED, "a", "no more a"), Because(Cause.KICKED, "b", "no more b")]
    assert of_epochs(desk)[-1] == both
    tombstones = [why for kind, is_value, why in causes(desk) if not is_value]
    assert tombstones == [[both[0]]] * 3 + [[both[1]]] * 3


def test_a_classic_member_that_leaves_a_mixed_group_is_not_removed_by_anybody():
    """It has no other way to leave than the request by which an administrator removes members."""
    desk = Desk(**QUICK)
    members, _ = mixed_group(desk)
    gone = members[0].id
    leaving = MemberIdentity(member_id=gone, reason="the consumer is closed")
    desk.told(LeaveGroupRequest(group_id="g", members=[leaving]), 5)
    assert of_epochs(desk)[-1] == [Because(Cause.LEAVE, gone, "the consumer is closed")]


def test_an_administrator_names_a_static_classic_member_by_its_instance():
    desk = Desk(**QUICK)
    (member,), _ = mixed_group(desk, 1, group_instance_id="i")
    leaving = MemberIdentity(member_id="", group_instance_id="i")
    desk.told(LeaveGroupRequest(group_id="g", members=[leaving]), 5)
    assert Because(Cause.KICKED, member.id) in of_epochs(desk)[-1]


def test_what_a_member_changes_and_what_the_cluster_changes():
    desk = Desk(group_consumer_assignors="uniform,range")
    settled(desk, "a")
    epoch = beat(desk, "a", 2, subscribed_topic_names=["payments"]).member_epoch
    epoch = beat(desk, "a", epoch, server_assignor="range").member_epoch
    desk.topics_changed(topics(orders=4, payments=6))
    beat(desk, "a", epoch)
    assert of_epochs(desk)[1:] == [
        [Because(Cause.SUBSCRIPTION, "a")],
        [Because(Cause.ASSIGNOR, "a")],
        [Because(Cause.TOPICS)],
    ]


def test_a_generation_says_all_that_led_to_it():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    other, _ = newcomer(desk, reason="started")
    join(desk, leader)
    sync(desk, leader, 2)
    leave(desk, other)
    join(desk, leader, reason="more partitions")
    sync(desk, leader, 3)
    join(desk, leader, reason="more partitions")
    sync(desk, leader, 4)
    assert of_generations(desk) == [
        [Because(Cause.JOIN, leader)],
        [Because(Cause.JOIN, other, "started")],
        [Because(Cause.LEAVE, other)],
        [Because(Cause.REJOIN, leader, "more partitions")],
    ]


def test_a_generation_that_a_restart_came_into_says_nothing_wrong():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    newcomer(desk)
    desk.restart()
    join(desk, leader)
    sync(desk, leader, 2)
    assert of_generations(desk)[1:] == [[Because(Cause.REJOIN, leader)]]


def test_one_line_of_the_broker_says_who_and_why():
    """K848-007."""
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    other, _ = newcomer(desk, reason="started")
    join(desk, leader)
    sync(desk, leader, 2)
    assert desk.told_lines.lines[-1] == (
        "group g: classic CompletingRebalance -> classic Stable; generation 2 has 2 members;"
        f" because member {other} joins: started"
    )


def test_a_deleted_group_says_that_it_was_deleted():
    desk = Desk()
    settled(desk, "a")
    beat(desk, "a", -1)
    desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert causes(desk)[-1] == ("ConsumerGroupMetadata", False, [Because(Cause.DELETED)])


def test_no_state_depends_on_headers():
    desk = Desk()
    settled(desk, "a", "b")
    before = desk.shard.groups.consumer("g").members
    desk.restart()
    assert desk.shard.groups.consumer("g").members == before


def test_offsets_that_expire_are_no_cause_of_a_later_rebalance():
    desk = Desk(**QUICK, offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    (leader,) = stable(desk)
    commit(desk, {("payments", 0): 7}, member_id=leader, generation_id_or_member_epoch=1)
    for _ in range(14):
        desk.wait(5000)
        heartbeat(desk, leader, 1)
    assert ("g", "payments", 0) in ended_offsets(desk)
    leave(desk, leader)
    assert of_generations(desk)[-1] == [Because(Cause.LEAVE, leader)]


class Counted(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_many_groups_that_end_in_one_step_are_not_compared_with_each_other():
    step = Effects()
    for number in range(500):
        name = f"group-{number}"
        step.records.append(Record(GroupMetadataKey(group=Counted(name)), None))
        step.events.append(GroupEvent(Counted(name), "it has expired", Cause.EXPIRY))
    Counted.compared = 0
    assert len(Causes().headers(Groups(), step)) == 500
    assert Counted.compared <= 500 * 10
