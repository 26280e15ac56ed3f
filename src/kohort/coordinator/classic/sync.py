"""SyncGroup: the leader hands out the assignments of a generation, everybody receives his own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import (
    ClassicGroup,
    classic_or_none,
    sync_key,
)
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.classic.records import outcome_record
from kohort.coordinator.effects import Call, Effects, Reply, answered
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, GroupState, MemberId, Millis
from kohort.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from kohort.coordinator.shard import Shard
    from kohort.wire.messages.sync_group import SyncGroupRequest


def sync(shard: Shard, call: Call[SyncGroupRequest], now: Millis) -> Effects:
    """Is this a member of the current generation, and has the leader spoken yet?"""
    request = call.request
    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "a SyncGroup of version 5 must name its protocol type and protocol",
        )
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    group = classic_or_none(shard, GroupId(request.group_id))
    if group is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no classic group {request.group_id}")
    member = group.check_identity(MemberId(request.member_id), request.group_instance_id)
    group.check_generation(request.generation_id)
    _check_protocol(group, request)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.id} waits for joins")

    group.pending_sync.pop(member.id, None)
    if not group.pending_sync:
        shard.deadlines.cancel(sync_key(group.id))
    if group.state is GroupState.STABLE:
        rebalance.watch(shard, group, member, now)
        return answered(call, _assigned(group, member.assignment))
    effects = _park(member, call)
    if member.id == group.leader:
        effects.extend(_hand_out(shard, group, request, now))
    return effects


def _check_protocol(group: ClassicGroup, request: SyncGroupRequest) -> None:
    for given, expected in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol),
    ):
        if given is not None and given != expected:
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.id} uses {expected!r}, the request says {given!r}",
            )


def _park(member: ClassicMember, call: Call[SyncGroupRequest]) -> Effects:
    """Keep the call until the leader syncs. An older one of the same member will never be
    needed.
    """
    effects = Effects()
    if member.sync is not None:
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"member {member.id} has synced again")
        effects.replies.append(Reply(member.sync.token, member.sync.request.refused(error)))
    member.sync = call
    return effects


def _hand_out(shard: Shard, group: ClassicGroup, request: SyncGroupRequest, now: Millis) -> Effects:
    """The leader has spoken: who waits is answered, who comes later finds it in the group.

    The group becomes Stable when the record is replayed, in this step or after a restart.
    """
    assignments = {MemberId(one.member_id): one.assignment for one in request.assignments}
    effects = Effects([outcome_record(group, assignments, now)])
    for member in group.members.values():
        if member.sync is not None:
            response = _assigned(group, assignments.get(member.id, b""))
            effects.replies.append(Reply(member.sync.token, response))
            member.sync = None
            rebalance.watch(shard, group, member, now)
    return effects


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )
