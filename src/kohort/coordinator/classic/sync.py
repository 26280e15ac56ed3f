# SPDX-License-Identifier: Apache-2.0
"""SyncGroup in a classic group: the leader hands out the assignments, every member gets its own."""

from kohort.coordinator.classic import rebalance, timers
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.classic.records import size_of
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply, answered
from kohort.records.codec import Record
from kohort.terms import GroupState, MemberId, Millis
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(state: State, group: ClassicGroup, call: Call[SyncGroupRequest], now: Millis) -> Effects:
    """Is this a member of the current generation, and has the leader spoken yet?"""
    request = call.request
    member = group.check_identity(MemberId(request.member_id), request.group_instance_id)
    group.check_generation(request.generation_id)
    _check_protocol(group, request)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.id} waits for joins")

    if group.state is GroupState.STABLE:
        _await_no_longer(state, group, member)
        rebalance.renew(state, group, member, now)
        return answered(call, _assigned(group, member.assignment))
    if member.id == group.leader:
        return _hand_out(state, group, member, call, now)
    _await_no_longer(state, group, member)
    return _park(member, call)


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


def _await_no_longer(state: State, group: ClassicGroup, member: ClassicMember) -> None:
    group.pending_sync.pop(member.id, None)
    if not group.pending_sync:
        timers.end_syncs(state.deadlines, group.id)


def _park(member: ClassicMember, call: Call[SyncGroupRequest]) -> Effects:
    """Keep the call until the leader syncs. An older call of the same member is refused, since
    nobody waits for it any more.
    """
    effects = Effects()
    if member.sync is not None:
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"member {member.id} has synced again")
        effects.replies.append(Reply(member.sync.token, member.sync.request.refused(error)))
    member.sync = call
    return effects


def _hand_out(
    state: State,
    group: ClassicGroup,
    leader: ClassicMember,
    call: Call[SyncGroupRequest],
    now: Millis,
) -> Effects:
    """The leader has assigned: answer those who wait. Later ones find their part in the group.

    The group becomes Stable when the record is replayed, in this step or after a restart.
    """
    assignments = {
        MemberId(assignment.member_id): assignment.assignment
        for assignment in call.request.assignments
    }
    outcome = group.outcome(assignments, now)
    _check_size(state, group, outcome)
    # From here on nothing refuses, so what a reload forgets may be touched.
    _await_no_longer(state, group, leader)
    effects = _park(leader, call)
    effects.records.append(outcome)
    text = f"generation {group.generation} has {len(group.members)} members"
    effects.events.append(GroupEvent(group.id, text, ends_rebalance=True))
    for member in group.members.values():
        if member.sync is not None:
            response = _assigned(group, assignments.get(member.id, b""))
            effects.replies.append(Reply(member.sync.token, response))
            member.sync = None
            rebalance.renew(state, group, member, now)
    return effects


def _check_size(state: State, group: ClassicGroup, outcome: Record) -> None:
    """The outcome must fit into one record. Raises ApiError or WireError where it does not."""
    size = size_of(outcome)
    limit = state.record_limit()
    if size > limit:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the members of group {group.id} and their assignments take {size} bytes,"
            f" expected at most {limit} (max.message.bytes of the topic of groups)",
        )


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )
