# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat on a shard: who may join, what moves an epoch, what is
written, what is said.
"""

from typing import Any

import pytest
from tests.coordinator.classics import QUICK, commit, join, stable
from tests.coordinator.consumers import Consumer, beat, given, kinds, request, settled
from tests.coordinator.desk import START, Desk, topic_id, topics

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.timers import SESSION
from kohort.errors import ErrorCode
from kohort.records.schemas import ConsumerGroupMetadataValue
from kohort.terms import GroupState

ALL = {"orders": [0, 1, 2, 3]}


def group_of(desk: Desk) -> ConsumerGroup:
    group = desk.shard.groups.consumer("g")
    assert group is not None
    return group


def epochs(desk: Desk) -> tuple[int, int]:
    group = group_of(desk)
    return group.group_epoch, group.target_epoch


# -- joining


def test_the_first_member_gets_everything_at_once() -> None:
    """K848-009, K848-013, K848-023, K848-095."""
    desk = Desk()
    answer = beat(desk, "a", 0)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert given(answer) == ALL
    assert kinds(desk.log) == ["member", "epoch", "target", "target epoch", "current"]
    assert group_of(desk).state is GroupState.STABLE


def test_every_answer_has_the_interval_that_is_configured() -> None:
    """K848-095."""
    desk = Desk(group_consumer_heartbeat_interval_ms=6000)
    answers = [beat(desk, "a", 0), beat(desk, "a", 2), beat(desk, "a", 2, names=["payments"])]
    assert [one.heartbeat_interval_ms for one in answers] == [6000] * 3


@pytest.mark.parametrize("names", [[], ["nowhere"]])
def test_a_member_without_topics_gets_an_assignment_of_nothing(names: list[str]) -> None:
    """Subscribing to nothing changes nothing, so the group stays at epoch 1 (KAFKA-20268)."""
    desk = Desk()
    answer = beat(desk, "a", 0, names=names)
    assert answer.member_epoch == (2 if names else 1)
    assert given(answer) == {}
    assert group_of(desk).state is GroupState.STABLE
    if not names:
        assert kinds(desk.log) == ["member", "current"]


def test_names_are_kept_sorted_and_once() -> None:
    """K848-033."""
    desk = Desk()
    beat(desk, "a", 0, names=["payments", "orders", "payments"])
    assert group_of(desk).members["a"].subscribed_names == ("orders", "payments")
    again = beat(desk, "a", 2, names=["orders", "payments"])
    assert again.member_epoch == 2


def test_a_second_member_waits_until_the_first_has_let_go() -> None:
    """K848-081, K848-083."""
    desk = Desk()
    a, b = Consumer(desk, "a").join(), Consumer(desk, "b").join()
    assert (b.epoch, b.owned) == (3, {})
    assert group_of(desk).state is GroupState.RECONCILING
    assert beat(desk, "b", 3).assignment is None
    told = beat(desk, "a", 2, owned=a.owned)
    assert (told.member_epoch, given(told)) == (2, {"orders": [0, 1]})
    assert beat(desk, "a", 2, owned=ALL).assignment is None
    acknowledged = beat(desk, "a", 2, owned={"orders": [0, 1]})
    assert (acknowledged.member_epoch, acknowledged.assignment) == (3, None)
    received = beat(desk, "b", 3)
    assert given(received) == {"orders": [2, 3]}
    assert group_of(desk).state is GroupState.STABLE


def test_the_example_of_three() -> None:
    """K848-084: The third member gets each of its partitions as soon as it is free."""
    desk = Desk(known=topics(orders=6))
    a, b = settled(desk, "a", "b")
    c = Consumer(desk, "c").join()
    assert (a.epoch, b.epoch, c.epoch, c.owned) == (3, 3, 4, {})
    assert given(beat(desk, "a", 3, owned=a.owned)) == {"orders": [0, 1]}
    assert beat(desk, "a", 3, owned={"orders": [0, 1]}).member_epoch == 4
    assert c.beat().owned == {"orders": [2]}
    assert b.beat().owned == {"orders": [3, 4]}
    assert b.beat().epoch == 4
    assert c.beat().owned == {"orders": [2, 5]}
    assert group_of(desk).state is GroupState.STABLE


def test_a_full_group_takes_nobody_new() -> None:
    """K848-094."""
    desk = Desk(group_consumer_max_size=1)
    beat(desk, "a", 0)
    for epoch in (0, 7):
        answer = beat(desk, "b", epoch)
        assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert answer.error_message == (
            "The consumer group has reached its maximum capacity of 1 members."
        )
    assert beat(desk, "a", 0).error_code == 0
    assert beat(desk, "b", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# -- groups that are not there, or of another kind


@pytest.mark.parametrize(
    ("epoch", "text"),
    [(3, "Consumer group g not found."), (-1, "Group g not found.")],
)
def test_a_group_that_is_not_there(epoch: int, text: str) -> None:
    desk = Desk()
    answer = beat(desk, "a", epoch)
    assert (answer.error_code, answer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, text)
    assert len(desk.shard.groups) == 0


@pytest.mark.parametrize("epoch", [3, -1])
def test_a_classic_group_with_members_answers_joins_only(epoch: int) -> None:
    desk = Desk(**QUICK)
    stable(desk)
    answer = beat(desk, "a", epoch)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g is not a consumer group."


@pytest.mark.parametrize("epoch", [3, -1])
def test_an_empty_classic_group_answers_joins_only(epoch: int) -> None:
    desk = Desk()
    commit(desk, {("orders", 1): 5}, generation_id_or_member_epoch=-1)
    assert beat(desk, "a", epoch).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_classic_group_becomes_a_consumer_group_with_its_offsets() -> None:
    """K848-026."""
    desk = Desk()
    commit(desk, {("orders", 1): 5}, generation_id_or_member_epoch=-1)
    desk.written()
    assert beat(desk, "a", 0).member_epoch == 2
    assert kinds(desk.written())[:2] == ["-classic", "member"]
    assert desk.shard.offsets.holds("g", "orders", 1)
    desk.restart()
    assert desk.shard.offsets.holds("g", "orders", 1)
    assert list(group_of(desk).members) == ["a"]


def test_an_emptied_consumer_group_may_become_a_classic_one() -> None:
    desk = Desk(**QUICK)
    beat(desk, "a", 0)
    beat(desk, "a", -1)
    assert join(desk).answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert desk.shard.groups.consumer("g") is None
    assert desk.shard.groups.classic("g") is not None


# -- heartbeats that change nothing


def test_an_unchanged_heartbeat_moves_a_deadline_and_nothing_else() -> None:
    """K848-038, K848-097."""
    desk = Desk()
    settled(desk, "a", "b")
    desk.written()
    before = dict(group_of(desk).members)
    ends = desk.shard.deadlines.at((SESSION, "g", "a"))
    desk.wait(1000)
    answer = beat(desk, "a", 3)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == ("a", 3, None)
    assert desk.written() == []
    assert desk.shard.deadlines.at((SESSION, "g", "a")) == ends + 1000
    assert all(group_of(desk).members[one] is before[one] for one in before)


def test_a_heartbeat_that_repeats_everything_writes_nothing_and_is_told_everything() -> None:
    """K848-098."""
    desk = Desk()
    beat(desk, "a", 0, rack_id="r", server_assignor="range")
    desk.written()
    same = {
        "rebalance_timeout_ms": 60_000,
        "names": ["orders"],
        "rack_id": "r",
        "server_assignor": "range",
    }
    assert given(beat(desk, "a", 2, owned=ALL, **same)) == ALL
    assert beat(desk, "a", 2, owned=None, **same).assignment is None
    assert desk.written() == []


@pytest.mark.parametrize(
    "fields", [{"rack_id": "r-2"}, {"rebalance_timeout_ms": 7}, {"server_assignor": "uniform"}]
)
def test_what_does_not_move_the_epoch_is_written_all_the_same(fields: dict[str, Any]) -> None:
    """K848-038."""
    desk = Desk()
    beat(desk, "a", 0)
    desk.written()
    assert beat(desk, "a", 2, **fields).member_epoch == 2
    assert kinds(desk.written()) == ["member"]


def test_a_client_that_moved_is_written() -> None:
    """K848-038."""
    desk = Desk()
    beat(desk, "a", 0)
    desk.written()
    assert desk.told(request("a", 2), 1, client="other").member_epoch == 2
    assert kinds(desk.written()) == ["member"]
    assert group_of(desk).members["a"].client_id == "other"


# -- what moves the group's epoch


def test_a_changed_subscription_moves_the_epoch_and_takes_away_what_is_not_read() -> None:
    """K848-033."""
    desk = Desk()
    beat(desk, "a", 0, names=["orders", "payments"])
    desk.written()
    answer = beat(desk, "a", 2, names=["payments"])
    assert (answer.member_epoch, given(answer)) == (2, {"payments": [0, 1]})
    assert kinds(desk.written()) == ["member", "epoch", "target", "target epoch", "current"]
    assert beat(desk, "a", 2, owned={"payments": [0, 1]}).member_epoch == 3


def test_another_winning_assignor_moves_the_epoch() -> None:
    """K848-049: KAFKA-20434: the vote is not only shown, it counts."""
    desk = Desk()
    settled(desk, "a", "b")
    assert group_of(desk).assignor == "uniform"
    assert beat(desk, "a", 3, server_assignor="range").member_epoch == 4
    assert group_of(desk).assignor == "range"
    assert epochs(desk) == (4, 4)
    assert beat(desk, "b", 3, server_assignor="range").error_code == 0
    assert epochs(desk) == (4, 4)


def test_several_changes_in_one_heartbeat_move_the_epoch_once() -> None:
    """K848-038."""
    desk = Desk()
    settled(desk, "a")
    assert epochs(desk) == (2, 2)
    desk.topics_changed(topics(orders=6, payments=2))
    beat(desk, "a", 2, names=["orders", "payments"], server_assignor="range", rack_id="r")
    assert epochs(desk) == (3, 3)


def test_a_tie_between_assignors_goes_to_the_first_of_the_broker() -> None:
    """K848-044."""
    desk = Desk(group_consumer_assignors="range,uniform")
    beat(desk, "a", 0, server_assignor="uniform")
    assert group_of(desk).assignor == "uniform"
    beat(desk, "b", 0, server_assignor="range")
    assert group_of(desk).assignor == "range"


def test_more_partitions_are_seen_by_the_next_heartbeat_of_anybody() -> None:
    """K848-005, K848-036."""
    desk = Desk()
    settled(desk, "a")
    desk.written()
    desk.topics_changed(topics(orders=6, payments=2))
    assert desk.written() == []
    answer = beat(desk, "a", 2)
    assert (answer.member_epoch, given(answer)) == (3, {"orders": [0, 1, 2, 3, 4, 5]})


def test_topics_that_nobody_reads_change_nothing() -> None:
    desk = Desk()
    settled(desk, "a")
    desk.topics_changed(topics(orders=4, payments=9, others=1))
    assert not group_of(desk).metadata_stale
    assert beat(desk, "a", 2).member_epoch == 2


def test_a_topic_that_comes_later_is_given_out() -> None:
    desk = Desk(known=topics(payments=1))
    beat(desk, "a", 0)
    assert group_of(desk).metadata_hash == 0
    desk.topics_changed(topics(payments=1, orders=2))
    answer = beat(desk, "a", 2)
    assert (answer.member_epoch, given(answer)) == (3, {"orders": [0, 1]})


def test_a_deleted_topic_is_taken_away() -> None:
    """K848-036."""
    desk = Desk()
    beat(desk, "a", 0, names=["orders", "payments"])
    desk.topics_changed(topics(payments=2))
    answer = beat(desk, "a", 2)
    assert given(answer) == {"payments": [0, 1]}
    assert topic_id("orders") in group_of(desk).members["a"].revoking


def test_after_a_restart_topics_are_looked_at_once() -> None:
    desk = Desk()
    settled(desk, "a")
    desk.restart()
    assert group_of(desk).metadata_stale
    desk.written()
    assert beat(desk, "a", 2).member_epoch == 2
    assert desk.written() == []
    assert not group_of(desk).metadata_stale


# -- when a target is computed


def test_a_second_target_waits_for_the_interval() -> None:
    """K848-018: KIP-1263: members reconcile to the older target meanwhile."""
    desk = Desk(group_consumer_assignment_interval_ms=1000)
    settled(desk, "a")
    answer = beat(desk, "b", 0)
    assert (answer.member_epoch, given(answer)) == (2, {})
    assert epochs(desk) == (3, 2)
    assert group_of(desk).state is GroupState.ASSIGNING
    desk.wait(999)
    assert beat(desk, "a", 2).assignment is None
    desk.wait(1)
    assert given(beat(desk, "a", 2, owned=ALL)) == {"orders": [0, 1]}
    assert epochs(desk) == (3, 3)


def test_an_emptied_group_still_waits_for_the_interval() -> None:
    desk = Desk(group_consumer_assignment_interval_ms=1000)
    beat(desk, "a", 0)
    beat(desk, "a", -1)
    assert given(beat(desk, "a", 0)) == {}
    desk.wait(1000)
    assert given(beat(desk, "a", 3)) == ALL


def test_what_is_no_longer_read_does_not_wait_for_the_interval() -> None:
    """KAFKA-19431."""
    desk = Desk(group_consumer_assignment_interval_ms=1000)
    beat(desk, "a", 0, names=["orders", "payments"])
    answer = beat(desk, "a", 2, names=["payments"])
    assert (answer.member_epoch, given(answer)) == (2, {"payments": [0, 1]})
    assert epochs(desk) == (3, 2)


# -- epochs of members


@pytest.mark.parametrize(("epoch", "than"), [(4, "greater"), (2, "smaller"), (1, "smaller")])
def test_a_member_at_another_epoch_is_fenced(epoch: int, than: str) -> None:
    """K848-100."""
    desk = Desk()
    settled(desk, "a", "b")
    answer = beat(desk, "a", epoch)
    assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert answer.error_message == (
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the "
        "group coordinator (3). The member must abandon all its partitions and rejoin."
    )


def test_a_lost_answer_is_forgiven_to_a_member_that_has_no_more_than_it_may() -> None:
    """K848-088."""
    desk = Desk()
    Consumer(desk, "a").join().beat()
    Consumer(desk, "b").join()
    beat(desk, "a", 2, owned=ALL)
    assert beat(desk, "a", 2, owned={"orders": [0, 1]}).member_epoch == 3
    assert beat(desk, "a", 2, owned={"orders": [0, 1]}).member_epoch == 3
    assert beat(desk, "a", 2, owned={}).member_epoch == 3
    for owned in (None, {"orders": [0, 1, 2]}, {"payments": [0]}):
        assert beat(desk, "a", 2, owned=owned).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_who_starts_over_at_epoch_0_keeps_what_it_has() -> None:
    """K848-091: KAFKA-19233: a fenced member is let in again with its id."""
    desk = Desk()
    settled(desk, "a", "b")
    desk.written()
    answer = beat(desk, "a", 0)
    assert (answer.member_epoch, given(answer)) == (3, {"orders": [0, 1]})
    assert desk.written() == []


def test_an_unknown_member_has_to_join() -> None:
    """K848-100."""
    desk = Desk()
    beat(desk, "a", 0)
    answer = beat(desk, "b", 2)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.error_message == "Member b is not a member of group g."


def test_the_hash_of_the_topics_is_written_with_the_epoch() -> None:
    """K848-013."""
    desk = Desk()
    beat(desk, "a", 0)
    [written] = [one.value for one in desk.log if type(one.value) is ConsumerGroupMetadataValue]
    assert written.epoch == 2
    assert written.metadata_hash == group_of(desk).metadata_hash != 0
    assert desk.now == START


def test_added_partitions_are_not_forgotten_when_the_log_has_no_room_for_them() -> None:
    desk = Desk()
    (a,) = settled(desk, "a")
    desk.driver.limit_bytes = lambda: 300
    desk.topics_changed(topics(orders=100, payments=2))
    for _ in range(2):
        assert beat(desk, "a", a.epoch).error_code == ErrorCode.MESSAGE_TOO_LARGE

    desk.driver.limit_bytes = lambda: 1 << 20
    assert a.beat().owned == {"orders": list(range(100))}


def test_topics_that_are_the_same_again_are_looked_at_once() -> None:
    desk = Desk()
    (a,) = settled(desk, "a")
    desk.written()
    desk.topics_changed(topics(orders=5))
    desk.topics_changed(topics(orders=4, payments=2))
    assert group_of(desk).metadata_stale
    a.beat()
    assert not group_of(desk).metadata_stale
    assert desk.written() == []
