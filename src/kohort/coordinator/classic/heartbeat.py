"""Heartbeat: a member is alive, and learns whether it has to join again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import ClassicGroup, classic_or_none
from kohort.coordinator.effects import Call, Effects, Reply
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, GroupState, MemberId, Millis
from kohort.wire.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from kohort.coordinator.shard import Shard
    from kohort.wire.messages.heartbeat import HeartbeatRequest


def heartbeat(shard: Shard, call: Call[HeartbeatRequest], now: Millis) -> Effects:
    """Is this a member of the current generation, and is the group at rest?"""
    request = call.request
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    group = classic_or_none(shard, GroupId(request.group_id))
    if group is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no classic group {request.group_id}")
    member = group.check_identity(MemberId(request.member_id), request.group_instance_id)
    group.check_generation(request.generation_id)
    rebalance.watch(shard, group, member, now)
    response = HeartbeatResponse()
    if group.state is GroupState.PREPARING_REBALANCE:
        response.error_code = ErrorCode.REBALANCE_IN_PROGRESS
    return Effects([], [Reply(call.token, response)])


def start(shard: Shard, now: Millis) -> Effects:
    """After loading: every member gets a full session, and a group above a lowered limit has to
    rebalance.
    """
    effects = Effects()
    classic = [group for group in shard.groups if isinstance(group, ClassicGroup)]
    for group in classic:
        for member in group.members.values():
            rebalance.watch(shard, group, member, now)
        if len(group.members) > shard.config.group_max_size:
            effects.extend(rebalance.prepare(shard, group, now))
    return effects
