"""From one generation of a classic group to the next: joins are awaited, a leader is found, syncs
are awaited.

Every function takes one step and returns what it asks of the world. Nobody is kept waiting without
a deadline: the group waits for joins and syncs as long as its slowest member may take, and a silent
member's session ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic.group import (
    ClassicGroup,
    classic_or_none,
    join_key,
    session_key,
    sync_key,
)
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.classic.records import outcome_record
from kohort.coordinator.effects import Effects, Reply
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, GroupState, MemberId, Millis
from kohort.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from kohort.coordinator.shard import Shard

_GONE = ApiError(ErrorCode.UNKNOWN_MEMBER_ID, "the member is no longer in the group")
_OVERTAKEN = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances again")


def advance(shard: Shard, group: ClassicGroup, now: Millis) -> Effects:
    """A member has come or changed: begin a rebalance, or end the join phase if it waited for this
    one.
    """
    if group.state is GroupState.PREPARING_REBALANCE:
        return complete_if_all_joined(shard, group, now)
    return prepare(shard, group, now)


def advance_without(shard: Shard, group: ClassicGroup, now: Millis) -> Effects:
    """The same after a member has gone. An empty group has nothing to rebalance."""
    if group.state is GroupState.EMPTY:
        return Effects()
    return advance(shard, group, now)


def prepare(shard: Shard, group: ClassicGroup, now: Millis) -> Effects:
    """Void the generation and wait for everybody to join.

    The first members of a group wait a little longer, for others that start together with them.
    """
    effects = Effects()
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            if member.sync is not None:
                effects.replies.append(_refuse_sync(member, _OVERTAKEN))
                watch(shard, group, member, now)
    shard.deadlines.cancel(sync_key(group.id))
    starting = group.state is GroupState.EMPTY
    group.become_preparing(now)
    if not starting:
        if group.all_joined:
            effects.extend(complete(shard, group, now))
        else:
            _await_joins(shard, group, now)
        return effects
    delay_ms = shard.config.group_initial_rebalance_delay_ms
    if delay_ms <= 0:
        return complete(shard, group, now)
    remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    _await_others(shard, group, now, delay_ms, remaining_ms)
    return effects


def complete_if_all_joined(shard: Shard, group: ClassicGroup, now: Millis) -> Effects:
    """End the join phase early. Not the first one of a group: there the initial delay decides."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.before is not GroupState.EMPTY
        and group.all_joined
    ):
        return complete(shard, group, now)
    return Effects()


def complete(shard: Shard, group: ClassicGroup, now: Millis) -> Effects:
    """End the join phase: go on with those who are here, tell the leader who they are, and wait for
    syncs.

    Static members are waited for until their session ends (KIP-345), so they stay without having
    joined.
    """
    shard.deadlines.cancel(join_key(group.id))
    late = [one for one in group.members.values() if one.join is None and one.instance_id is None]
    for member in late:
        drop(shard, group, member.id)
    if not group.members:
        group.become_empty(now)
        return Effects([outcome_record(group, {}, now)])
    if not group.elect():
        _await_joins(shard, group, now)
        return Effects()
    group.become_completing(now)
    effects = Effects()
    for member in group.members.values():
        if member.join is not None:
            reply = Reply(member.join.token, joined(group, member))
            member.join = None
            group.parked_joins -= 1
            effects.replies.append(reply)
        member.is_new = False
        watch(shard, group, member, now)
    shard.deadlines.set(
        sync_key(group.id),
        Millis(now + group.rebalance_timeout_ms),
        syncs_overdue,
        group.id,
        group.generation,
    )
    return effects


def joined(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The answer to a member that is in the current generation. The leader learns who else is."""
    members = []
    if member.id == group.leader:
        members = [
            JoinGroupResponseMember(
                member_id=one.id,
                group_instance_id=one.instance_id,
                metadata=group.metadata_of(one),
            )
            for one in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.id,
        members=members,
    )


def watch(
    shard: Shard,
    group: ClassicGroup,
    member: ClassicMember,
    now: Millis,
    timeout_ms: int | None = None,
) -> None:
    """Start the member's session anew."""
    at = now + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    shard.deadlines.set(
        session_key(group.id, member.id), Millis(at), session_over, group.id, member.id
    )


def drop(shard: Shard, group: ClassicGroup, member_id: MemberId) -> list[Reply]:
    """Take a member, or one that is only expected, out of the group; its parked calls are refused.

    What this means for the group is the caller's next step: `advance_without`.
    """
    shard.deadlines.cancel(session_key(group.id, member_id))
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


# -- deadlines that have been met


def joins_overdue(shard: Shard, now: Millis, group_id: GroupId) -> Effects:
    """Who has not joined by now is left behind."""
    group = classic_or_none(shard, group_id)
    if group is None or group.state is not GroupState.PREPARING_REBALANCE:
        return Effects()
    return complete(shard, group, now)


def start_delay_over(
    shard: Shard, now: Millis, group_id: GroupId, delay_ms: int, remaining_ms: int
) -> Effects:
    """The initial delay begins again while members keep coming, but never beyond the rebalance
    timeout.
    """
    group = classic_or_none(shard, group_id)
    if group is None or group.state is not GroupState.PREPARING_REBALANCE:
        return Effects()
    if not group.joined_meanwhile or remaining_ms <= 0:
        return complete(shard, group, now)
    group.joined_meanwhile = False
    next_ms = min(shard.config.group_initial_rebalance_delay_ms, remaining_ms)
    _await_others(shard, group, now, next_ms, max(remaining_ms - delay_ms, 0))
    return Effects()


def syncs_overdue(shard: Shard, now: Millis, group_id: GroupId, generation: int) -> Effects:
    """Who has joined and never asked for its assignment is left behind."""
    group = classic_or_none(shard, group_id)
    if (
        group is None
        or group.generation != generation
        or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        or not group.pending_sync
    ):
        return Effects()
    effects = Effects()
    for member_id in list(group.pending_sync):
        effects.replies += drop(shard, group, member_id)
    effects.extend(prepare(shard, group, now))
    return effects


def session_over(shard: Shard, now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:
    """A member was silent for too long. While its call is parked here, it is we who are silent."""
    group = classic_or_none(shard, group_id)
    if group is None:
        return Effects()
    if member_id in group.pending:
        group.remove(member_id)
        return complete_if_all_joined(shard, group, now)
    member = group.members.get(member_id)
    if member is None:
        return Effects()
    if not member.is_new and (member.join is not None or member.sync is not None):
        return Effects()
    effects = Effects(replies=drop(shard, group, member_id))
    effects.extend(advance_without(shard, group, now))
    return effects


def _await_joins(shard: Shard, group: ClassicGroup, now: Millis) -> None:
    at = Millis(now + group.rebalance_timeout_ms)
    shard.deadlines.set(join_key(group.id), at, joins_overdue, group.id)


def _await_others(
    shard: Shard, group: ClassicGroup, now: Millis, delay_ms: int, remaining_ms: int
) -> None:
    shard.deadlines.set(
        join_key(group.id),
        Millis(now + delay_ms),
        start_delay_over,
        group.id,
        delay_ms,
        remaining_ms,
    )


def _refuse_sync(member: ClassicMember, error: ApiError) -> Reply:
    call = member.sync
    assert call is not None
    member.sync = None
    return Reply(call.token, call.request.refused(error))
