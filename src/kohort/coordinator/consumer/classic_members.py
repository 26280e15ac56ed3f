# SPDX-License-Identifier: Apache-2.0
"""Members of the classic protocol in a consumer group: SyncGroup and Heartbeat.

Such a member moves only when it joins (`classic_join`). Here it gets what it has, and is told when
to join again: the group has a new epoch, it has to give something up, or what it waits for is free.
"""

from kohort.coordinator.classic.group import CONSUMER_PROTOCOL
from kohort.coordinator.consumer import embedded, planning, progress, timers
from kohort.coordinator.consumer.client_side import choosing
from kohort.coordinator.consumer.client_side.offers import classic_data
from kohort.coordinator.consumer.group import ConsumerGroup, protocols_of, unknown_member
from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, Reply, answered
from kohort.records.schemas import ClassicMemberMetadata
from kohort.terms import MemberId, Millis
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(state: State, group: ConsumerGroup, call: Call[SyncGroupRequest], now: Millis) -> Effects:
    """What the member has, for the assignor that it likes best. One that has to join again anyway
    is told so first: it may still name an assignor that a classic group has chosen.
    """
    request = call.request
    member, classic = _known(group, request)
    protocols = protocols_of(classic)
    first = next(iter(protocols), None)
    if (
        _is_behind(state, group, member, now)
        and member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        timers.end_sync(state, group, member.id)
        timers.await_join(state, group, member, now)
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.id} has a new epoch")
    for given, expected in (
        (request.protocol_type, CONSUMER_PROTOCOL),
        (request.protocol_name, first),
    ):
        if given is not None and given != expected:
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"member {member.id} uses {expected!r}, the request says {given!r}",
            )
    timers.end_sync(state, group, member.id)
    timers.renew(state, group, member, now)
    subscribed = protocols.get(first or "", b"")
    data = classic_data(member.attachment, group.made_by, first or "")
    assignment = embedded.assignment(member.assigned, subscribed, state.topics, data)
    response = SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL, protocol_name=first, assignment=assignment
    )
    return answered(call, response)


def heartbeat(
    state: State, group: ConsumerGroup, call: Call[HeartbeatRequest], now: Millis
) -> Effects:
    """A sign of life, and whether the member has to join again."""
    member, _ = _known(group, call.request)
    timers.renew(state, group, member, now)
    effects = progress.look_at_topics(state, group)
    response = HeartbeatResponse()
    if effects.records or _has_to_join(state, group, member, now):
        timers.await_join(state, group, member, now)
        response.error_code = ErrorCode.REBALANCE_IN_PROGRESS
    effects.replies.append(Reply(call.token, response))
    return effects


def _known(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> tuple[Member, ClassicMemberMetadata]:
    """The member that speaks, when it may: its protocol is the classic one, and its generation is
    its epoch.
    """
    member = group.claimed(MemberId(request.member_id), request.group_instance_id)
    if member.classic is None:
        raise unknown_member(group.id, member.id)
    if request.generation_id != member.epoch:
        raise ApiError(
            ErrorCode.ILLEGAL_GENERATION,
            f"member {member.id} is at epoch {member.epoch}, the request says "
            f"{request.generation_id}",
        )
    return member, member.classic


def _has_to_join(state: State, group: ConsumerGroup, member: Member, now: Millis) -> bool:
    return (
        _is_behind(state, group, member, now)
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member))
    )


def _is_behind(state: State, group: ConsumerGroup, member: Member, now: Millis) -> bool:
    """Whether a join would bring a member to another target: one that is there, or one that the
    join computes. Upstream waits for the heartbeat of a consumer to compute it, which does not come
    where only classic members are left; while none may be computed yet (KIP-1263), or another
    member or a thread computes it, a member that joins would be told to join again, without an end.
    """
    if member.epoch < group.target_epoch:
        return True
    return (
        member.epoch < group.group_epoch
        and planning.is_due(group, group.group_epoch, now)
        and not choosing.is_awaited(state, group)
        and not planning.is_awaited(state, group, now)
    )


def _waits(group: ConsumerGroup, member: Member) -> bool:
    """Whether somebody still has a partition that the member is meant to have."""
    target = group.targets.get(member.id, NOTHING).partitions
    return any(
        group.held.get(topic, {}).get(index, member.id) != member.id
        for topic, indices in target.items()
        for index in indices
    )
