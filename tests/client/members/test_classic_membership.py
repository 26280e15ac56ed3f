# SPDX-License-Identifier: Apache-2.0
"""A classic membership by table: what each answer means at each stage, and when it speaks again."""

from collections.abc import Callable
from typing import Any

import pytest

from kohort.client.members.classic_assigning import assignment_of, partitions_by_topic
from kohort.client.members.classic_membership import (
    ClassicMemberConfig,
    ClassicMembership,
    ClassicRequest,
    ClassicStage,
)
from kohort.client.members.events import (
    CoordinatorWanted,
    GroupLeft,
    HangUp,
    MembershipFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    TopicsWanted,
)
from kohort.errors import ApiError, ErrorCode
from kohort.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_subscription,
    encode,
)
from kohort.terms import GroupId, MemberId, Millis, TopicPartition
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kohort.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NOW = Millis(1_000_000)
EAGER, COOPERATIVE = ("range",), ("cooperative-sticky",)
WELL = HeartbeatResponse()


def places(*indices: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", one) for one in indices)


def generation(
    number: int, *, leader: str = "other", by: str = "range", ids: tuple[str, ...] = ("m", "n")
) -> JoinGroupResponse:
    metadata = encode(ConsumerProtocolSubscription(topics=["t"], owned_partitions=[]))
    members = [JoinGroupResponseMember(member_id=one, metadata=metadata) for one in ids]
    return JoinGroupResponse(
        generation_id=number,
        protocol_name=by,
        leader=leader,
        member_id="m",
        members=members if leader == "m" else [],
    )


def gets(*indices: int) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=assignment_of(places(*indices)))


def sent(member: ClassicMembership, now: Millis = NOW) -> ClassicRequest:
    request = member.next(now)
    assert request is not None
    return request


def tell(member: ClassicMembership, answer: Any, now: Millis = NOW) -> list[Any]:
    """One request and its answer, at once."""
    return member.received(sent(member, now).number, answer, now)


def after(ms: int) -> Millis:
    return Millis(NOW + ms)


def outside(protocols: tuple[str, ...] = EAGER, **more: Any) -> ClassicMembership:
    member = ClassicMembership(GroupId("g"), ClassicMemberConfig(("t",), protocols), **more)
    member.coordinator_found()
    return member


def joining(protocols: tuple[str, ...] = EAGER) -> ClassicMembership:
    """It has its id."""
    member = outside(protocols)
    assert member.join() == []
    no = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")
    assert tell(member, no) == []
    return member


def assigning() -> ClassicMembership:
    member = joining()
    assert tell(member, generation(3, leader="m")) == [TopicsWanted(("t",))]
    return member


def syncing(protocols: tuple[str, ...] = EAGER) -> ClassicMembership:
    member = joining(protocols)
    assert tell(member, generation(3, by=protocols[0])) == []
    return member


def at_rest(*indices: int, protocols: tuple[str, ...] = EAGER) -> ClassicMembership:
    """A follower of generation 3 that has these, and is quiet until NOW + 3000."""
    member = syncing(protocols)
    assert tell(member, gets(*indices)) == (
        [PartitionsAssigned(places(*indices))] if indices else []
    )
    assert member.wake_at() == after(3000)
    return member


def rebalancing(code: ErrorCode = ErrorCode.REBALANCE_IN_PROGRESS) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


def preparing() -> ClassicMembership:
    member = at_rest(0, 1)
    assert tell(member, rebalancing(), after(3000)) == [PartitionsRevoked(places(0, 1))]
    return member


def lost() -> ClassicMembership:
    member = at_rest(0)
    tell(member, rebalancing(ErrorCode.UNKNOWN_MEMBER_ID), after(3000))
    return member


def parting() -> ClassicMembership:
    member = at_rest(0)
    assert member.leave(NOW) == [PartitionsRevoked(places(0))]
    return member


def leaving() -> ClassicMembership:
    member = at_rest()
    assert member.leave(NOW) == []
    return member


def failed() -> ClassicMembership:
    member = joining()
    tell(member, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
    return member


STAGES: dict[ClassicStage, Callable[[], ClassicMembership]] = {
    ClassicStage.OUTSIDE: outside,
    ClassicStage.JOINING: joining,
    ClassicStage.ASSIGNING: assigning,
    ClassicStage.SYNCING: syncing,
    ClassicStage.MEMBER: at_rest,
    ClassicStage.PREPARING: preparing,
    ClassicStage.LOST: lost,
    ClassicStage.PARTING: parting,
    ClassicStage.LEAVING: leaving,
    ClassicStage.FAILED: failed,
}
JOINABLE = (ClassicStage.OUTSIDE, ClassicStage.FAILED)


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_is_reached(stage: ClassicStage) -> None:
    assert STAGES[stage]().stage is stage


@pytest.mark.parametrize("stage", [one for one in STAGES if one not in JOINABLE])
def test_nobody_joins_twice(stage: ClassicStage) -> None:
    with pytest.raises(ValueError, match=f"the member is {stage}, expected outside or failed"):
        STAGES[stage]().join()


# Joining


def test_a_member_comes_back_with_the_id_that_it_is_given() -> None:
    """KIP-394."""
    member = ClassicMembership(GroupId("g"), ClassicMemberConfig(("t",)))
    assert member.join() == [CoordinatorWanted()]
    assert member.next(NOW) is None
    member.coordinator_found()
    first = sent(member)
    assert isinstance(first.request, JoinGroupRequest)
    assert first.request.member_id == ""
    no = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")
    assert member.received(first.number, no, NOW) == []
    second = sent(member).request
    assert isinstance(second, JoinGroupRequest)
    assert second.member_id == "m"
    said = decode_subscription(second.protocols[0].metadata)
    assert (said.topics, said.owned_partitions, said.generation_id) == (["t"], [], -1)


def test_a_follower_syncs_with_empty_hands() -> None:
    request = sent(syncing()).request
    assert isinstance(request, SyncGroupRequest)
    assert (request.generation_id, request.member_id, request.assignments) == (3, "m", [])
    assert (request.protocol_type, request.protocol_name) == ("consumer", "range")


def test_a_leader_gives_to_everybody() -> None:
    member = assigning()
    assert member.leads
    assert member.wake_at() is None
    assert member.topics_known({"t": 3}) == []
    request = sent(member).request
    assert isinstance(request, SyncGroupRequest)
    assert {one.member_id: one.assignment for one in request.assignments} == {
        "m": assignment_of(places(0, 1)),
        "n": assignment_of(places(2)),
    }


def test_topics_that_come_too_late_change_nothing() -> None:
    member = at_rest(0)
    assert member.topics_known({"t": 9}) == []
    assert member.stage is ClassicStage.MEMBER


def test_a_leader_may_be_told_not_to_assign() -> None:
    """KIP-814: it watches the topics all the same."""
    member = joining()
    answer = generation(3, leader="m")
    answer.skip_assignment = True
    assert tell(member, answer) == [TopicsWanted(("t",))]
    assert member.stage is ClassicStage.SYNCING
    assert member.leads


@pytest.mark.parametrize(
    ("ids", "counted", "again"), [(("m",), 2, True), (("m",), 1, False), (("m", "n"), 2, False)]
)
def test_a_leader_that_need_not_assign_joins_again_where_it_alone_lacks_something(
    ids: tuple[str, ...], counted: int, *, again: bool
) -> None:
    """A topic may have come between the assignment of its former self and its own begin."""
    member = joining()
    answer = generation(3, leader="m", ids=ids)
    answer.skip_assignment = True
    assert tell(member, answer) == [TopicsWanted(("t",))]
    assert member.topics_known({"t": counted}) == []
    tell(member, gets(0))
    assert member.stage is ClassicStage.MEMBER

    tell(member, HeartbeatResponse(), after(3000))
    assert (member.stage is ClassicStage.MEMBER) is not again


@pytest.mark.parametrize(("number", "by"), [(-1, "range"), (3, "best"), (3, None)])
def test_a_generation_that_is_none_of_ours_ends_it(number: int, by: str) -> None:
    (event,) = tell(joining(), generation(number, by=by))
    assert isinstance(event, MembershipFailed)


@pytest.mark.parametrize("assignment", [b"\0", b"\0\1\x7f\xff\xff\xff"])
def test_an_assignment_that_cannot_be_read_ends_it(assignment: bytes) -> None:
    (event,) = tell(syncing(), SyncGroupResponse(assignment=assignment))
    assert isinstance(event, MembershipFailed)


def test_a_member_that_is_given_nothing_waits() -> None:
    member = syncing()
    assert tell(member, SyncGroupResponse()) == []
    assert (member.stage, member.owned) == (ClassicStage.MEMBER, frozenset())


# Staying, and joining again


def test_heartbeats_go_on_at_the_interval() -> None:
    member = at_rest(0)
    assert member.next(after(2999)) is None
    request = sent(member, after(3000)).request
    assert request == HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    assert member.waits_for_answer
    assert member.next(after(9000)) is None


def test_an_eager_member_lets_go_of_all_before_it_joins_again() -> None:
    member = preparing()
    assert member.consumable == frozenset()
    assert member.commits_as == ("m", 3)
    assert member.release_by == after(3000 + 300_000)
    assert tell(member, rebalancing(), after(6000)) == []
    assert member.released(frozenset(places(0)), after(6000)) == []
    assert member.stage is ClassicStage.PREPARING
    assert member.released(frozenset(places(1)), after(6000)) == []
    request = sent(member, after(6000)).request
    assert isinstance(request, JoinGroupRequest)
    assert decode_subscription(request.protocols[0].metadata).owned_partitions == []


def test_a_cooperative_member_joins_again_with_what_it_has() -> None:
    """KIP-429."""
    member = at_rest(0, 1, protocols=COOPERATIVE)
    assert tell(member, rebalancing(), after(3000)) == []
    assert member.consumable == set(places(0, 1))
    request = sent(member, after(3000)).request
    assert isinstance(request, JoinGroupRequest)
    said = decode_subscription(request.protocols[0].metadata)
    assert (said.owned_partitions, said.generation_id) == (partitions_by_topic(places(0, 1)), 3)


def cooperative_in_the_next_generation(*indices: int) -> tuple[ClassicMembership, list[Any]]:
    member = at_rest(0, 1, protocols=COOPERATIVE)
    tell(member, rebalancing(), after(3000))
    tell(member, generation(4, by="cooperative-sticky"), after(3000))
    assert member.consumable == set(places(0, 1))
    return member, tell(member, gets(*indices), after(3000))


def test_what_the_new_generation_does_not_give_is_given_up_and_told() -> None:
    member, events = cooperative_in_the_next_generation(1, 2)
    assert events == [PartitionsRevoked(places(0))]
    assert member.consumable == set(places(1))
    assert member.stage is ClassicStage.MEMBER
    assert member.released(frozenset(places(0)), NOW) == [PartitionsAssigned(places(2))]
    request = sent(member, after(3000)).request
    assert isinstance(request, JoinGroupRequest)
    said = decode_subscription(request.protocols[0].metadata)
    assert (said.owned_partitions, said.generation_id) == (partitions_by_topic(places(1, 2)), 4)


def test_who_keeps_all_does_not_join_again() -> None:
    member, events = cooperative_in_the_next_generation(0, 1, 2)
    assert events == [PartitionsAssigned(places(2))]
    assert member.stage is ClassicStage.MEMBER


def test_a_rebalance_that_begins_during_a_release_waits_for_it() -> None:
    member, _ = cooperative_in_the_next_generation(1, 2)
    assert tell(member, rebalancing(), after(6000)) == []
    assert member.stage is ClassicStage.PREPARING
    assert member.released(frozenset(places(0)), after(6000)) == []
    request = sent(member, after(6000)).request
    assert isinstance(request, JoinGroupRequest)
    said = decode_subscription(request.protocols[0].metadata)
    assert said.owned_partitions == partitions_by_topic(places(1))


def test_protocols_of_both_kinds_are_eager() -> None:
    """A rolling upgrade offers both, and the group may choose either."""
    assert not ClassicMemberConfig(("t",), ("cooperative-sticky", "range")).cooperative


def test_another_wish_is_told_by_a_join() -> None:
    member = at_rest(0)
    assert member.want(member.config, NOW) == []
    assert member.want(ClassicMemberConfig(("t", "u")), NOW) == [PartitionsRevoked(places(0))]
    member.released(frozenset(places(0)), NOW)
    request = sent(member).request
    assert isinstance(request, JoinGroupRequest)
    assert decode_subscription(request.protocols[0].metadata).topics == ["t", "u"]


def test_a_wish_that_changes_during_a_join_is_told_by_the_next() -> None:
    member = joining()
    join = sent(member)
    assert member.want(ClassicMemberConfig(("u",)), NOW) == []
    member.received(join.number, generation(3), NOW)
    assert tell(member, gets(0)) == []
    assert (member.stage, member.owned) == (ClassicStage.JOINING, frozenset())


def test_a_leader_that_sees_other_topics_asks_for_a_rebalance() -> None:
    member = at_rest(0)
    assert member.join_again(NOW) == [PartitionsRevoked(places(0))]
    member = syncing()
    assert member.join_again(NOW) == []
    assert tell(member, gets(0)) == []
    assert member.stage is ClassicStage.JOINING
    assert outside().join_again(NOW) == []


# Trouble


@pytest.mark.parametrize("make", [joining, assigning, syncing])
def test_who_does_not_know_how_a_join_ended_joins_again(
    make: Callable[[], ClassicMembership],
) -> None:
    member = make()
    member.next(NOW)
    assert member.connection_lost(NOW) == [CoordinatorWanted()]
    member.coordinator_found()
    request = sent(member, after(100)).request
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == "m"


def test_a_lost_heartbeat_is_repeated_soon() -> None:
    member = at_rest(0)
    sent(member, after(3000))
    member.connection_lost(after(3000))
    member.coordinator_found()
    assert member.wake_at() == after(3100)
    assert member.consumable == set(places(0))


def test_a_late_answer_is_not_heard() -> None:
    member = at_rest(0)
    late = sent(member, after(3000))
    member.connection_lost(after(3000))
    assert member.received(late.number, rebalancing(), after(3000)) == []
    assert member.stage is ClassicStage.MEMBER


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("make", [joining, syncing, at_rest, preparing, parting, leaving])
def test_another_coordinator_is_looked_for(
    make: Callable[[], ClassicMembership], code: ErrorCode
) -> None:
    member = make()
    assert answer(member, code) == [CoordinatorWanted()]
    assert member.next(after(60_000)) is None
    assert member.wake_at() == member.silent_at()
    member.coordinator_found()
    assert member.next(after(60_000)) is not None


@pytest.mark.parametrize("make", [joining, syncing, at_rest, leaving])
def test_later_is_tried_again(make: Callable[[], ClassicMembership]) -> None:
    member = make()
    assert answer(member, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) == []
    assert member.wake_at() == after(3100)


def answer(member: ClassicMembership, code: ErrorCode) -> list[Any]:
    """An error as the answer to whatever the member says next."""
    responses = {
        JoinGroupRequest: JoinGroupResponse,
        SyncGroupRequest: SyncGroupResponse,
        HeartbeatRequest: HeartbeatResponse,
        LeaveGroupRequest: LeaveGroupResponse,
    }
    request = sent(member, after(6000 if member.stage is ClassicStage.PREPARING else 3000))
    response: Any = responses[type(request.request)](error_code=code)
    return member.received(request.number, response, after(3000))


def test_a_sync_during_the_next_rebalance_is_a_join() -> None:
    member = syncing()
    assert answer(member, ErrorCode.REBALANCE_IN_PROGRESS) == []
    assert member.wake_at() == 0
    assert isinstance(sent(member).request, JoinGroupRequest)


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "m")],
)
@pytest.mark.parametrize("protocols", [EAGER, COOPERATIVE])
def test_who_is_put_out_loses_all_and_joins_once_it_is_released(
    code: ErrorCode, member_id: str, protocols: tuple[str, ...]
) -> None:
    member = at_rest(0, 1, protocols=protocols)
    (event,) = answer(member, code)
    assert isinstance(event, PartitionsLost)
    assert event.partitions == places(0, 1)
    assert (member.stage, member.commits_as) == (ClassicStage.LOST, None)
    assert member.wake_at() is None
    member.released(frozenset(places(0, 1)), after(3000))
    request = sent(member, after(3000)).request
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == member_id


def test_who_is_put_out_while_it_gives_up_all_is_told_nothing_and_waits_for_the_release() -> None:
    member = preparing()
    assert answer(member, ErrorCode.UNKNOWN_MEMBER_ID) == []
    assert (member.stage, member.owned) == (ClassicStage.LOST, set(places(0, 1)))
    assert (member.commits_as, member.release_by) == (None, None)
    member.released(frozenset(places(0)), after(6000))
    assert member.wake_at() is None
    member.released(frozenset(places(1)), after(6000))
    assert isinstance(sent(member, after(6000)).request, JoinGroupRequest)


def test_who_is_put_out_while_it_gives_up_a_part_loses_the_rest() -> None:
    member, _ = cooperative_in_the_next_generation(1, 2)
    (event,) = member.received(
        sent(member, after(6000)).number, rebalancing(ErrorCode.UNKNOWN_MEMBER_ID), after(6000)
    )
    assert isinstance(event, PartitionsLost)
    assert event.partitions == places(1)
    member.released(frozenset(places(1)), after(6000))
    assert member.stage is ClassicStage.LOST
    member.released(frozenset(places(0)), after(6000))
    assert member.stage is ClassicStage.JOINING


@pytest.mark.parametrize("make", [joining, syncing])
def test_who_is_put_out_with_nothing_joins_at_once(make: Callable[[], ClassicMembership]) -> None:
    member = make()
    assert answer(member, ErrorCode.UNKNOWN_MEMBER_ID) == []
    assert member.wake_at() == 0


def test_who_has_no_id_and_is_unknown_is_no_hot_loop() -> None:
    member = outside()
    member.join()
    assert answer(member, ErrorCode.UNKNOWN_MEMBER_ID) == []
    assert member.wake_at() == after(3100)


@pytest.mark.parametrize("make", [joining, syncing, at_rest])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_refusal_for_good_is_the_end(
    make: Callable[[], ClassicMembership], code: ErrorCode
) -> None:
    member = make()
    (event,) = answer(member, code)
    assert isinstance(event, MembershipFailed)
    assert (member.stage, member.wake_at()) == (ClassicStage.FAILED, None)
    assert member.join() == []
    request = sent(member, after(3000)).request
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == ""


# Leaving


def test_a_leave_is_said_when_all_is_released() -> None:
    member = parting()
    assert member.leave(NOW) == []
    assert answer(member, ErrorCode.REBALANCE_IN_PROGRESS) == []
    assert member.released(frozenset(places(0)), NOW) == []
    request = sent(member).request
    assert isinstance(request, LeaveGroupRequest)
    assert [one.member_id for one in request.members] == ["m"]


@pytest.mark.parametrize("make", [joining, syncing])
def test_who_leaves_does_not_wait_for_a_parked_answer(
    make: Callable[[], ClassicMembership],
) -> None:
    member = make()
    parked = sent(member)
    assert member.leave(NOW) == [HangUp()]
    assert not member.waits_for_answer
    good_bye = sent(member)
    assert isinstance(good_bye.request, LeaveGroupRequest)
    assert member.received(parked.number, generation(4), NOW) == []
    assert member.received(good_bye.number, LeaveGroupResponse(), NOW) == [GroupLeft()]


def test_who_leaves_during_a_first_join_hangs_up_and_is_out() -> None:
    member = outside()
    member.join()
    sent(member)
    assert member.leave(NOW) == [HangUp(), GroupLeft()]


def test_who_leaves_during_a_join_lets_go_of_all_before_the_good_bye() -> None:
    member = at_rest(0, protocols=COOPERATIVE)
    tell(member, rebalancing(), after(3000))
    sent(member, after(3000))
    assert member.leave(after(3000)) == [HangUp(), PartitionsRevoked(places(0))]
    assert isinstance(sent(member, after(6000)).request, HeartbeatRequest)


@pytest.mark.parametrize("make", [joining, assigning, syncing, at_rest])
def test_who_leaves_while_nothing_is_under_way_keeps_the_connection(
    make: Callable[[], ClassicMembership],
) -> None:
    assert make().leave(NOW) == []


def test_a_good_bye_waits_for_a_heartbeat() -> None:
    member = at_rest()
    beat = sent(member, after(3000))
    assert member.leave(after(3000)) == []
    assert member.wake_at() is None
    assert member.received(beat.number, rebalancing(), after(3000)) == []
    assert tell(member, LeaveGroupResponse(), after(3000)) == [GroupLeft()]
    assert (member.stage, member.member_id) == (ClassicStage.OUTSIDE, "")


def test_a_good_bye_that_is_refused_for_good_is_one() -> None:
    assert answer(leaving(), ErrorCode.UNKNOWN_MEMBER_ID) == [GroupLeft()]


def test_who_has_no_id_is_out_at_once() -> None:
    assert outside().leave(NOW) == [GroupLeft()]
    member = lost()
    assert member.leave(NOW) == []
    assert member.released(frozenset(places(0)), NOW) == [GroupLeft()]


def test_who_is_put_out_while_it_parts_need_not_say_good_bye() -> None:
    member = parting()
    assert answer(member, ErrorCode.UNKNOWN_MEMBER_ID) == []
    assert member.released(frozenset(places(0)), NOW) == [GroupLeft()]


def test_who_fails_while_it_parts_says_good_bye_all_the_same() -> None:
    member = parting()
    assert isinstance(answer(member, ErrorCode.GROUP_AUTHORIZATION_FAILED)[-1], MembershipFailed)
    assert member.released(frozenset(places(0)), NOW) == []
    assert isinstance(sent(member).request, LeaveGroupRequest)


# Static members (KIP-345)


def static(*indices: int) -> ClassicMembership:
    """A static follower of generation 3 that has these; it was not asked to come back."""
    member = outside(instance_id="i")
    assert member.join() == []
    assert tell(member, generation(3)) == []
    assert tell(member, gets(*indices)) == (
        [PartitionsAssigned(places(*indices))] if indices else []
    )
    return member


def test_every_request_of_a_static_member_names_its_instance() -> None:
    member = outside(instance_id="i")
    member.join()
    requests = [sent(member)]
    member.received(requests[0].number, generation(3), NOW)
    requests.append(sent(member))
    member.received(requests[1].number, gets(0), NOW)
    requests.append(sent(member, after(3000)))
    assert [one.request.group_instance_id for one in requests] == ["i"] * 3  # type: ignore[union-attr]


def test_a_static_member_goes_without_a_word() -> None:
    """Its place waits for it until its session is over."""
    member = static(0)
    assert member.leave(NOW) == [PartitionsRevoked(places(0))]
    assert member.released(frozenset(places(0)), NOW) == [GroupLeft()]
    assert (member.stage, member.wake_at()) == (ClassicStage.OUTSIDE, None)
    assert member.join() == []
    request = sent(member).request
    assert isinstance(request, JoinGroupRequest)
    assert (request.member_id, request.group_instance_id) == ("", "i")


def test_a_static_member_that_leaves_for_good_says_so() -> None:
    member = static()
    assert member.leave(NOW, for_good=True) == []
    request = sent(member).request
    assert isinstance(request, LeaveGroupRequest)
    (identity,) = request.members
    assert (identity.member_id, identity.group_instance_id) == ("m", "i")


def test_a_leader_that_takes_its_place_again_need_not_assign() -> None:
    """KIP-814: others have what the leader before it gave them."""
    member = outside(instance_id="i")
    member.join()
    answer = generation(3, leader="m")
    answer.skip_assignment = True
    assert tell(member, answer) == [TopicsWanted(("t",))]
    request = sent(member).request
    assert isinstance(request, SyncGroupRequest)
    assert request.assignments == []
    assert member.leads


def test_who_has_lost_its_instance_id_has_lost_everything() -> None:
    member = static(0)
    lost, failure = tell(
        member, HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID), after(3000)
    )
    assert isinstance(lost, PartitionsLost)
    assert isinstance(failure, MembershipFailed)
    assert member.leave(NOW) == []
    assert member.released(frozenset(places(0)), NOW) == [GroupLeft()]


# What others were told in its name


ENDED = [
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
]


@pytest.mark.parametrize("generation", [3, 2])
@pytest.mark.parametrize("protocols", [EAGER, COOPERATIVE])
@pytest.mark.parametrize(
    "code", [*ENDED, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.OFFSET_METADATA_TOO_LARGE]
)
def test_a_refusal_of_its_generation_counts_whoever_was_refused(
    code: ErrorCode, protocols: tuple[str, ...], generation: int
) -> None:
    member = at_rest(0, 1, protocols=protocols)
    events = member.refused_as(MemberId("m"), generation, ApiError(code), NOW)
    if generation == 3 and code in ENDED:
        (lost,) = events
        assert isinstance(lost, PartitionsLost)
        assert (lost.partitions, lost.error.code) == (places(0, 1), code)
        assert (member.stage, member.commits_as) == (ClassicStage.LOST, None)
        member.released(frozenset(places(0, 1)), NOW)
        request = sent(member).request
        assert isinstance(request, JoinGroupRequest)
        assert request.member_id == ("" if code is ErrorCode.UNKNOWN_MEMBER_ID else "m")
    elif generation == 3 and code is ErrorCode.FENCED_INSTANCE_ID:
        assert [type(event) for event in events] == [PartitionsLost, MembershipFailed]
    else:
        assert events == []
        assert member.consumable == set(places(0, 1))
        if generation == 2:  # the coordinator is asked
            assert isinstance(sent(member).request, HeartbeatRequest)


def test_a_refused_commit_may_be_the_first_to_tell_of_a_rebalance() -> None:
    code = ErrorCode.REBALANCE_IN_PROGRESS
    member = at_rest(0)
    assert member.refused_as(MemberId("m"), 3, ApiError(code), NOW) == [
        PartitionsRevoked(places(0))
    ]
    member = at_rest(0, protocols=COOPERATIVE)
    assert member.refused_as(MemberId("m"), 3, ApiError(code), NOW) == []
    assert isinstance(sent(member).request, JoinGroupRequest)
    member = syncing()  # it takes part already
    assert member.refused_as(MemberId("m"), 3, ApiError(code), NOW) == []
    assert isinstance(sent(member).request, SyncGroupRequest)


@pytest.mark.parametrize("code", ENDED)
def test_a_join_under_way_says_itself_what_became_of_the_generation(code: ErrorCode) -> None:
    """It ends the generation, before its answer is there. Only the id is for good."""
    member = at_rest(0, protocols=COOPERATIVE)
    tell(member, rebalancing(), after(3000))
    sent(member, after(3000))
    events = member.refused_as(MemberId("m"), 3, ApiError(code), after(3000))
    if code is ErrorCode.UNKNOWN_MEMBER_ID:
        assert [type(event) for event in events] == [HangUp, PartitionsLost]
    else:
        assert events == []
        assert member.consumable == set(places(0))


@pytest.mark.parametrize("stage", ["outside", "lost", "leaving", "failed"])
@pytest.mark.parametrize("code", ENDED)
def test_nobody_is_put_out_who_is_not_in(code: ErrorCode, stage: ClassicStage) -> None:
    member = STAGES[stage]()
    assert member.refused_as(member.member_id, member.generation, ApiError(code), NOW) == []
    assert member.stage == stage


# Silence


def test_a_session_without_an_answer_is_the_end_of_what_it_owns() -> None:
    member = at_rest(0)
    assert member.silent_at() == after(45_000)
    sent(member, after(3000))
    assert member.wake_at() == after(45_000)
    assert member.expire(after(44_999)) == []
    hang_up, lost, wanted = member.expire(after(45_000))
    assert (hang_up, type(lost), wanted) == (HangUp(), PartitionsLost, CoordinatorWanted())
    member.released(frozenset(places(0)), after(45_000))
    member.coordinator_found()
    request = sent(member, after(45_000)).request
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == "m"  # who knows whether the coordinator has removed it


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS])
def test_a_coordinator_that_knows_the_member_is_not_silent(code: ErrorCode) -> None:
    member = at_rest(0)
    tell(member, rebalancing(code), after(3000))
    assert member.silent_at() == after(48_000)


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_coordinator_that_does_not_know_it_is_silent(code: ErrorCode) -> None:
    member = at_rest(0)
    answer(member, code)
    assert member.silent_at() == after(45_000)


def test_a_parked_join_is_waited_for_as_long_as_a_rebalance_may_take() -> None:
    """A cooperative member goes on reading, and cannot say anything meanwhile."""
    member = at_rest(0, protocols=COOPERATIVE)
    tell(member, rebalancing(), after(3000))
    join = sent(member, after(3000))
    assert member.silent_at() == after(303_000)
    assert member.expire(after(302_999)) == []
    member.received(join.number, generation(4, by="cooperative-sticky"), after(100_000))
    assert member.silent_at() == after(145_000)  # its sync has not left yet
    sync = sent(member, after(100_000))
    assert member.silent_at() == after(400_000)
    member.received(sync.number, gets(0), after(110_000))
    assert member.silent_at() == after(155_000)


# What is given up for a rebalance alone


def test_what_comes_back_from_an_eager_rebalance_is_named() -> None:
    member = at_rest(0, 1)
    tell(member, rebalancing(), after(3000))
    member.released(frozenset(places(0, 1)), after(3000))
    tell(member, generation(4), after(3000))
    assert tell(member, gets(1, 2), after(3000)) == [PartitionsAssigned(places(1, 2), places(1))]


def test_what_others_had_meanwhile_comes_anew() -> None:
    member = at_rest(0, 1)
    for number, mine in ((4, ()), (5, (0, 1))):
        tell(member, rebalancing(), after(3000 * number))
        member.released(member.owned, after(3000 * number))
        tell(member, generation(number), after(3000 * number))
        events = tell(member, gets(*mine), after(3000 * number))
    assert events == [PartitionsAssigned(places(0, 1))]


def test_what_was_lost_comes_anew() -> None:
    member = at_rest(0)
    tell(member, rebalancing(), after(3000))
    answer(member, ErrorCode.UNKNOWN_MEMBER_ID)
    member.released(frozenset(places(0)), after(6000))
    tell(member, generation(9), after(6000))
    assert tell(member, gets(0), after(6000)) == [PartitionsAssigned(places(0))]
