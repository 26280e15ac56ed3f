"""JoinGroup: enter a classic group, or come back for its next generation."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import (
    ClassicGroup,
    session_key,
)
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.classic.records import creation_record
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.records import tombstones as consumer_tombstones
from kohort.coordinator.effects import Call, Effects, Reply, answered
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, GroupState, MemberId, Millis

if TYPE_CHECKING:
    from kohort.coordinator.shard import Shard
    from kohort.records.codec import Record
    from kohort.wire.messages.join_group import JoinGroupRequest

NEW_MEMBER_TIMEOUT_MS = 300_000  # how long a first join may stay parked; upstream has no setting
LONGEST_NAME_IN_IDS = 1000  # a client may call itself more than a record has room for


def join(shard: Shard, call: Call[JoinGroupRequest], now: Millis) -> Effects:
    """Which group is it, is there room, and is the caller known?

    The answer is parked until the group's join phase ends, unless it is a refusal or nothing has
    changed.
    """
    request = call.request
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    shortest, longest = (
        shard.config.group_min_session_timeout_ms,
        shard.config.group_max_session_timeout_ms,
    )
    if not shortest <= request.session_timeout_ms <= longest:
        raise ApiError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"a session timeout of {request.session_timeout_ms} ms"
            f" is not within {shortest} to {longest}",
        )
    group, records = _group_to_join(shard, request, now)
    protocols: dict[str, bytes] = {}
    for one in request.protocols:
        protocols.setdefault(one.name, one.metadata)
    if not _has_room(group, MemberId(request.member_id), shard.config.group_max_size):
        rebalance.drop(shard, group, MemberId(request.member_id))
        effects = _refused(
            call,
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"group {group.id} has its maximum of {shard.config.group_max_size} members",
        )
    elif not group.supports(request.protocol_type, protocols):
        effects = _refused(
            call,
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.id} of type {group.protocol_type!r} has no protocol in common with"
            f" {', '.join(protocols) or 'none'} of type {request.protocol_type!r}",
        )
    elif not request.member_id:
        effects = _join_as_new(shard, group, call, protocols, now)
    else:
        effects = _join_as_known(shard, group, call, protocols, now)
    effects.records[:0] = records
    return effects


def _group_to_join(
    shard: Shard, request: JoinGroupRequest, now: Millis
) -> tuple[ClassicGroup, list[Record]]:
    """The group, made if need be, and the records that say so: it exists even when the join is
    refused.
    """
    group_id = GroupId(request.group_id)
    group = shard.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return group, []
    tombstones: list[Record] = []
    if group is not None:
        if not isinstance(group, ConsumerGroup) or group.members:
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group_id} is a {group.type} group, not a classic one",
            )
        tombstones = consumer_tombstones(group)
    if request.member_id:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"group {group_id} is new and has no member {request.member_id}",
        )
    if group is not None:
        shard.groups.remove(group_id)
    created = ClassicGroup(group_id, now)
    shard.groups.add(created)
    return created, [*tombstones, creation_record(group_id, now)]


def _has_room(group: ClassicGroup, member_id: MemberId, limit: int) -> bool:
    """While joins are awaited only those who wait count: who was in the group may find no place."""
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.parked_joins < limit
    return member is not None or len(group.members) < limit


def _join_as_new(
    shard: Shard,
    group: ClassicGroup,
    call: Call[JoinGroupRequest],
    protocols: dict[str, bytes],
    now: Millis,
) -> Effects:
    """From v4 on a new member must first come back with the id it is given (KIP-394).

    Before, a client that gave up waiting and asked again left a member behind each time.
    """
    name = call.client.id[:LONGEST_NAME_IN_IDS]
    member_id = MemberId(f"{name}-{UUID(bytes=shard.new_uuid())}")
    if call.version < 4:
        return _let_in(shard, group, call, now, member_id=member_id, protocols=protocols)
    group.pending[member_id] = None
    shard.deadlines.set(
        session_key(group.id, member_id),
        Millis(now + call.request.session_timeout_ms),
        rebalance.session_over,
        group.id,
        member_id,
    )
    effects = _refused(call, ErrorCode.MEMBER_ID_REQUIRED, "join again with this member id")
    effects.replies[0].response.member_id = member_id
    return effects


def _join_as_known(
    shard: Shard,
    group: ClassicGroup,
    call: Call[JoinGroupRequest],
    protocols: dict[str, bytes],
    now: Millis,
) -> Effects:
    """Who changes nothing is told the current generation; only a leader can ask for a rebalance
    like that.
    """
    member_id = MemberId(call.request.member_id)
    if member_id in group.pending:
        return _let_in(shard, group, call, now, member_id=member_id, protocols=protocols)
    member = group.check_identity(member_id, call.request.group_instance_id)
    unchanged = member.offers(protocols)
    if group.state is GroupState.COMPLETING_REBALANCE and unchanged:
        return answered(call, rebalance.joined(group, member))
    if group.state is GroupState.STABLE and unchanged and member_id != group.leader:
        return answered(call, rebalance.joined(group, member))
    group.change_protocols(member, protocols)
    member.session_timeout_ms = call.request.session_timeout_ms
    member.rebalance_timeout_ms = _rebalance_timeout_ms(call)
    effects = _park(group, member, call)
    effects.extend(rebalance.advance(shard, group, now))
    return effects


def _let_in(
    shard: Shard,
    group: ClassicGroup,
    call: Call[JoinGroupRequest],
    now: Millis,
    *,
    member_id: MemberId,
    protocols: dict[str, bytes],
) -> Effects:
    request = call.request
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        call.client,
        rebalance_timeout_ms=_rebalance_timeout_ms(call),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
    )
    member.is_new = True
    if not group.members:
        group.protocol_type = request.protocol_type
    if group.state is GroupState.PREPARING_REBALANCE and group.before is GroupState.EMPTY:
        group.joined_meanwhile = True
    group.add(member)
    effects = _park(group, member, call)
    rebalance.watch(shard, group, member, now, NEW_MEMBER_TIMEOUT_MS)
    effects.extend(rebalance.advance(shard, group, now))
    return effects


def _park(group: ClassicGroup, member: ClassicMember, call: Call[JoinGroupRequest]) -> Effects:
    """Keep the call until the join phase ends. An older one of the same member will never be
    needed.
    """
    effects = Effects()
    if member.join is None:
        group.parked_joins += 1
    else:
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"member {member.id} has joined again")
        effects.replies.append(Reply(member.join.token, member.join.request.refused(error)))
    member.join = call
    return effects


def _rebalance_timeout_ms(call: Call[JoinGroupRequest]) -> int:
    """Version 0 has none and takes the session timeout."""
    request = call.request
    return request.session_timeout_ms if call.version == 0 else request.rebalance_timeout_ms


def _refused(call: Call[JoinGroupRequest], code: ErrorCode, message: str) -> Effects:
    """A refusal as a value: raising it would lose the records that come before it."""
    return answered(call, call.request.refused(ApiError(code, message)))
