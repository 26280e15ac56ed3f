# SPDX-License-Identifier: Apache-2.0
"""SyncGroup, Heartbeat and commits of classic members in a consumer group."""

from dataclasses import replace

import pytest
from tests.coordinator.classics import QUICK, commit, heartbeat, join, sync
from tests.coordinator.consumer.test_planning import all_to_the_last, foreign_desk
from tests.coordinator.consumers import Consumer, beat
from tests.coordinator.desk import Desk, topics
from tests.coordinator.mixed import Classic, mixed_group, subscribed, together, unpacked

from kohort.assignors import AssignorError
from kohort.coordinator.consumer import planning, timers
from kohort.errors import ErrorCode
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

RANGE = {"range": subscribed()}


def group_of_one(**fields):
    desk = Desk(**QUICK)
    (classic,), consumer = mixed_group(desk, 1, **fields)
    return desk, classic, consumer


def test_a_member_gets_what_it_has_as_often_as_it_asks():
    """K848-118."""
    desk, classic, _ = group_of_one()
    for _ in range(2):
        answer = sync(desk, classic.id, 2).answer
        assert (answer.error_code, unpacked(answer.assignment)) == (0, classic.owned)
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_topics_that_are_gone_are_left_out():
    desk, classic, _ = group_of_one(topics=["orders", "payments"])
    desk.topics_changed(topics(payments=2))
    assert set(unpacked(sync(desk, classic.id, 2).answer.assignment)) <= {"payments"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"generation_id": 77}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "new"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_speak_is_told_why(fields, code):
    desk, classic, _ = group_of_one()
    said = {"member_id": classic.id, "generation_id": 2, **fields}
    member, generation = said.pop("member_id"), said.pop("generation_id")
    assert sync(desk, member, generation, **said).answer.error_code == code
    assert heartbeat(desk, member, generation, **said) == code


def test_an_instance_id_of_another_is_fenced():
    desk, classic, _ = group_of_one()
    Classic(desk, group_instance_id="i").join()
    code = ErrorCode.FENCED_INSTANCE_ID
    assert sync(desk, classic.id, 2, group_instance_id="i").answer.error_code == code
    assert heartbeat(desk, classic.id, 2, group_instance_id="i") == code


@pytest.mark.parametrize("fields", [{"protocol_name": "other"}, {"protocol_type": "connect"}])
def test_another_protocol_is_refused(fields):
    desk, classic, _ = group_of_one()
    answer = sync(desk, classic.id, 2, **fields).answer
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_who_has_to_join_again_is_told_that_and_not_that_its_protocol_is_wrong():
    """It may name an assignor that the classic group had chosen; the other answer ends clients."""
    desk, classic, _ = group_of_one()
    beat(desk, "newer", 0)
    answer = sync(desk, classic.id, 2, protocol_name="other").answer
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert (timers.JOIN, "g", classic.id) in desk.shard.deadlines
    assert (timers.SYNC, "g", classic.id) not in desk.shard.deadlines


def test_a_sync_ends_the_wait_for_it_and_is_a_sign_of_life():
    desk, classic, _ = group_of_one()
    join(desk, classic.id, protocols=RANGE)
    assert (timers.SYNC, "g", classic.id) in desk.shard.deadlines
    desk.wait(9_000)
    sync(desk, classic.id, 2)
    assert (timers.SYNC, "g", classic.id) not in desk.shard.deadlines
    desk.wait(9_000)
    assert classic.id in desk.shard.groups.consumer("g").members


def test_silence_ends_a_session_of_the_member_own_length():
    desk, classic, _ = group_of_one(session_timeout_ms=7_000)
    desk.wait(6_000)
    assert heartbeat(desk, classic.id, 2) == ErrorCode.NONE
    desk.wait(6_999)
    assert classic.id in desk.shard.groups.consumer("g").members
    desk.wait(1)
    assert classic.id not in desk.shard.groups.consumer("g").members


def test_after_a_restart_everybody_has_a_full_session():
    desk, classic, _ = group_of_one(session_timeout_ms=7_000)
    desk.wait(6_000)
    desk.restart()
    desk.wait(6_999)
    assert heartbeat(desk, classic.id, 2) == ErrorCode.NONE


def test_a_clock_that_jumps_ends_no_membership():
    desk, classic, _ = group_of_one(rebalance_timeout_ms=5_000)
    beat(desk, "newer", 0)
    assert heartbeat(desk, classic.id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    desk.driver.clock_jumped(3_600_000)
    desk.now += 3_600_000
    desk.wait(4_000)
    assert classic.id in desk.shard.groups.consumer("g").members
    desk.wait(1_001)
    assert classic.id not in desk.shard.groups.consumer("g").members


def test_who_waits_for_partitions_is_called_once_they_are_free():
    """Not before: a join would bring it nothing."""
    desk = Desk(**QUICK)
    consumer = Consumer(desk, "new").join()
    classic = Classic(desk).join()
    assert classic.owned == {}
    assert heartbeat(desk, classic.id, 3) == ErrorCode.NONE
    consumer.beat()
    assert heartbeat(desk, classic.id, 3) == ErrorCode.NONE
    consumer.beat()
    assert heartbeat(desk, classic.id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    together(desk, classic, consumer)


@pytest.mark.parametrize("leaving", [["b"], ["b", "new"]])
def test_who_joins_again_gets_another_target(leaving):
    """K848-118: within the interval of KIP-1263 a join computes none: its sync would be sent back
    for another join, and so on. Behind it a join does, also where no consumer is left to do so.
    """
    desk = Desk(
        **QUICK,
        group_consumer_assignment_interval_ms=1000,
        group_consumer_migration_policy="upgrade",
    )
    (classic,), consumer = mixed_group(desk, 1)
    desk.wait(1000)
    together(desk, classic, consumer, Consumer(desk, "b").join())
    generation = classic.generation
    for one in leaving:
        beat(desk, one, -1)
    assert heartbeat(desk, classic.id, generation) == ErrorCode.NONE
    assert sync(desk, classic.id, generation).answer.error_code == ErrorCode.NONE
    desk.wait(1000)
    assert heartbeat(desk, classic.id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join()
    assert classic.generation == generation + len(leaving)


def joins_of(desk, monkeypatch):
    """Counts the joins that a desk is asked for, from here on."""
    asked, ask = [], desk.ask

    def counted(request, *rest):
        if isinstance(request, JoinGroupRequest):
            asked.append(request)
        return ask(request, *rest)

    monkeypatch.setattr(desk, "ask", counted)
    return asked


def foreign_group(assign=all_to_the_last):
    """A classic member and a consumer at rest, whose assignor runs on a thread."""
    desk = foreign_desk(assign, **QUICK)
    desk.errands_held = False
    (classic,), consumer = mixed_group(desk, 1)
    desk.errands_held = True
    return desk, classic, consumer


def test_a_member_stays_with_what_it_has_while_a_thread_computes(monkeypatch):
    """Each join would be answered with the generation that it had, and its sync with another join.
    A member whose heartbeat finds that nobody has asked joins once, which asks.
    """
    desk, classic, consumer = foreign_group()
    had = classic.owned
    beat(desk, "newer", 0)
    joins = joins_of(desk, monkeypatch)
    for _ in range(5):
        desk.wait(1000)
        classic.beat()
        consumer.beat()
    assert (joins, classic.owned) == ([], had)
    generation = classic.generation
    newer = Consumer(desk, "newer").join()
    desk.run_errands()
    desk.errands_held = False
    together(desk, classic, consumer, newer)
    assert classic.generation > generation


def test_a_member_that_nobody_computes_for_asks_by_a_join(monkeypatch):
    desk, classic, consumer = foreign_group()
    desk.topics_changed(topics(orders=6, payments=2))
    joins = joins_of(desk, monkeypatch)
    for _ in range(5):
        desk.wait(1000)
        classic.beat()
    assert len(joins) == 1
    assert len(desk.driver.tasks) == 1
    desk.errands_held = False
    desk.wait(0)
    together(desk, classic, consumer)


def test_a_thread_that_fails_is_asked_again_after_a_while_and_not_by_join_after_join(monkeypatch):
    failing = []

    def fails_at_times(members, partitions):
        if failing:
            raise AssignorError("not now")
        return all_to_the_last(members, partitions)

    desk, classic, consumer = foreign_group(fails_at_times)
    desk.errands_held = False
    failing.append(True)
    newer = Consumer(desk, "newer").join()
    joins = joins_of(desk, monkeypatch)
    for _ in range(20):
        desk.wait(planning.AGAIN_MS // 10)
        classic.beat()
    assert len(joins) == 2
    failing.clear()
    desk.wait(planning.AGAIN_MS)
    together(desk, classic, consumer, newer)


def test_a_thread_whose_assignor_nobody_names_any_more_is_not_waited_for():
    """The next join computes, by the assignor that the group has by then."""
    desk = foreign_desk(all_to_the_last, **QUICK, group_consumer_migration_policy="upgrade")
    default = replace(desk.shard.consumer_settings, assignors=("uniform", "theirs"))
    desk.shard.consumer_settings = default
    (classic,), consumer = mixed_group(desk, 1)
    beat(desk, "newer", 0, server_assignor="theirs")
    assert len(desk.driver.tasks) == 1
    generation = classic.generation
    assert heartbeat(desk, classic.id, generation) == ErrorCode.NONE
    beat(desk, "newer", -1)
    assert heartbeat(desk, classic.id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    together(desk, classic, consumer)


def test_topics_that_grow_are_seen_by_classic_members_alone():
    """No leader looks at them, and in a group that may not become classic nobody else does."""
    desk = Desk(**QUICK, group_consumer_migration_policy="upgrade")
    classics, consumer = mixed_group(desk, 2)
    beat(desk, consumer.id, -1)
    together(desk, *classics)
    desk.topics_changed(topics(orders=6, payments=2))
    together(desk, *classics)
    desk.restart()
    together(desk, *classics)


@pytest.mark.parametrize("version", [2, 8, 9, 10])
def test_commits_name_the_generation(version):
    desk, classic, _ = group_of_one()
    said = {"member_id": classic.id, "generation_id_or_member_epoch": 2}
    assert commit(desk, {("orders", 0): 5}, version=version, **said) == {("orders", 0): 0}
    said["generation_id_or_member_epoch"] = 3
    wrong = commit(desk, {("orders", 0): 5}, version=version, **said)
    assert wrong == {("orders", 0): ErrorCode.ILLEGAL_GENERATION}


def test_a_commit_of_the_generation_before_is_taken_for_what_it_still_has():
    """KIP-1251: the commit was under way while the member joined again."""
    desk, classic, _ = group_of_one()
    had = set(classic.owned["orders"])
    beat(desk, "newer", 0)
    together(desk, classic, Consumer(desk, "new").join(), Consumer(desk, "newer").join())
    kept = had & set(classic.owned["orders"])
    lost = had - kept
    said = {"member_id": classic.id, "generation_id_or_member_epoch": 2}
    for index in kept:
        assert commit(desk, {("orders", index): 5}, **said) == {("orders", index): 0}
    for index in lost:
        code = ErrorCode.ILLEGAL_GENERATION
        assert commit(desk, {("orders", index): 5}, **said) == {("orders", index): code}


def test_fetches_name_the_generation_too():
    desk, classic, _ = group_of_one()

    def code(epoch):
        wanted = OffsetFetchRequestGroup(
            group_id="g", member_id=classic.id, member_epoch=epoch, topics=None
        )
        return desk.told(OffsetFetchRequest(groups=[wanted]), 9).groups[0].error_code

    assert (code(2), code(1)) == (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION)
