"""LeaveGroup: members leave, or are taken out by an administrator, several at a time (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer import fencing
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.effects import Call, Effects, Reply
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from kohort.coordinator.consumer.member import Member
    from kohort.coordinator.shard import Shard
    from kohort.wire.messages.leave_group import LeaveGroupRequest


def leave(shard: Shard, call: Call[LeaveGroupRequest], now: Millis) -> Effects:
    """Each member for itself, then one step of the group for all of them."""
    request = call.request
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    asked = request.members
    if call.version < 3:
        asked = [MemberIdentity(member_id=request.member_id)]
    group_or_none = shard.groups.get(GroupId(request.group_id))
    if isinstance(group_or_none, ConsumerGroup):
        return _leave_consumer_group(shard, call, group_or_none, asked)
    group = group_or_none if isinstance(group_or_none, ClassicGroup) else None
    effects = Effects()
    size = 0 if group is None else len(group.members)
    results = []
    for one in asked:
        code = ErrorCode.UNKNOWN_MEMBER_ID
        if group is not None:
            code = _take_out(shard, group, one, effects)
        results.append(_result(one, code))
    effects.replies.insert(0, _reply(call, results))
    if group is not None and len(group.members) < size:
        effects.extend(rebalance.advance_without(shard, group, now))
    elif group is not None:  # at most somebody who was expected will not come
        effects.extend(rebalance.complete_if_all_joined(shard, group, now))
    return effects


def _leave_consumer_group(
    shard: Shard,
    call: Call[LeaveGroupRequest],
    group: ConsumerGroup,
    asked: list[MemberIdentity],
) -> Effects:
    """An administrator may take members out of a consumer group as well, whatever they speak."""
    gone: dict[MemberId, Member] = {}
    results = []
    for one in asked:
        member, code = _member_of(group, one)
        if member is not None:
            gone[member.id] = member
        results.append(_result(one, code))
    records = fencing.remove(shard, group, gone.values()) if gone else []
    return Effects(records, [_reply(call, results)])


def _member_of(group: ConsumerGroup, identity: MemberIdentity) -> tuple[Member | None, ErrorCode]:
    member_id = MemberId(identity.member_id)
    if identity.group_instance_id is not None:
        owner = group.instances.get(identity.group_instance_id)
        if owner is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        if member_id not in ("", owner):
            return None, ErrorCode.FENCED_INSTANCE_ID
        member_id = owner
    member = group.members.get(member_id)
    if member is None:
        return None, ErrorCode.UNKNOWN_MEMBER_ID
    return member, ErrorCode.NONE


def _result(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=code,
    )


def _reply(call: Call[LeaveGroupRequest], results: list[MemberResponse]) -> Reply:
    """Before v3 there is one member, and its error is that of the request."""
    if call.version < 3:
        return Reply(call.token, LeaveGroupResponse(error_code=results[0].error_code))
    return Reply(call.token, LeaveGroupResponse(members=results))


def _take_out(
    shard: Shard, group: ClassicGroup, identity: MemberIdentity, effects: Effects
) -> ErrorCode:
    """Without a member id an instance id is enough: that is how tools remove static members."""
    member_id = MemberId(identity.member_id)
    if not member_id:
        owner = group.instances.get(identity.group_instance_id or "")
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = owner
    elif member_id not in group.pending:
        try:
            group.check_identity(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
    effects.replies += rebalance.drop(shard, group, member_id)
    return ErrorCode.NONE
