# SPDX-License-Identifier: Apache-2.0
"""The course of a computation: who is asked, for how long, and what ends it."""

import pytest
from tests.coordinator.assigning import Assigner, group_of, offer, part, settle, share
from tests.coordinator.classics import QUICK
from tests.coordinator.consumers import beat, settled
from tests.coordinator.desk import Desk, topics
from tests.coordinator.mixed import classic_group

from kohort.coordinator.consumer import timers
from kohort.coordinator.consumer.client_side import choosing
from kohort.coordinator.group_settings import AlterGroupSettings
from kohort.errors import ErrorCode
from kohort.sim.checkers.replay import differences
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest

LATE = 10_000  # ms: the rebalance timeout of the members here, shorter than their sessions


def member(desk, name, *offers, **fields):
    return Assigner(desk, name, *offers, **{"rebalance_timeout_ms": LATE, **fields}).join()


def described(desk):
    request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    [group] = desk.told(request, 1).groups
    return group


def computing(desk):
    """The member that is picked."""
    return desk.shard.computations["g"].member_id


def test_exactly_one_member_is_asked():
    """K848-057, K848-059."""
    desk = Desk()
    members = [member(desk, name) for name in "cab"]
    assert [one.asked for one in members] == [True, False, False]
    assert [one.beat().asked for one in members] == [True, False, False]
    assert desk.shard.counters.computations == 1


def test_the_notice_comes_with_all_that_a_success_has():
    """K848-059."""
    desk = Desk()
    one = member(desk, "a")
    answer = beat(desk, "a", 0, client_assignors=[offer()])
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (20000, "a", 1)
    assert (answer.heartbeat_interval_ms, answer.assignment.topic_partitions) == (5000, [])
    settle(one)
    assert beat(desk, "a", one.epoch).error_code == 0


def test_who_finds_the_need_is_asked_else_the_first_by_id():
    """K848-057."""
    desk = Desk()
    one, two = member(desk, "b"), member(desk, "a")
    settle(one, two)
    one.beat(client_assignors=[offer(reason=1)])
    assert (one.asked, computing(desk)) == (True, "b")
    desk.wait(LATE)
    assert not one.beat().asked
    assert computing(desk) == "a"


def test_a_stock_client_is_never_asked():
    """K848-058: nor does a group without assignors ever compute."""
    desk = Desk()
    [stock] = settled(desk, "s")
    one = Assigner(desk, "a").join()
    assert not one.asked
    desk.wait(1000)
    stock.beat()
    one.beat()
    assert desk.shard.computations == {}
    assert described(desk).client_side.why == "no assignor is offered by all members"


def test_a_rejoin_without_assignors_has_none():
    """K848-058: the next client under that id may be one that does not know of them."""
    desk = Desk()
    one = member(desk, "a")
    settle(one)
    answer = beat(desk, "a", 0)
    assert (answer.error_code, group_of(desk).members["a"].client_assignors) == (0, ())
    assert group_of(desk).offering == 0


def test_a_lost_answer_is_no_loss():
    """K848-059: the notice is repeated until the assignment is there."""
    desk = Desk()
    member(desk, "a")
    for _ in range(5):
        assert beat(desk, "a", 1).error_code == ErrorCode.COMPUTE_ASSIGNMENT
    assert desk.shard.counters.computations == 1


def test_who_is_late_is_passed_over_for_this_epoch_and_stays():
    """K848-065, K848-074."""
    desk = Desk()
    one, two = member(desk, "a"), member(desk, "b")
    prepared = one.prepare()
    desk.wait(LATE - 1)
    assert one.beat().asked
    desk.wait(1)
    late = one.install(prepared.group_epoch, *share(prepared))
    assert late.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not one.beat().asked
    assert "a" in group_of(desk).members
    assert two.beat().asked
    assert desk.shard.counters.computations_late == 1
    assert "has not computed the assignment of epoch 3" in " ".join(desk.told_lines.lines)
    two.compute(*share(two.prepare()))
    one.beat(client_assignors=[offer(reason=1)])
    assert one.asked  # another epoch


def test_a_broker_bounds_the_time_of_a_member():
    """Its rebalance timeout is for its records, and may be minutes: the whole group would wait."""
    desk = Desk(group_consumer_client_assignors_timeout_ms=1000)
    one, two = member(desk, "a", rebalance_timeout_ms=300_000), member(desk, "b")
    assert one.beat().asked
    desk.wait(999)
    assert one.beat().asked
    desk.wait(1)
    assert not one.beat().asked
    assert two.beat().asked
    assert "within 1000 ms" in " ".join(desk.told_lines.lines)


def test_the_time_begins_with_the_first_notice():
    """K848-065."""
    desk = Desk()
    one = member(desk, "a")
    two = member(desk, "b")
    desk.wait(LATE)
    one.beat()  # picks the other one, who has not heard of it
    desk.wait(3 * LATE)
    assert two.beat().asked
    one.beat()
    desk.wait(LATE - 1)
    assert two.beat().asked
    desk.wait(1)
    assert not two.beat().asked


def test_when_all_are_late_the_broker_computes():
    """K848-047, K848-065."""
    desk = Desk()
    one = member(desk, "a")
    desk.wait(LATE)
    assert not one.beat().asked
    assert one.beat().owned == {"orders": [0, 1, 2, 3]}
    side = described(desk).client_side
    assert (side.selected, side.why) == ("x", choosing.TOO_LATE)
    assert one.beat(client_assignors=[offer(reason=1)]).asked


def test_a_group_that_is_too_large_is_the_broker_s(monkeypatch):
    """K848-072."""
    desk = Desk(known=topics(orders=1))
    one = member(desk, "a", offer(metadata=bytes(300_000)))
    settle(one)
    monkeypatch.setattr(choosing, "PREPARED_AT_MOST", 500_000)
    two = member(desk, "b", offer(metadata=bytes(300_000)))
    assert not two.asked
    side = described(desk).client_side
    assert side.why == "to describe the group takes 600184 bytes, more than 500000"
    two.take_leave()
    assert one.beat().asked


GONE = {
    "leaves": lambda one: one.take_leave(),
    "goes for a while": lambda one: beat(one.desk, one.id, -2, instance_id="i"),
    "has the assignor no more": lambda one: one.beat(client_assignors=[]),
    "has another one": lambda one: one.beat(client_assignors=[offer("y")]),
    "joins anew": lambda one: one.join(),
    "is late": lambda one: one.desk.wait(LATE),
    "loses its coordinator": lambda one: one.desk.restart(),
    "is of a group that is switched off": lambda one: switch_off(one.desk),
}


def switch_off(desk):
    changes = [("consumer.client.assignors.enable", "false")]
    assert desk.told(AlterGroupSettings("g", changes), 0).error is None


@pytest.mark.parametrize("prepared", [False, True], ids=["before Prepare", "after Prepare"])
@pytest.mark.parametrize("what", GONE)
def test_what_ends_a_computation(what, prepared):
    """K848-068: late calls are refused and change nothing; the group comes to rest with others."""
    desk = Desk()
    one = member(desk, "a", instance_id="i")
    two = member(desk, "b")
    answer = one.prepare()
    if not prepared:
        desk.restart()
        assert one.beat().asked
    GONE[what](one)
    desk.written()
    late = one.install(answer.group_epoch, *share(answer))
    assert late.error_code in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    ), late.error_message
    assert desk.written() == []
    assert list(differences(desk.shard, desk.beside().shard)) == []
    for _ in range(6):
        two.beat()
        if two.asked:
            two.compute(*share(two.prepare()))
        if "a" in group_of(desk).members and group_of(desk).members["a"].epoch > 0:
            one.epoch = group_of(desk).members["a"].epoch
            one.beat()
            if one.asked:
                one.compute(*share(one.prepare()))
    assert two.owned["orders"]


def test_the_whole_group_is_gone_and_made_anew():
    """K848-068."""
    desk = Desk()
    one = member(desk, "a")
    answer = one.prepare()
    one.take_leave()
    desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert desk.shard.computations == {}
    assert (timers.COMPUTATION, "g") not in desk.shard.deadlines
    again = member(desk, "a")
    assert again.asked
    refused = again.install(answer.group_epoch, *share(answer))
    assert refused.error_code == ErrorCode.STALE_MEMBER_EPOCH


def test_who_has_gone_is_not_waited_for_and_not_late():
    """K848-068, K848-074."""
    desk = Desk()
    one = member(desk, "a")
    member(desk, "b")
    one.prepare()
    one.take_leave()
    assert desk.shard.computations == {}
    assert (timers.COMPUTATION, "g") not in desk.shard.deadlines
    desk.wait(LATE)
    assert desk.shard.counters.computations_late == 0


def test_nothing_is_left_behind():
    desk = Desk()
    one, two = member(desk, "a"), member(desk, "b")
    assert (timers.COMPUTATION, "g") in desk.shard.deadlines
    settle(one, two)
    assert desk.shard.computations == {}
    one.take_leave()
    two.take_leave()
    assert (timers.COMPUTATION, "g") not in desk.shard.deadlines


def test_a_step_that_is_refused_asks_nobody():
    """The heartbeat that would have been asked writes a record that the log has no room for."""
    desk = Desk()
    names = [f"{'t' * 200}{number}" for number in range(6000)]
    answer = beat(desk, "a", 0, names=names, client_assignors=[offer()])
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    uninvited = Assigner(desk, "a")
    uninvited.epoch = 1
    assert uninvited.prepare().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert member(desk, "a").asked


def test_a_step_that_is_refused_leaves_nothing_behind():
    """Any number of groups could be named in this way, and none of them would be there."""
    desk = Desk()
    names = [f"{'t' * 200}{number}" for number in range(6000)]
    answer = beat(desk, "a", 0, names=names, client_assignors=[offer()])
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert desk.shard.computations == {}
    assert (timers.COMPUTATION, "g") not in desk.shard.deadlines


def test_a_step_that_is_refused_does_not_change_the_choice():
    """Its epoch comes by another step, and what was judged of it was another group."""
    desk = Desk()
    a, b = (member(desk, one, offer("x"), offer("y")) for one in "ab")
    settle(a, b)
    names = [f"{'t' * 200}{number}" for number in range(6000)]
    answer = beat(desk, "a", a.epoch, names=names, client_assignors=[offer("y")], owned=a.owned)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    member(desk, "c", offer("x"))
    assert desk.shard.computations["g"].assignor == "x"


def test_a_conversion_that_is_refused_is_forgotten_in_time():
    """The records of a group have no room in one batch, though each of them has."""
    desk = Desk(**QUICK)
    classic_group(desk, 3)
    desk.driver.limit_bytes = lambda: 700
    offered = [offer("range", low=-1)]
    answer = beat(desk, "new", 0, client_assignors=offered, rebalance_timeout_ms=LATE)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    desk.wait(LATE)
    assert desk.shard.computations == {}


def test_the_interval_between_assignments_holds_for_members_too():
    desk = Desk(group_consumer_assignment_interval_ms=1000)
    one = member(desk, "a")
    one.compute(*share(one.prepare())).beat()
    assert not one.beat(client_assignors=[offer(reason=1)]).asked
    desk.wait(1000)
    assert one.beat().asked


def test_a_vote_for_an_assignor_of_the_broker_ends_it_and_its_end_begins_it_anew():
    """K848-034, K848-043."""
    desk = Desk()
    one, two = member(desk, "a"), member(desk, "b")
    assert one.beat().asked
    two.beat(server_assignor="range")
    assert described(desk).assignor_name == "range"
    assert desk.shard.computations == {}
    two.take_leave()
    assert one.beat().asked
    assert described(desk).client_side.computing_member == "a"


def test_who_joins_without_reading_anything_changes_the_choice_all_the_same():
    """K848-034."""
    desk = Desk()
    one = member(desk, "a")
    settle(one)
    epoch = group_of(desk).group_epoch
    beat(desk, "s", 0, names=[])
    assert group_of(desk).group_epoch == epoch + 1
    assert described(desk).assignor_name == "uniform"


CHANGES = {
    "a reason": [offer(reason=1)],
    "metadata": [offer(metadata=b"m")],
    "a version of metadata": [offer("x", -1, 0, version=0)],
    "a range": [offer("x", 0, 1)],
    "one more": [offer(), offer("y")],
    "the reason of one that is not used": [offer(), offer("y", reason=1)],
    "none": [],
}


@pytest.mark.parametrize("what", CHANGES)
def test_any_change_of_what_a_member_says_raises_the_epoch_once(what):
    """K848-011, K848-034, K848-035."""
    desk = Desk()
    one = member(desk, "a")
    settle(one)
    before = group_of(desk).group_epoch
    one.beat(client_assignors=CHANGES[what])
    assert group_of(desk).group_epoch == before + 1
    settle(one)
    written = len(desk.log)
    one.beat(client_assignors=CHANGES[what])
    assert (group_of(desk).group_epoch, len(desk.log)) == (before + 1, written)


def test_a_name_and_metadata_together_raise_it_once():
    """K848-035."""
    desk = Desk()
    one = member(desk, "a")
    settle(one)
    before = group_of(desk).group_epoch
    one.beat(client_assignors=[offer(reason=1)], names=["payments"])
    assert group_of(desk).group_epoch == before + 1


def test_everybody_goes_on_while_one_computes():
    """K848-064."""
    desk = Desk()
    one, two = member(desk, "a"), member(desk, "b")
    settle(one, two)
    two.beat(client_assignors=[offer(reason=1)])
    two.prepare()
    for _ in range(3):
        desk.wait(3000)
        assert one.beat().owned == {"orders": [0, 2]}
        assert two.beat().owned == {"orders": [1, 3]}
    assert {one.state for one in group_of(desk).members.values()} == {0}


def test_a_member_of_another_group_cannot_help():
    """K848-161."""
    desk = Desk()
    one = member(desk, "a")
    other = Assigner(desk, "a", group_id="h")
    other.join()
    assert (one.asked, other.asked) == (True, True)
    answer = one.install(2, part("a", {}), group_id="h")
    assert answer.error_code == ErrorCode.STALE_MEMBER_EPOCH
