"""The ends of a membership: a member leaves, falls silent, or does not give up in time (KIP-848).

Whatever ends it, the group goes on without the member at a new epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.consumer import metadata
from kohort.coordinator.consumer.group import ConsumerGroup, unknown_member
from kohort.coordinator.consumer.member import MemberState
from kohort.coordinator.consumer.records import (
    epoch_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)
from kohort.coordinator.effects import Call, Effects, answered
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kohort.coordinator.consumer.member import Member
    from kohort.coordinator.shard import Shard
    from kohort.records.codec import Record
    from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

SESSION, REBALANCE = "consumer session", "consumer rebalance"  # kinds of deadlines


def leave(
    shard: Shard,
    call: Call[ConsumerGroupHeartbeatRequest],
    now: Millis,  # noqa: ARG001
) -> Effects:
    """The member goes at once, and its epoch does not matter."""
    request = call.request
    group_id, member_id = GroupId(request.group_id), MemberId(request.member_id)
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        text = "not found" if group is None else "is not a consumer group"
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {text}.")
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group_id, member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=request.member_epoch
    )
    return answered(call, response, remove(shard, group, [member]))


def remove(shard: Shard, group: ConsumerGroup, members: Iterable[Member]) -> list[Record]:
    """Take members out: their tombstones and one new epoch for all of them. Their deadlines go.

    A group without members has a target of its own, an empty one (KAFKA-20442): nothing is to be
    computed for it.
    """
    records: list[Record] = []
    gone = {member.id: member for member in members}
    for member in gone.values():
        records += member_tombstones(group.id, member.id)
        cancel(shard, group, member.id)
    expressions = [one.subscribed_regex for one in gone.values() if one.subscribed_regex]
    records += [
        regex_tombstone(group.id, expression)
        for expression in dict.fromkeys(expressions)
        if expression in group.resolved
        and group.subscribers_of(expression) == expressions.count(expression)
    ]
    epoch = group.group_epoch + 1
    names = group.topic_names(gone.values(), ())
    records.append(epoch_record(group.id, epoch, metadata.hash_of(names, shard.topics)))
    if len(gone) == len(group.members):
        records.append(target_epoch_record(group.id, epoch, group.target_time))
    return records


# -- deadlines


def watch(shard: Shard, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """Begin the member's session anew."""
    timeout_ms = shard.config.group_consumer_session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    shard.deadlines.set(
        (SESSION, group.id, member.id), Millis(now + timeout_ms), session_over, group.id, member.id
    )


def watch_revocation(shard: Shard, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """Give a member that has to give something up its rebalance timeout for that."""
    key = (REBALANCE, group.id, member.id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS or member.classic is not None:
        shard.deadlines.cancel(key)
        return
    at = Millis(now + member.rebalance_timeout_ms)
    shard.deadlines.set(key, at, revocation_overdue, group.id, member.id, member.epoch)


def cancel(shard: Shard, group: ConsumerGroup, member_id: MemberId) -> None:
    """Forget the deadlines of a member."""
    shard.deadlines.cancel((SESSION, group.id, member_id))
    shard.deadlines.cancel((REBALANCE, group.id, member_id))


def session_over(shard: Shard, now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:  # noqa: ARG001
    """A member was silent for too long."""
    group = shard.groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return Effects()
    return Effects(remove(shard, group, [member]))


def revocation_overdue(
    shard: Shard,
    now: Millis,  # noqa: ARG001
    group_id: GroupId,
    member_id: MemberId,
    epoch: int,
) -> Effects:
    """A member keeps for too long what it has to give up, and others wait for it."""
    group = shard.groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None or member.epoch != epoch:
        return Effects()
    return Effects(remove(shard, group, [member]))


def start(shard: Shard, now: Millis) -> None:
    """After loading: every member gets a full session, and time to give up what it has to. Topics
    may have changed meanwhile.
    """
    for group in shard.groups:
        if isinstance(group, ConsumerGroup):
            group.metadata_stale = True
            for member in group.members.values():
                watch(shard, group, member, now)
                watch_revocation(shard, group, member, now)
