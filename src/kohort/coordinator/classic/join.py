# SPDX-License-Identifier: Apache-2.0
"""JoinGroup in a classic group: enter it, or come back for its next generation."""

from uuid import UUID

from kohort.coordinator.classic import rebalance, static, timers
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember, longest
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, answered
from kohort.records.causes import Cause
from kohort.terms import GroupState, MemberId, Millis
from kohort.wire.messages.join_group import JoinGroupRequest

NEW_MEMBER_TIMEOUT_MS = 300_000  # how long a first join may stay parked; upstream has no setting
LONGEST_NAME_IN_IDS = 1000  # a client id may be longer than a record has room for


def join(state: State, group: ClassicGroup, call: Call[JoinGroupRequest], now: Millis) -> Effects:
    """Is there room, and is the caller known?

    The answer is parked until the group's join phase ends. A refusal is sent at once, and so is the
    answer to a join that changes nothing.
    """
    request = call.request
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    limit = state.classic_settings.max_size
    holder = group.holder(request.group_instance_id)
    identity = MemberId(request.member_id) if holder is None else holder.id
    if not _has_room(group, identity, limit):
        rebalance.drop(state, group, MemberId(request.member_id))
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"group {group.id} has its maximum of {limit} members"
        )
    if not group.supports(request.protocol_type, protocols, holder):
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.id} of type {group.protocol_type!r} has no protocol in common with"
            f" {', '.join(protocols) or 'none'} of type {request.protocol_type!r}",
        )
    _check_size(state, group, identity, protocols)
    if not request.member_id:
        return _join_as_new(state, group, call, protocols, now)
    return _join_as_known(state, group, call, protocols, now)


def _check_size(
    state: State, group: ClassicGroup, member_id: MemberId, protocols: dict[str, bytes]
) -> None:
    """All that members say must fit into one record. Raises ApiError where it does not. Names count
    for the member that brings them: there may be very many of them.
    """
    limit = state.record_limit()
    size = sum(len(name) + len(metadata) for name, metadata in protocols.items())
    known = group.members.get(member_id)
    others = group.said - (longest(known.protocols) if known is not None else 0)
    if size > limit or longest(protocols) + others > limit:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"the member says {size} bytes, {others} are said by the others of group {group.id},"
            f" expected at most {limit} (max.message.bytes of the topic of groups)",
        )


def _has_room(group: ClassicGroup, member_id: MemberId, limit: int) -> bool:
    """Who holds an identity is that one, and takes no further place. While joins are awaited, only
    those who wait count: a member of before may find no place.
    """
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.parked_joins < limit
    return member is not None or len(group.members) < limit


def _join_as_new(
    state: State,
    group: ClassicGroup,
    call: Call[JoinGroupRequest],
    protocols: dict[str, bytes],
    now: Millis,
) -> Effects:
    """From v4 on a new member must first come back with the id it is given (KIP-394).

    In older versions a client that gave up waiting and asked again left a member behind. A static
    one takes the place of the member that it left behind (KIP-345), so it need not come back.
    """
    instance_id = call.request.group_instance_id
    name = (call.client.id if instance_id is None else instance_id)[:LONGEST_NAME_IN_IDS]
    member_id = MemberId(f"{name}-{UUID(bytes=state.new_uuid())}")
    if instance_id in group.instances:
        successor = _member(call, member_id, protocols)
        return static.replace(state, group, successor, call, now)
    if call.version < 4 or instance_id is not None:
        return _let_in(state, group, call, now, member_id=member_id, protocols=protocols)
    group.pending[member_id] = None
    timers.renew(state.deadlines, group.id, member_id, now, call.request.session_timeout_ms)
    text = "join again with this member id"
    refusal = call.request.refused(ApiError(ErrorCode.MEMBER_ID_REQUIRED, text))
    refusal.member_id = member_id
    return answered(call, refusal)


def _join_as_known(
    state: State,
    group: ClassicGroup,
    call: Call[JoinGroupRequest],
    protocols: dict[str, bytes],
    now: Millis,
) -> Effects:
    """A member that changes nothing is told the current generation. Only a leader can ask for a
    rebalance in this way.
    """
    member_id = MemberId(call.request.member_id)
    if member_id in group.pending and call.request.group_instance_id is None:
        return _let_in(state, group, call, now, member_id=member_id, protocols=protocols)
    member = group.check_identity(member_id, call.request.group_instance_id)
    unchanged = member.offers(protocols)
    if group.state is GroupState.COMPLETING_REBALANCE and unchanged:
        return answered(call, rebalance.joined(group, member))
    if group.state is GroupState.STABLE and unchanged and member_id != group.leader:
        return answered(call, rebalance.joined(group, member))
    events = []
    if group.state is not GroupState.PREPARING_REBALANCE:
        events.append(_rejoined(group, member_id, call.request.reason, unchanged=unchanged))
    group.change_protocols(member, protocols)
    member.session_timeout_ms = call.request.session_timeout_ms
    member.rebalance_timeout_ms = _rebalance_timeout_ms(call)
    effects = rebalance.park_join(group, member, call)
    effects.events += events
    effects.extend(rebalance.advance(state, group, now))
    return effects


def _rejoined(
    group: ClassicGroup, member_id: MemberId, reason: str | None, *, unchanged: bool
) -> GroupEvent:
    """What to tell of a member at rest that makes its group rebalance."""
    text = f"member {member_id} joins again" if unchanged else f"member {member_id} has changed"
    text += f": {reason}" if reason else ""
    cause = Cause.REJOIN if unchanged else Cause.SUBSCRIPTION
    return GroupEvent(group.id, text, cause, member_id, reason)


def _let_in(
    state: State,
    group: ClassicGroup,
    call: Call[JoinGroupRequest],
    now: Millis,
    *,
    member_id: MemberId,
    protocols: dict[str, bytes],
) -> Effects:
    member = _member(call, member_id, protocols)
    member.is_new = True
    if not group.members:
        group.protocol_type = call.request.protocol_type
    if group.state is GroupState.PREPARING_REBALANCE and group.before is GroupState.EMPTY:
        group.joined_meanwhile = True
    group.add(member)
    effects = rebalance.park_join(group, member, call)
    timers.renew(state.deadlines, group.id, member_id, now, NEW_MEMBER_TIMEOUT_MS)
    reason = call.request.reason
    text = f"member {member_id} joins" + (f": {reason}" if reason else "")
    effects.events.append(GroupEvent(group.id, text, Cause.JOIN, member_id, reason))
    effects.extend(rebalance.advance(state, group, now))
    return effects


def _member(
    call: Call[JoinGroupRequest], member_id: MemberId, protocols: dict[str, bytes]
) -> ClassicMember:
    request = call.request
    return ClassicMember(
        member_id,
        request.group_instance_id,
        call.client,
        rebalance_timeout_ms=_rebalance_timeout_ms(call),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
    )


def _rebalance_timeout_ms(call: Call[JoinGroupRequest]) -> int:
    """Version 0 has none and takes the session timeout; so does -1, as when a record is read."""
    request = call.request
    if call.version == 0 or request.rebalance_timeout_ms == -1:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms
