# SPDX-License-Identifier: Apache-2.0
"""The way from one generation of a classic group to the next: joins, a leader, syncs.

Every function takes one step and returns what it asks of the world. Nobody is kept waiting without
a deadline: the group waits for joins and syncs as long as its slowest member may take, and a silent
member's session ends.
"""

from kohort.coordinator.classic import timers
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply
from kohort.records.causes import Cause
from kohort.terms import GroupId, GroupState, MemberId, Millis
from kohort.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

NOBODY_JOINED_MS = 500  # at least, until it is looked again: members may name no time at all
_GONE = ApiError(ErrorCode.UNKNOWN_MEMBER_ID, "the member is no longer in the group")
_OVERTAKEN = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances again")


def advance(state: State, group: ClassicGroup, now: Millis) -> Effects:
    """A member has come or changed: begin a rebalance, or end a join phase that waited for it."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return complete_if_all_joined(state, group, now)
    return prepare(state, group, now)


def advance_without(state: State, group: ClassicGroup, now: Millis) -> Effects:
    """The same after a member has gone. An empty group has nothing to rebalance."""
    if group.state is GroupState.EMPTY:
        return Effects()
    return advance(state, group, now)


def prepare(state: State, group: ClassicGroup, now: Millis) -> Effects:
    """Void the generation and wait for everybody to join.

    The first members of a group wait a little longer, for others that start together with them.
    """
    effects = Effects()
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            if member.sync is not None:
                effects.replies.append(_refuse_sync(member, _OVERTAKEN))
                renew(state, group, member, now)
    timers.end_syncs(state.deadlines, group.id)
    starting = group.state is GroupState.EMPTY
    group.become_preparing(now)
    if not starting:
        if group.all_joined:
            effects.extend(complete(state, group, now))
        else:
            _await_joins(state, group, now)
        return effects
    delay_ms = state.classic_settings.initial_rebalance_delay_ms
    if delay_ms <= 0:
        return complete(state, group, now)
    remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    timers.await_others(state.deadlines, group.id, now, delay_ms, remaining_ms)
    return effects


def complete_if_all_joined(state: State, group: ClassicGroup, now: Millis) -> Effects:
    """End the join phase early, except in a new group, where the initial delay decides."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.before is not GroupState.EMPTY
        and group.all_joined
    ):
        return complete(state, group, now)
    return Effects()


def complete(state: State, group: ClassicGroup, now: Millis) -> Effects:
    """End the join phase: go on with those who have joined, tell the leader, and wait for syncs.

    A static member stays, without having joined, until its session ends (KIP-345).
    """
    timers.end_joins(state.deadlines, group.id)
    late = [
        member
        for member in group.members.values()
        if member.join is None and member.instance_id is None
    ]
    effects = Effects()
    for member in late:
        drop(state, group, member.id)
        effects.events.append(_late(group, member.id, "joined again"))
    if not group.members:
        effects.records.append(group.emptied(now))
        return effects
    if not group.elect():
        _await_joins(state, group, now, at_least_ms=NOBODY_JOINED_MS)
        return effects
    group.become_completing(now)
    text = f"generation {group.generation} begins"
    effects.events.append(GroupEvent(group.id, text))
    for member in group.members.values():
        if member.join is not None:
            reply = Reply(member.join.token, joined(group, member))
            member.join = None
            group.parked_joins -= 1
            effects.replies.append(reply)
        member.is_new = False
        renew(state, group, member, now)
    until = Millis(now + group.rebalance_timeout_ms)
    timers.await_syncs(state.deadlines, group.id, until, group.generation)
    return effects


def joined(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The answer to a member of the current generation. The leader learns the others."""
    members = []
    if member.id == group.leader:
        members = [
            JoinGroupResponseMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                metadata=group.metadata_of(member),
            )
            for member in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol or None,
        leader=group.leader or "",
        member_id=member.id,
        members=members,
    )


def park_join(group: ClassicGroup, member: ClassicMember, call: Call[JoinGroupRequest]) -> Effects:
    """Keep the call until the join phase ends. An older call of the same member is refused, since
    nobody waits for it any more.
    """
    effects = Effects()
    if member.join is None:
        group.parked_joins += 1
    else:
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"member {member.id} has joined again")
        effects.replies.append(Reply(member.join.token, member.join.request.refused(error)))
    member.join = call
    return effects


def renew(state: State, group: ClassicGroup, member: ClassicMember, now: Millis) -> None:
    """The member has shown that it is alive: begin its session anew."""
    timers.renew(state.deadlines, group.id, member.id, now, member.session_timeout_ms)


def drop(state: State, group: ClassicGroup, member_id: MemberId) -> list[Reply]:
    """Take a member, or one that is only expected, out of the group; its parked calls are refused.

    The caller's next step is `advance_without`, which decides what this means for the group.
    """
    timers.end_session(state.deadlines, group.id, member_id)
    member = group.remove(member_id)
    replies = []
    if member is not None and member.join is not None:
        refusal = member.join.request.refused(_GONE)
        refusal.member_id = ""
        replies.append(Reply(member.join.token, refusal))
        member.join = None
    if member is not None and member.sync is not None:
        replies.append(_refuse_sync(member, _GONE))
    return replies


def joins_overdue(state: State, now: Millis, group_id: GroupId) -> Effects:
    """A member that has not joined by now is left behind."""
    group = state.groups.classic(group_id)
    if group is None or group.state is not GroupState.PREPARING_REBALANCE:
        return Effects()
    return complete(state, group, now)


def start_delay_over(
    state: State, now: Millis, group_id: GroupId, delay_ms: int, remaining_ms: int
) -> Effects:
    """While members keep coming the initial delay begins again, up to the rebalance timeout."""
    group = state.groups.classic(group_id)
    if group is None or group.state is not GroupState.PREPARING_REBALANCE:
        return Effects()
    if not group.joined_meanwhile or remaining_ms <= 0:
        return complete(state, group, now)
    group.joined_meanwhile = False
    next_ms = min(state.classic_settings.initial_rebalance_delay_ms, remaining_ms)
    left_ms = max(remaining_ms - delay_ms, 0)
    timers.await_others(state.deadlines, group.id, now, next_ms, left_ms)
    return Effects()


def syncs_overdue(state: State, now: Millis, group_id: GroupId, generation: int) -> Effects:
    """A member that has joined and never asked for its assignment is left behind."""
    group = state.groups.classic(group_id)
    if (
        group is None
        or group.generation != generation
        or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        or not group.pending_sync
    ):
        return Effects()
    effects = Effects()
    for member_id in list(group.pending_sync):
        effects.replies += drop(state, group, member_id)
        effects.events.append(_late(group, member_id, "synced"))
    effects.extend(prepare(state, group, now))
    return effects


def session_over(state: State, now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:
    """A member was silent for too long. While its call is parked with us, the silence is ours."""
    group = state.groups.classic(group_id)
    if group is None:
        return Effects()
    if member_id in group.pending:
        group.remove(member_id)
        return complete_if_all_joined(state, group, now)
    member = group.members.get(member_id)
    if member is None:
        return Effects()
    if not member.is_new and (member.join is not None or member.sync is not None):
        return Effects()
    text = f"the session of member {member_id} is over after {member.session_timeout_ms} ms"
    effects = Effects(
        [], drop(state, group, member_id), [GroupEvent(group_id, text, Cause.SESSION, member_id)]
    )
    effects.extend(advance_without(state, group, now))
    return effects


def _late(group: ClassicGroup, member_id: MemberId, what: str) -> GroupEvent:
    text = f"member {member_id} has not {what} in time"
    return GroupEvent(group.id, text, Cause.REBALANCE, member_id)


def _await_joins(state: State, group: ClassicGroup, now: Millis, *, at_least_ms: int = 0) -> None:
    wait_ms = max(group.rebalance_timeout_ms, at_least_ms)
    timers.await_joins(state.deadlines, group.id, Millis(now + wait_ms))


def _refuse_sync(member: ClassicMember, error: ApiError) -> Reply:
    call = member.sync
    assert call is not None
    member.sync = None
    return Reply(call.token, call.request.refused(error))
