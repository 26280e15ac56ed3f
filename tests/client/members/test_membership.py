# SPDX-License-Identifier: Apache-2.0
"""A membership by table: what each answer means at each stage, and when it speaks again."""

from typing import Any

import pytest

from kohort.client.members.events import (
    AssignmentMetadata,
    ComputeWanted,
    CoordinatorWanted,
    GroupLeft,
    HangUp,
    MembershipFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    RequestRefused,
    TopicIdPartition,
)
from kohort.client.members.heartbeat import MemberConfig
from kohort.client.members.membership import Heartbeat, Membership, Stage
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, MemberId, Millis, PartitionIndex, TopicId
from kohort.wire.messages.consumer_group_heartbeat import (
    Assignment,
    Attachment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TOPIC = TopicId(b"t" * 16)
NOW = Millis(1_000_000)
Places = tuple[TopicIdPartition, ...]


def places(*indices: int) -> Places:
    return tuple(TopicIdPartition(TOPIC, PartitionIndex(index)) for index in indices)


def given(epoch: int, *indices: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    """An answer with an assignment."""
    mine = [TopicPartitions(topic_id=TOPIC, partitions=list(indices))] if indices else []
    return kept(epoch, assignment=Assignment(topic_partitions=mine), **fields)


def kept(epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    """An answer without one."""
    return ConsumerGroupHeartbeatResponse(
        **{"member_id": "m", "member_epoch": epoch, "heartbeat_interval_ms": 5000, **fields}
    )


def no(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message="no")


def outside(**more: Any) -> Membership:
    member = Membership(GroupId("g"), MemberId("m"), MemberConfig(names=("t",)), **more)
    member.coordinator_found()
    return member


def sent(member: Membership, now: Millis = NOW) -> Heartbeat:
    heartbeat = member.next(now)
    assert heartbeat is not None
    return heartbeat


def tell(member: Membership, answer: Any, now: Millis = NOW) -> list[Any]:
    """One request and its answer, at once."""
    return member.received(sent(member, now).number, answer, now)


def joining() -> Membership:
    member = outside()
    assert member.join() == []
    return member


def at_rest(*indices: int) -> Membership:
    """A member at epoch 5 that has these, acknowledged, and is quiet until NOW + 5000."""
    member = joining()
    tell(member, given(5, *indices))
    if indices:
        tell(member, kept(5))
    assert member.wake_at() == NOW + 5000
    return member


def after(member: Membership, ms: int = 5000) -> Millis:
    return Millis(NOW + ms)


def revoking() -> Membership:
    """A member that has 0 and 1, and is to give up 1."""
    member = at_rest(0, 1)
    assert tell(member, given(5, 0), after(member)) == [PartitionsRevoked(places(1))]
    return member


def parting() -> Membership:
    member = at_rest(0)
    assert member.leave(NOW) == [PartitionsRevoked(places(0))]
    return member


def leaving() -> Membership:
    member = at_rest()
    assert member.leave(NOW) == []
    return member


def lost() -> Membership:
    member = at_rest(0)
    tell(member, no(ErrorCode.UNKNOWN_MEMBER_ID), after(member))
    return member


def failed() -> Membership:
    member = joining()
    tell(member, no(ErrorCode.GROUP_MAX_SIZE_REACHED))
    return member


STAGES = {
    Stage.OUTSIDE: outside,
    Stage.JOINING: joining,
    Stage.MEMBER: at_rest,
    Stage.LOST: lost,
    Stage.PARTING: parting,
    Stage.LEAVING: leaving,
    Stage.FAILED: failed,
}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_is_reached(stage: Stage) -> None:
    assert STAGES[stage]().stage is stage


# Joining and staying


def test_a_first_join_looks_for_the_coordinator_and_waits_for_it() -> None:
    member = Membership(GroupId("g"), MemberId("m"), MemberConfig(names=("t",)))
    assert member.join() == [CoordinatorWanted()]
    assert member.wake_at() is None
    assert member.next(NOW) is None
    member.coordinator_found()
    request = sent(member).request
    assert (request.member_id, request.member_epoch, request.topic_partitions) == ("m", 0, [])


def test_a_join_is_answered_and_acknowledged_at_once() -> None:
    member = joining()
    assert tell(member, given(5, 1, 0)) == [PartitionsAssigned(places(0, 1))]
    assert (member.stage, member.epoch) == (Stage.MEMBER, 5)
    assert member.consumable == set(places(0, 1))
    acknowledgement = sent(member).request
    assert acknowledgement.topic_partitions == [TopicPartitions(TOPIC, [0, 1])]
    assert acknowledgement.subscribed_topic_names is None


@pytest.mark.parametrize("stage", [one for one in STAGES if one not in ("outside", "failed")])
def test_nobody_joins_twice(stage: Stage) -> None:
    with pytest.raises(ValueError, match=f"member m is {stage}, expected outside or failed"):
        STAGES[stage]().join()


def test_a_member_that_failed_lets_go_before_it_joins_again() -> None:
    member = at_rest(0)
    tell(member, no(ErrorCode.INVALID_REQUEST), after(member))
    with pytest.raises(ValueError, match="member m is failed"):
        member.join()
    assert member.released(frozenset(places(0))) == []
    assert member.join() == []
    assert sent(member).request.member_epoch == 0


def test_nothing_is_sent_while_a_request_is_under_way() -> None:
    member = joining()
    sent(member)
    assert member.waits_for_answer
    assert member.wake_at() is None
    assert member.next(Millis(NOW + 10**9)) is None


def test_a_heartbeat_is_due_when_the_interval_is_over() -> None:
    """K848-095: the interval is the coordinator's, and counts from when the last one was sent."""
    member = at_rest()
    assert member.next(after(member, 4999)) is None
    heartbeat = sent(member, after(member))
    member.received(heartbeat.number, kept(5, heartbeat_interval_ms=7000), after(member, 6000))
    assert member.wake_at() == NOW + 5000 + 7000
    tell(member, kept(5, heartbeat_interval_ms=100), after(member, 20_000))
    assert member.wake_at() == NOW + 20_100


@pytest.mark.parametrize("interval_ms", [0, -1])
def test_an_interval_that_is_no_interval_changes_nothing(interval_ms: int) -> None:
    member = at_rest()
    tell(member, kept(5, heartbeat_interval_ms=interval_ms), after(member))
    assert member.interval_ms == 5000


def test_another_wish_is_said_at_once() -> None:
    member = at_rest(0)
    member.want(MemberConfig(names=("t", "u")))
    request = sent(member).request
    assert request.subscribed_topic_names == ["t", "u"]
    assert request.topic_partitions is None


def test_a_wish_that_changes_while_the_last_is_under_way_is_said_next() -> None:
    member = at_rest(0)
    member.want(MemberConfig(names=("u",)))
    heartbeat = sent(member)
    member.want(MemberConfig(names=("v",)))
    member.received(heartbeat.number, kept(5), NOW)
    assert sent(member).request.subscribed_topic_names == ["v"]


def test_the_epoch_moves_with_each_answer() -> None:
    member = at_rest(0)
    tell(member, kept(6), after(member))
    assert member.commits_as == ("m", 6)


# Giving up


def test_what_is_taken_away_stays_owned_until_it_is_released() -> None:
    """K848-081."""
    member = revoking()
    assert member.owned == set(places(0, 1))
    assert member.consumable == set(places(0))
    assert member.commits_as == ("m", 5)
    assert sent(member, after(member, 10_000)).request.topic_partitions is None
    assert member.released(frozenset(places(1))) == []
    assert member.owned == set(places(0))


def test_a_release_is_said_at_once() -> None:
    member = revoking()
    member.released(frozenset(places(1)))
    request = sent(member, after(member)).request
    assert request.topic_partitions == [TopicPartitions(TOPIC, [0])]


def test_a_release_that_comes_while_a_heartbeat_is_under_way_is_said_next() -> None:
    member = revoking()
    heartbeat = sent(member, after(member, 10_000))
    member.released(frozenset(places(1)))
    member.received(heartbeat.number, kept(5), after(member, 10_001))
    request = sent(member, after(member, 10_001)).request
    assert request.topic_partitions == [TopicPartitions(TOPIC, [0])]


def test_a_release_counts_when_it_is_complete() -> None:
    member = at_rest(0, 1)
    tell(member, given(5), after(member))
    member.released(frozenset(places(0)))
    assert member.wake_at() == NOW + 10_000
    member.released(frozenset(places(1)))
    assert sent(member, after(member)).request.topic_partitions == []


def test_new_partitions_wait_until_the_old_ones_are_released() -> None:
    member = at_rest(0)
    assert tell(member, given(6, 1), after(member)) == [PartitionsRevoked(places(0))]
    assert member.consumable == frozenset()
    assert member.released(frozenset(places(0))) == [PartitionsAssigned(places(1))]


def test_more_is_taken_away_while_something_is_being_released() -> None:
    member = revoking()
    assert tell(member, given(5), after(member, 10_000)) == [PartitionsRevoked(places(0))]
    member.released(frozenset(places(0, 1)))
    assert sent(member, after(member, 10_000)).request.topic_partitions == []


def test_what_is_given_back_before_it_is_released_is_released_first() -> None:
    member = revoking()
    assert tell(member, given(5, 0, 1), after(member, 10_000)) == []
    assert member.consumable == set(places(0))
    assert member.released(frozenset(places(1))) == [PartitionsAssigned(places(1))]


def test_the_time_for_a_release_counts_from_the_question() -> None:
    """K848-082, K848-087: the coordinator may have counted since then, and no longer."""
    member = at_rest(0, 1)
    heartbeat = sent(member, after(member))
    member.received(heartbeat.number, given(5, 0), after(member, 9000))
    assert member.release_by == NOW + 5000 + 300_000
    tell(member, given(5), after(member, 10_000))
    assert member.release_by == NOW + 5000 + 300_000
    member.released(frozenset(places(0, 1)))
    assert member.release_by is None


@pytest.mark.parametrize("index", [0, 7])
def test_what_is_not_to_be_given_up_is_passed_over(index: int) -> None:
    member = revoking()
    assert member.released(frozenset(places(index))) == []
    assert member.owned == set(places(0, 1))


def test_a_release_that_is_repeated_after_the_partition_came_back_is_harmless() -> None:
    member = revoking()
    member.released(frozenset(places(1)))
    assert tell(member, given(6, 0, 1), after(member)) == [PartitionsAssigned(places(1))]
    assert member.released(frozenset(places(1))) == []
    assert member.consumable == set(places(0, 1))


# Answers that are lost, late, repeated or refused


def test_a_lost_answer_makes_the_next_heartbeat_full_after_a_pause() -> None:
    """K848-088."""
    member = at_rest(0)
    sent(member, after(member))
    assert member.connection_lost(after(member)) == [CoordinatorWanted()]
    member.coordinator_found()
    assert member.wake_at() == NOW + 5100
    request = sent(member, after(member, 5100)).request
    assert request.member_epoch == 5
    assert request.subscribed_topic_names == ["t"]
    assert request.topic_partitions == [TopicPartitions(TOPIC, [0])]
    assert member.connection_lost(after(member, 5100)) == [CoordinatorWanted()]
    assert member.connection_lost(after(member, 5100)) == []


def test_pauses_grow_and_end_with_an_answer() -> None:
    member = outside(backoff=RetryBackoff(first_ms=100, most_ms=300))
    member.join()
    now = NOW
    for pause_ms in (100, 200, 300, 300):
        tell(member, no(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), now)
        assert member.wake_at() == now + pause_ms
        now = Millis(now + pause_ms)
    tell(member, given(1), now)
    assert member.wake_at() == now + 5000


def test_a_late_or_repeated_answer_is_not_heard() -> None:
    member = at_rest(0)
    first = sent(member, after(member))
    member.connection_lost(after(member))
    member.coordinator_found()
    assert member.received(first.number, given(9), after(member)) == []
    second = sent(member, after(member, 5100))
    assert member.received(first.number, given(9), after(member)) == []
    member.received(second.number, given(5, 0), after(member, 5100))
    assert member.received(second.number, given(9), after(member)) == []
    assert (member.epoch, member.owned) == (5, set(places(0)))


@pytest.mark.parametrize("epoch", [0, -1, -2])
def test_an_epoch_of_no_member_is_not_taken_over(epoch: int) -> None:
    """The next heartbeat would be a join or a leave."""
    member = at_rest(0)
    assert tell(member, given(epoch), after(member)) == []
    assert (member.stage, member.epoch, member.owned) == (Stage.MEMBER, 5, set(places(0)))
    assert member.wake_at() == NOW + 5100


LATER = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT]
PUT_OUT = [
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
]
ELSEWHERE = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]
FOR_GOOD = [
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


@pytest.mark.parametrize("code", LATER)
def test_later_is_tried_again_in_full(code: ErrorCode) -> None:
    member = at_rest(0)
    assert tell(member, no(code), after(member)) == []
    assert member.wake_at() == NOW + 5100
    assert sent(member, after(member, 5100)).request.subscribed_topic_names == ["t"]


@pytest.mark.parametrize("code", ELSEWHERE)
def test_another_coordinator_is_asked_at_once_but_only_once(code: ErrorCode) -> None:
    member = at_rest(0)
    assert tell(member, no(code), after(member)) == [CoordinatorWanted()]
    assert member.next(after(member)) is None
    assert member.wake_at() == member.silent_at()
    member.coordinator_found()
    assert tell(member, no(code), after(member)) == [CoordinatorWanted()]
    member.coordinator_found()
    assert member.wake_at() == NOW + 5200
    assert member.consumable == set(places(0))


@pytest.mark.parametrize("code", PUT_OUT)
def test_who_is_put_out_loses_all_and_joins_once_it_is_released(code: ErrorCode) -> None:
    """K848-090, K848-101."""
    member = revoking()
    (event,) = tell(member, no(code), after(member, 10_000))
    assert isinstance(event, PartitionsLost)
    assert (event.partitions, event.error.code) == (places(0), code)
    assert (member.stage, member.epoch) == (Stage.LOST, 0)
    assert member.consumable == frozenset()
    assert member.commits_as is None
    assert member.release_by is None
    assert member.wake_at() is None
    member.released(frozenset(places(0)))
    assert member.stage is Stage.LOST
    member.released(frozenset(places(1)))
    request = sent(member, after(member, 10_000)).request
    assert (request.member_id, request.member_epoch, request.topic_partitions) == ("m", 0, [])


@pytest.mark.parametrize("code", PUT_OUT)
def test_who_is_put_out_with_nothing_joins_at_once(code: ErrorCode) -> None:
    member = at_rest()
    assert tell(member, no(code), after(member)) == []
    assert sent(member, after(member)).request.member_epoch == 0


@pytest.mark.parametrize("code", PUT_OUT[:2])
def test_a_join_that_is_refused_as_if_it_were_none_is_no_hot_loop(code: ErrorCode) -> None:
    member = joining()
    assert tell(member, no(code)) == []
    assert (member.stage, member.wake_at()) == (Stage.JOINING, NOW + 100)


@pytest.mark.parametrize("code", FOR_GOOD)
def test_a_refusal_for_good_is_the_end(code: ErrorCode) -> None:
    member = at_rest(0)
    lost, failed = tell(member, no(code), after(member))
    assert isinstance(lost, PartitionsLost)
    assert isinstance(failed, MembershipFailed)
    assert failed.error.code is code
    assert member.stage is Stage.FAILED
    assert member.wake_at() is None


def test_a_group_that_does_not_take_consumers_refuses_a_join_for_good() -> None:
    member = joining()
    (event,) = tell(member, no(ErrorCode.GROUP_ID_NOT_FOUND))
    assert isinstance(event, MembershipFailed)


def test_a_code_that_nobody_knows_is_a_refusal_for_good() -> None:
    (event,) = tell(joining(), ConsumerGroupHeartbeatResponse(error_code=9999))
    assert isinstance(event, MembershipFailed)
    assert event.error.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_missing_right_is_told_and_asked_for_again() -> None:
    member = at_rest(0)
    (event,) = tell(member, no(ErrorCode.TOPIC_AUTHORIZATION_FAILED), after(member))
    assert isinstance(event, RequestRefused)
    assert member.consumable == set(places(0))
    assert member.wake_at() == NOW + 5100


# Leaving


def test_a_leave_is_said_when_all_is_released() -> None:
    """K848-092."""
    member = parting()
    assert member.consumable == frozenset()
    assert member.commits_as == ("m", 5)
    assert member.leave(NOW) == []
    assert tell(member, kept(6), after(member)) == []
    assert member.commits_as == ("m", 6)
    assert member.released(frozenset(places(0))) == []
    good_bye = sent(member, after(member))
    assert good_bye.request.member_epoch == -1
    assert member.received(good_bye.number, kept(-1), after(member)) == [GroupLeft()]
    assert member.stage is Stage.OUTSIDE
    assert member.commits_as is None


def test_who_parts_takes_nothing_new() -> None:
    member = parting()
    assert tell(member, given(6, 0, 1), after(member)) == []
    assert member.owned == set(places(0))


def test_what_was_being_released_is_not_revoked_twice() -> None:
    member = revoking()
    assert member.leave(NOW) == [PartitionsRevoked(places(0))]


@pytest.mark.parametrize("code", [*PUT_OUT, *FOR_GOOD, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_good_bye_that_is_refused_for_good_is_one(code: ErrorCode) -> None:
    member = leaving()
    assert tell(member, no(code)) == [GroupLeft()]


@pytest.mark.parametrize("code", [*LATER, *ELSEWHERE])
def test_a_good_bye_is_said_until_it_is_heard(code: ErrorCode) -> None:
    member = leaving()
    assert tell(member, no(code)) == ([CoordinatorWanted()] if code in ELSEWHERE else [])
    member.coordinator_found()
    now = member.wake_at()
    assert now is not None
    assert tell(member, kept(-1), now) == [GroupLeft()]


def test_a_good_bye_waits_for_the_answer_before() -> None:
    member = joining()
    join = sent(member)
    assert member.leave(NOW) == []
    assert member.wake_at() is None
    assert member.received(join.number, given(5, 0), NOW) == []
    assert member.owned == frozenset()
    assert tell(member, kept(-1)) == [GroupLeft()]


def test_who_has_said_nothing_is_out_at_once() -> None:
    assert joining().leave(NOW) == [GroupLeft()]
    assert outside().leave(NOW) == [GroupLeft()]


@pytest.mark.parametrize("code", [PUT_OUT[0], FOR_GOOD[0]])
def test_who_loses_all_while_it_parts_says_good_bye_all_the_same(code: ErrorCode) -> None:
    """Its old self may be known still, and others would wait for its session to end."""
    member = parting()
    events = tell(member, no(code), after(member))
    assert [type(one) for one in events] == ([] if code in PUT_OUT else [MembershipFailed])
    assert member.wake_at() is None
    assert member.released(frozenset(places(0))) == []
    assert member.stage is Stage.LEAVING
    assert tell(member, no(ErrorCode.UNKNOWN_MEMBER_ID), after(member)) == [GroupLeft()]


def test_who_is_lost_leaves_without_joining() -> None:
    member = lost()
    assert member.leave(NOW) == []
    member.released(frozenset(places(0)))
    assert sent(member, after(member)).request.member_epoch == -1


def test_who_has_failed_leaves_by_a_good_bye() -> None:
    member = failed()
    assert member.leave(NOW) == []
    assert tell(member, no(ErrorCode.UNKNOWN_MEMBER_ID)) == [GroupLeft()]


def test_who_has_left_may_join_again() -> None:
    member = leaving()
    tell(member, kept(-1))
    assert member.join() == []
    assert tell(member, given(7, 0)) == [PartitionsAssigned(places(0))]


def test_who_has_failed_without_a_coordinator_looks_for_one_to_leave() -> None:
    member = failed()
    assert member.connection_lost(NOW) == [CoordinatorWanted()]
    assert outside().connection_lost(NOW) == []


# Static members (KIP-345)


def static(*indices: int) -> Membership:
    """A static member at epoch 5 that has these."""
    member = outside(instance_id="i")
    assert member.join() == []
    tell(member, given(5, *indices))
    return member


@pytest.mark.parametrize(("for_good", "epoch"), [(False, -2), (True, -1)])
def test_a_static_member_leaves_for_a_while_unless_it_is_for_good(
    for_good: bool,  # noqa: FBT001
    epoch: int,
) -> None:
    """It lets go of what it has, though nobody else gets it (K848-107)."""
    member = static(0)
    assert member.leave(NOW, for_good=for_good) == [PartitionsRevoked(places(0))]
    assert member.released(frozenset(places(0))) == []
    request = sent(member).request
    assert (request.member_epoch, request.instance_id) == (epoch, "i")
    assert member.connection_lost(NOW) == [CoordinatorWanted()]
    member.coordinator_found()
    assert sent(member, after(member)).request.member_epoch == epoch  # until it is heard
    assert member.received(2, kept(epoch), after(member)) == []
    assert member.received(3, kept(epoch), after(member)) == [GroupLeft()]
    assert member.stage is Stage.OUTSIDE


def test_who_waits_for_its_instance_id_is_told_so_and_asks_again() -> None:
    """Its former self may have died without a word, and is a member until its session is over."""
    member = outside(instance_id="i")
    member.join()
    for number in range(3):
        at = after(member, number * 10_000)
        (event,) = tell(member, no(ErrorCode.UNRELEASED_INSTANCE_ID), at)
        assert isinstance(event, RequestRefused)
        assert member.stage is Stage.JOINING
        wake = member.wake_at()
        assert wake is not None
        assert wake > at
    assert tell(member, given(6, 1), after(member, 40_000)) == [PartitionsAssigned(places(1))]


def test_who_has_lost_its_instance_id_has_lost_everything_and_says_no_good_bye() -> None:
    """K848-109."""
    member = static(0)
    lost, failure = tell(member, no(ErrorCode.FENCED_INSTANCE_ID), after(member))
    assert isinstance(lost, PartitionsLost)
    assert isinstance(failure, MembershipFailed)
    assert member.leave(NOW) == []
    assert member.released(frozenset(places(0))) == [GroupLeft()]
    assert member.wake_at() is None


# An assignor of its own


def test_who_is_asked_to_compute_is_a_member_as_before() -> None:
    """The answer is filled in as for success: nothing of it is lost (KIP-848)."""
    member = joining()
    asked = given(4, 1, error_code=ErrorCode.COMPUTE_ASSIGNMENT)
    assert tell(member, asked) == [PartitionsAssigned(places(1)), ComputeWanted()]
    assert (member.stage, member.epoch) == (Stage.MEMBER, 4)


def test_it_is_asked_again_with_every_heartbeat() -> None:
    member = at_rest(0)
    answer = kept(5, error_code=ErrorCode.COMPUTE_ASSIGNMENT)
    for turn in (1, 2):
        assert tell(member, answer, Millis(NOW + turn * 5000)) == [ComputeWanted()]


def test_who_is_about_to_leave_computes_nothing() -> None:
    member = at_rest(0)
    member.leave(NOW)
    answer = kept(5, error_code=ErrorCode.COMPUTE_ASSIGNMENT)
    assert tell(member, answer, Millis(NOW + 5000)) == []
    assert member.stage is Stage.PARTING


def test_what_an_assignor_adds_comes_after_the_partitions() -> None:
    member = joining()
    answer = given(5, 0, 1)
    assert answer.assignment is not None
    answer.assignment.attachment = Attachment(
        error=3, metadata_version=2, metadata_bytes=b"x", assignor_name="mine"
    )
    attached = AssignmentMetadata(places(0, 1), 2, b"x", 3, "mine")
    assert tell(member, answer) == [PartitionsAssigned(places(0, 1)), attached]


# What others were told in its name


STALE = [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION]  # the latter to transactions
ELSE = [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.OFFSET_METADATA_TOO_LARGE]


@pytest.mark.parametrize("epoch", [5, 4])
@pytest.mark.parametrize("code", [*PUT_OUT, ErrorCode.FENCED_INSTANCE_ID, *STALE, *ELSE])
def test_a_refusal_of_its_present_epoch_counts_whoever_was_refused(
    code: ErrorCode, epoch: int
) -> None:
    """One of a former epoch fences nothing. Either way the coordinator is asked, if not left."""
    member = at_rest(0)
    events = member.refused_as(MemberId("m"), epoch, ApiError(code), NOW)
    if epoch == 5 and code in PUT_OUT:
        (lost,) = events
        assert isinstance(lost, PartitionsLost)
        assert (lost.partitions, lost.error.code) == (places(0), code)
        assert (member.stage, member.commits_as) == (Stage.LOST, None)
        member.released(frozenset(places(0)))
        assert sent(member).request.member_epoch == 0
    elif epoch == 5 and code is ErrorCode.FENCED_INSTANCE_ID:
        assert [type(event) for event in events] == [PartitionsLost, MembershipFailed]
        assert member.stage is Stage.FAILED
    else:
        assert events == []
        assert member.consumable == set(places(0))
        assert sent(member).request.member_epoch == 5


@pytest.mark.parametrize("stage", [one for one in STAGES if one not in ("member", "parting")])
@pytest.mark.parametrize("code", PUT_OUT)
def test_nobody_is_put_out_who_is_not_in(code: ErrorCode, stage: Stage) -> None:
    member = STAGES[stage]()
    assert member.refused_as(MemberId("m"), member.epoch, ApiError(code), NOW) == []
    assert member.stage is stage


def test_what_was_said_of_another_member_is_not_heard() -> None:
    member = at_rest(0)
    error = ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    assert member.refused_as(MemberId("former"), 5, error, NOW) == []
    assert member.next(NOW) is None


def test_a_heartbeat_under_way_is_given_up_by_who_is_put_out() -> None:
    """It must not be carried out after the join that follows."""
    member = at_rest(0)
    late = sent(member, after(member))
    error = ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    hang_up, lost = member.refused_as(MemberId("m"), 5, error, after(member))
    assert (hang_up, type(lost)) == (HangUp(), PartitionsLost)
    assert member.received(late.number, kept(6), after(member)) == []
    assert member.stage is Stage.LOST


def test_asking_again_and_again_for_nothing_new_is_no_hot_loop() -> None:
    """A coordinator may have a member compute, and refuse what it computes, for ever."""
    member = at_rest(0)
    now, backoff = NOW, []
    for _ in range(7):
        member.ask_soon(now)
        due = member.wake_at()
        assert due is not None
        backoff.append(max(0, due - now))
        now = Millis(max(now, due))
        tell(member, kept(5), now)
    assert backoff == [0, 100, 200, 400, 800, 1000, 1000]
    member.ask_soon(now)
    tell(member, given(6, 0, 1), Millis(now + 1000))
    tell(member, kept(6), Millis(now + 1000))  # the acknowledgement
    member.ask_soon(now)
    assert member.next(Millis(now + 1000)) is not None  # at once, as there was something new


def test_what_is_asked_while_an_answer_is_awaited_is_asked_after_it() -> None:
    member = at_rest(0)
    under_way = sent(member, after(member))
    member.ask_soon(after(member))
    assert member.next(after(member)) is None
    member.received(under_way.number, kept(5), after(member))
    assert member.next(after(member)) is not None


# Silence


def test_a_session_without_an_answer_is_the_end_of_what_it_owns() -> None:
    member = at_rest(0, 1)
    assert member.silent_at() == NOW + 45_000
    for ms in range(5000, 45_000, 5000):  # nobody hears any of these
        sent(member, Millis(NOW + ms))
        assert member.connection_lost(Millis(NOW + ms)) == [CoordinatorWanted()]
        member.coordinator_found()
    assert member.expire(Millis(NOW + 44_999)) == []
    assert member.consumable == set(places(0, 1))
    lost, wanted = member.expire(Millis(NOW + 45_000))
    assert isinstance(lost, PartitionsLost)
    assert (lost.partitions, lost.error.code) == (places(0, 1), ErrorCode.REQUEST_TIMED_OUT)
    assert wanted == CoordinatorWanted()
    assert (member.stage, member.consumable) == (Stage.LOST, frozenset())
    assert member.expire(Millis(NOW + 99_000)) == []
    member.released(frozenset(places(0, 1)))
    assert member.next(Millis(NOW + 45_000)) is None
    member.coordinator_found()
    assert sent(member, Millis(NOW + 45_000)).request.member_epoch == 0


def test_an_answer_that_is_awaited_is_silence_too() -> None:
    member = at_rest(0)
    late = sent(member, after(member))
    assert member.wake_at() == NOW + 45_000
    hang_up, lost, wanted = member.expire(Millis(NOW + 45_000))
    assert (hang_up, type(lost), wanted) == (HangUp(), PartitionsLost, CoordinatorWanted())
    assert member.received(late.number, kept(5), Millis(NOW + 45_000)) == []


@pytest.mark.parametrize(
    "code",
    [*ELSEWHERE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.TOPIC_AUTHORIZATION_FAILED],
)
def test_an_answer_that_does_not_know_the_member_is_silence(code: ErrorCode) -> None:
    member = at_rest(0)
    tell(member, no(code), after(member))
    assert member.silent_at() == NOW + 45_000
    member.coordinator_found()
    tell(member, kept(5), Millis(NOW + 20_000))
    assert member.silent_at() == NOW + 65_000  # from when that was asked


def test_a_session_is_never_shorter_than_two_intervals() -> None:
    """The session is the broker's, and only its interval is known."""
    member = outside(session_ms=6000)
    member.join()
    tell(member, given(5, 0))
    assert member.silent_at() == NOW + 10_000


@pytest.mark.parametrize("stage", [one for one in STAGES if one not in ("member", "parting")])
def test_who_owns_nothing_hears_no_silence(stage: Stage) -> None:
    member = STAGES[stage]()
    assert member.silent_at() is None
    assert member.expire(Millis(NOW + 10**9)) == []


# What a pattern matches, and an instance id that is held


def pattern(member_pattern: str = "t.*") -> Membership:
    member = Membership(GroupId("g"), MemberId("m"), MemberConfig(regex=member_pattern))
    member.coordinator_found()
    member.join()
    return member


def test_what_a_pattern_matches_is_asked_for_before_an_interval_is_over() -> None:
    """The broker looks for it beside its answer, which brings nothing."""
    member = pattern()
    tell(member, given(1))
    assert member.wake_at() == NOW + 100
    tell(member, kept(1), Millis(NOW + 100))
    assert member.wake_at() == NOW + 300
    assert tell(member, given(2, 0), Millis(NOW + 300)) == [PartitionsAssigned(places(0))]
    tell(member, kept(2), Millis(NOW + 300))
    assert member.wake_at() == NOW + 5300


def test_a_pattern_that_matches_nothing_is_no_hot_loop() -> None:
    member = pattern()
    now = NOW
    tell(member, given(1))
    waited = []
    for _ in range(7):
        due = member.wake_at()
        assert due is not None
        waited.append(due - now)
        now = due
        tell(member, kept(1), now)
    assert waited == [100, 200, 400, 800, 1000, 5000, 5000]


def test_another_pattern_is_looked_for_as_the_first_was() -> None:
    member = at_rest(0)
    member.want(MemberConfig(regex="u.*"))
    assert tell(member, kept(5)) == []
    assert member.wake_at() == NOW + 100


def test_an_instance_id_that_is_held_for_longer_than_two_sessions_is_an_error() -> None:
    """One that was killed holds it for a session, and for another one where the coordinator has
    read its log meanwhile; who holds it for longer is alive.
    """
    member = outside(instance_id="i", session_ms=20_000)
    member.join()
    held = no(ErrorCode.UNRELEASED_INSTANCE_ID)
    (refused,) = tell(member, held)
    assert isinstance(refused, RequestRefused)
    (refused,) = tell(member, held, Millis(NOW + 39_999))
    assert isinstance(refused, RequestRefused)
    (failed,) = tell(member, held, Millis(NOW + 41_000))
    assert isinstance(failed, MembershipFailed)
    assert failed.error.code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert "Another member has the group_instance_id i" in failed.error.message
    assert member.join() == []  # and again, as long as before
    (refused,) = tell(member, held, Millis(NOW + 50_000))
    assert isinstance(refused, RequestRefused)


def test_a_fault_that_others_see_is_the_end_as_well() -> None:
    member = at_rest(0)
    lost, failed = member.refuse(ApiError(ErrorCode.UNSUPPORTED_VERSION, "too old"))
    assert isinstance(lost, PartitionsLost)
    assert isinstance(failed, MembershipFailed)
    assert member.stage is Stage.FAILED
