# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat: join, stay, acknowledge, leave (KIP-848).

Which group, and which of its members, as it describes itself now? What follows from that is
`progress`; the answer tells the member the result.
"""

from dataclasses import replace

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer import expressions, fencing, progress, rights, static, timers
from kohort.coordinator.consumer.client_side import offers, selection
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY, JOINING, Member, in_order
from kohort.coordinator.consumer.no_op_heartbeats import member_of_no_op, no_op_response
from kohort.coordinator.consumer.reconcile import Owned
from kohort.coordinator.consumer.requests import check
from kohort.coordinator.migration import upgrade
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client, Effects, Reply
from kohort.terms import GroupId, GroupState, MemberId, Millis, TopicId, uuid_text
from kohort.wire.messages.consumer_group_heartbeat import (
    Assignment,
    Attachment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat(state: State, call: Call[ConsumerGroupHeartbeatRequest], now: Millis) -> Effects:
    """One heartbeat of one member. Nearly all of them change nothing, and are answered here."""
    request = call.request
    group = state.groups.get(GroupId(request.group_id))
    if type(group) is ConsumerGroup:
        member = member_of_no_op(state, group, request, call.client)
        if member is not None:
            timers.renew(state, group, member, now)
            return Effects([], [Reply(call.token, no_op_response(group, member))])
    check(request, call.version, state.assignors)
    if request.member_epoch < JOINING:
        return fencing.leave(state, call, now)
    return _join_or_stay(state, call, now)


def _join_or_stay(state: State, call: Call[ConsumerGroupHeartbeatRequest], now: Millis) -> Effects:
    request = call.request
    group, effects = _group_of(state, request, now)
    group.check_room(request.member_id, request.instance_id)
    request.member_id = request.member_id or uuid_text(state.new_uuid())
    succession = _succession(state, group, call, now)
    if succession is not None:
        effects.extend(succession)
        effects.take_again()
        return effects
    owned = _owned(request)
    before = _member_of(group, request, owned)
    member = _described(before, request, call.client)
    expressions.check(group, request.subscribed_topic_regex)
    if member.client_assignors != before.client_assignors:
        _check_offers(state, group, member, member.id)
    says = request.member_epoch == JOINING or request.subscribed_topic_regex is not None
    rights.hear(state, group, member, call.client, says=says)
    step, moved, computes = progress.step(
        state,
        group,
        before,
        member,
        owned=owned,
        client=call.client,
        now=now,
        joins=request.member_epoch == JOINING,
    )
    effects.extend(step)
    answer = _answer(group, request, before, moved)
    if computes:  # all the rest is as on success, so that nothing is lost
        answer.error_code = ErrorCode.COMPUTE_ASSIGNMENT
        answer.error_message = "The member is asked to compute the assignment of the group."
    effects.replies.append(Reply(call.token, answer))
    return effects


def _check_offers(state: State, group: ConsumerGroup, member: Member, former_id: MemberId) -> None:
    """Raise ApiError for assignors that the group cannot work with, once the former member has made
    room.
    """
    offers.check_size(member.client_assignors, state.record_limit())
    if (group.offering or group.classic_members) and group.settings.client_assignors:
        gone = member.id, former_id
        others = [other for other in group.members.values() if other.id not in gone]
        if not any(other.server_assignor for other in others):
            selection.check_range(others, member)


def _group_of(
    state: State, request: ConsumerGroupHeartbeatRequest, now: Millis
) -> tuple[ConsumerGroup, Effects]:
    """The group, and what must be done before all else. A new group is made by its first records;
    a classic group becomes a consumer group, or makes room for one when it is empty.
    """
    group_id = GroupId(request.group_id)
    known = state.groups.get(group_id)
    if isinstance(known, ConsumerGroup):
        return known, Effects()
    joins = request.member_epoch == JOINING
    if known is None and joins:
        return ConsumerGroup(group_id, state.settings_of(group_id)), Effects()
    if known is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if not joins or not isinstance(known, ClassicGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if known.state is GroupState.EMPTY:
        return ConsumerGroup(group_id, state.settings_of(group_id)), Effects(known.tombstones())
    offered: tuple[offers.ClientAssignor, ...] = ()
    if state.settings_of(group_id).client_assignors:
        offered = offers.of_heartbeat(request.client_assignors or ())
    return upgrade.to_consumer(state, known, offered, now)


def _succession(
    state: State, group: ConsumerGroup, call: Call[ConsumerGroupHeartbeatRequest], now: Millis
) -> Effects | None:
    """The steps before that of a member that joins in the place of another (KIP-345), if it does.
    The call is taken once more after each. A place of its own it gives up first.
    """
    request = call.request
    if request.member_epoch != JOINING:
        return None
    member_id = MemberId(request.member_id)
    former = static.former_self(group, member_id, request.instance_id)
    if former is None:
        return None
    _check_successor(state, group, call, former)
    own = group.members.get(member_id)
    if own is not None:
        return Effects(fencing.records_without(state, group, [own]))
    return static.replaced(state, group, former, member_id, now)


def _check_successor(
    state: State,
    group: ConsumerGroup,
    call: Call[ConsumerGroupHeartbeatRequest],
    former: Member,
) -> None:
    """Raise ApiError for what would refuse the successor in its own step. By then it would have the
    place, and neither the former member nor another successor could have it back.
    """
    request = call.request
    expressions.check(group, request.subscribed_topic_regex)
    member_id = MemberId(request.member_id)
    member = _described(replace(former, id=member_id), request, call.client)
    progress.checked_member_record(state, group, member)
    if member.client_assignors != former.client_assignors:
        _check_offers(state, group, member, former.id)


def _member_of(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, owned: Owned | None
) -> Member:
    """The member as the group has it, or a new one. Raises ApiError for one that is fenced."""
    member_id = MemberId(request.member_id)
    if request.member_epoch != JOINING:
        member = group.claimed(member_id, request.instance_id)
        _check_epoch(member, request.member_epoch, owned)
        return member
    known = group.members.get(member_id)
    if known is not None and known.epoch == AWAY:
        return replace(known, epoch=JOINING, previous_epoch=JOINING)
    return known or Member(member_id)


def _check_epoch(member: Member, epoch: int, owned: Owned | None) -> None:
    """A member that is not at its epoch has missed something, unless it only missed our last
    answer: then it is at the epoch before, with nothing that it may not have.
    """
    if epoch == member.epoch:
        return
    lost_answer = epoch < member.epoch and epoch == member.previous_epoch and owned is not None
    if lost_answer and _is_assigned(member, owned or {}):
        return
    than = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _is_assigned(member: Member, owned: Owned) -> bool:
    return all(
        index in member.assigned.get(topic, ())
        for topic, indices in owned.items()
        for index in indices
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    owned: dict[TopicId, set[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(TopicId(topic.topic_id), set()).update(topic.partitions)
    return owned


def _described(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """The member with what it says about itself; what it leaves out stays as it was. A member that
    uses this protocol is no longer a classic one. One that joins and offers no assignors has none,
    whoever had its place before: a client that does not know of them is never asked to compute.
    """
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    offered = request.client_assignors
    if offered is None and request.member_epoch == JOINING:
        offered = []
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.id,
        client_host=client.host,
        subscribed_names=member.subscribed_names if names is None else in_order(names),
        subscribed_regex=member.subscribed_regex if regex is None else regex,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        server_assignor=(
            member.server_assignor if request.server_assignor is None else request.server_assignor
        ),
        client_assignors=(
            member.client_assignors if offered is None else offers.of_heartbeat(offered)
        ),
        classic=None,
    )


def _answer(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, before: Member, after: Member
) -> ConsumerGroupHeartbeatResponse:
    """The answer carries the whole assignment when the member joins, when it tells everything about
    itself, and when the assignment has changed. Without it, the assignment is as before.
    """
    tells_all = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None)
        and request.topic_partitions is not None
    )
    assignment = None
    changed = before.assigned != after.assigned or before.attachment != after.attachment
    if request.member_epoch == JOINING or tells_all or changed:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=list(partitions))
                for topic, partitions in after.assigned.items()
            ],
            attachment=_attached(after),
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
        assignment=assignment,
    )


def _attached(member: Member) -> Attachment | None:
    """What a client-side assignor has added to the assignment that the member is at."""
    said = member.attachment
    if said is None:
        return None
    return Attachment(
        error=said.error,
        metadata_version=said.version,
        metadata_bytes=said.metadata,
        assignor_name=said.assignor,
    )
