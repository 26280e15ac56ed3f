"""From the log to a classic group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic.group import ClassicGroup, classic_or_none, join_key, sync_key
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.effects import Client
from kohort.terms import GroupId, GroupState, MemberId, Millis

if TYPE_CHECKING:
    from kohort.coordinator.shard import Shard
    from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue


def replay(shard: Shard, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """What the log says about a group.

    While loading, that is all there is to know. Afterwards the live group knows more: a rebalance
    may be under way of which this is the outcome, or which has begun together with the record of
    the creation.
    """
    group_id = GroupId(key.group)
    group = classic_or_none(shard, group_id)
    if value is None:
        shard.deadlines.cancel(join_key(group_id))
        shard.deadlines.cancel(sync_key(group_id))
        if group is not None:
            shard.groups.remove(group_id)
    elif group is None or shard.loading:
        shard.groups.remove(group_id)
        shard.groups.add(_restored(group_id, value))
    elif (
        group.state is GroupState.COMPLETING_REBALANCE
        and group.generation == value.generation
        and value.members
    ):
        assignments = {MemberId(one.member_id): one.assignment for one in value.members}
        group.become_stable(Millis(value.current_state_timestamp), assignments)


def _restored(group_id: GroupId, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(group_id, Millis(value.current_state_timestamp))
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol
    group.generation = value.generation
    for one in value.members:
        rebalance_timeout_ms = one.rebalance_timeout
        if rebalance_timeout_ms == -1:  # value version 0 has none
            rebalance_timeout_ms = one.session_timeout
        member = ClassicMember(
            MemberId(one.member_id),
            one.group_instance_id,
            Client(one.client_id, one.client_host),
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=one.session_timeout,
            protocols={} if value.protocol is None else {value.protocol: one.subscription},
            assignment=one.assignment,
        )
        group.add(member)
    group.leader = None if value.leader is None else MemberId(value.leader)
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.topics = group.subscribed()
    return group
