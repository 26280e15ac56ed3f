# SPDX-License-Identifier: Apache-2.0
"""The classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) for every kind of group.

This module checks a request before it looks at any group, and finds the kind of group that answers
it; `classic/` has the answers of a classic group, `consumer/classic_*` those of a consumer group.
"""

from kohort.coordinator.classic import heartbeat as classic_heartbeat
from kohort.coordinator.classic import join as classic_join
from kohort.coordinator.classic import leave as classic_leave
from kohort.coordinator.classic import sync as classic_sync
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.records import creation_record
from kohort.coordinator.consumer import classic_join as joins_consumers
from kohort.coordinator.consumer import classic_members, removal
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import TAKE_AGAIN, Call, Effects, Reply, answered
from kohort.terms import GroupId, Millis
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kohort.wire.messages.sync_group import SyncGroupRequest

_NAMES_PROTOCOL = 5  # the first version of SyncGroup that must
_MANY_LEAVE = 3  # the first version of LeaveGroup that names several members


def join(state: State, call: Call[JoinGroupRequest], now: Millis) -> Effects:
    """Find the group. A new group is made first, and exists even when the join is refused; an empty
    consumer group makes room for a classic one.
    """
    request = call.request
    group_id = _named(request.group_id)
    _check_session_timeout(state, request.session_timeout_ms)
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return classic_join.join(state, group, call, now)
    if isinstance(group, ConsumerGroup) and group.members:
        return joins_consumers.join(state, group, call, now)
    if group is not None and not isinstance(group, ConsumerGroup):
        text = f"group {group_id} is a {group.type} group, not a classic one"
        refusal = request.refused(ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text))
        refusal.member_id = ""  # upstream names members of classic groups only
        return answered(call, refusal)
    if request.member_id:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"group {group_id} is new and has no member {request.member_id}",
        )
    tombstones = [] if group is None else group.tombstones()
    return Effects([*tombstones, creation_record(group_id, now)], continuation=TAKE_AGAIN)


def check_sync(call: Call[SyncGroupRequest]) -> None:
    """Raises ApiError. Upstream looks at this before it asks what the client may."""
    request = call.request
    if call.version >= _NAMES_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "a SyncGroup of version 5 must name its protocol type and protocol",
        )


def sync(state: State, call: Call[SyncGroupRequest], now: Millis) -> Effects:
    request = call.request
    check_sync(call)
    group = _group(state, request.group_id)
    if isinstance(group, ClassicGroup):
        return classic_sync.sync(state, group, call, now)
    return classic_members.sync(state, group, call, now)


def heartbeat(state: State, call: Call[HeartbeatRequest], now: Millis) -> Effects:
    group = _group(state, call.request.group_id)
    if isinstance(group, ClassicGroup):
        return classic_heartbeat.heartbeat(state, group, call, now)
    return classic_members.heartbeat(state, group, call, now)


def leave(state: State, call: Call[LeaveGroupRequest], now: Millis) -> Effects:
    """An administrator may remove members of a consumer group as well."""
    request = call.request
    group = state.groups.get(_named(request.group_id))
    leaving = request.members
    if call.version < _MANY_LEAVE:
        leaving = [MemberIdentity(member_id=request.member_id)]
    if isinstance(group, ClassicGroup):
        effects, codes = classic_leave.leave(state, group, leaving, now)
    elif isinstance(group, ConsumerGroup):
        effects, codes = removal.remove(state, group, leaving, now)
    else:
        effects, codes = Effects(), [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
    effects.replies.insert(0, _left(call, leaving, codes))
    return effects


def _left(
    call: Call[LeaveGroupRequest], leaving: list[MemberIdentity], codes: list[ErrorCode]
) -> Reply:
    """Before v3 a request names one member, whose error is that of the request."""
    if call.version < _MANY_LEAVE:
        return Reply(call.token, LeaveGroupResponse(error_code=codes[0]))
    members = [
        MemberResponse(
            member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code
        )
        for member, code in zip(leaving, codes, strict=True)
    ]
    return Reply(call.token, LeaveGroupResponse(members=members))


def _named(group_id: str) -> GroupId:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    return GroupId(group_id)


def _check_session_timeout(state: State, timeout_ms: int) -> None:
    shortest = state.classic_settings.min_session_timeout_ms
    longest = state.classic_settings.max_session_timeout_ms
    if not shortest <= timeout_ms <= longest:
        raise ApiError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"a session timeout of {timeout_ms} ms is not within {shortest} to {longest}",
        )


def _group(state: State, group_id: str) -> ClassicGroup | ConsumerGroup:
    group = state.groups.get(_named(group_id))
    if not isinstance(group, (ClassicGroup, ConsumerGroup)):
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id} with classic members"
        )
    return group
