# SPDX-License-Identifier: Apache-2.0
"""From the log to a classic group."""

from kohort.coordinator.classic import timers
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.state import State
from kohort.machines.effects import Client
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue
from kohort.terms import GroupId, GroupState, MemberId, Millis


def replay(state: State, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """What the log says about a group.

    While loading, the group is made from the record alone. Afterwards the live group knows more,
    and the record is the outcome of its own rebalance.
    """
    group_id = GroupId(key.group)
    group = state.groups.classic(group_id)
    if value is None:
        if group is not None:
            timers.end_all(state.deadlines, group_id, (*group.members, *group.pending))
            state.groups.remove(group_id)
    elif group is None or state.loading:
        state.groups.remove(group_id)
        state.groups.add(_restored(group_id, value))
    elif value.members and _is_awaited(group, GroupState.COMPLETING_REBALANCE, value.generation):
        assignments = {MemberId(member.member_id): member.assignment for member in value.members}
        group.become_stable(Millis(value.current_state_timestamp), assignments)
    elif not group.members and _is_awaited(
        group, GroupState.PREPARING_REBALANCE, value.generation - 1
    ):
        group.become_empty(Millis(value.current_state_timestamp), value.generation)


def _is_awaited(group: ClassicGroup, state: GroupState, generation: int) -> bool:
    return group.state is state and group.generation == generation


def _restored(group_id: GroupId, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(group_id, Millis(value.current_state_timestamp))
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol
    group.generation = value.generation
    for stored in value.members:
        rebalance_timeout_ms = stored.rebalance_timeout
        if rebalance_timeout_ms == -1:  # value version 0 has none
            rebalance_timeout_ms = stored.session_timeout
        member = ClassicMember(
            MemberId(stored.member_id),
            stored.group_instance_id,
            Client(stored.client_id, stored.client_host),
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=stored.session_timeout,
            protocols={} if value.protocol is None else {value.protocol: stored.subscription},
            assignment=stored.assignment,
        )
        group.add(member)
    group.leader = None if value.leader is None else MemberId(value.leader)
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.topics = group.subscribed()
    return group
