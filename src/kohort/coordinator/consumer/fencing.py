# SPDX-License-Identifier: Apache-2.0
"""The ends of a membership: a member leaves, falls silent, or does not give up in time (KIP-848).

Whatever ends it, the group goes on without the member at a new epoch, or as a classic group where
nobody else uses the consumer protocol.
"""

from collections.abc import Collection, Iterable

from kohort.coordinator.consumer import expressions, metadata, static, timers
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY, Member, MemberState
from kohort.coordinator.consumer.records import (
    current_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)
from kohort.coordinator.migration import downgrade
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply
from kohort.records.causes import Cause
from kohort.records.codec import Record
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def leave(state: State, call: Call[ConsumerGroupHeartbeatRequest], now: Millis) -> Effects:
    """The member goes at once, and its epoch does not matter. A static one may say that it comes
    back (KIP-345).
    """
    request = call.request
    group_id, member_id = GroupId(request.group_id), MemberId(request.member_id)
    group = state.groups.consumer(group_id)
    if group is None:
        text = "is not a consumer group" if group_id in state.groups else "not found"
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {text}.")
    member = group.claimed(member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == AWAY:
        gone = static.away(member)
        records = [] if gone is member else [current_record(group_id, gone)]
        text = f"member {member_id} leaves for a while, instance {member.instance_id}"
        events = [GroupEvent(group_id, text)] if records else []
        return Effects(records, [Reply(call.token, response)], events)
    event = GroupEvent(group_id, f"member {member_id} leaves", Cause.LEAVE, member_id)
    effects = remove(state, group, [member], [event], now)
    effects.replies.append(Reply(call.token, response))
    return effects


def remove(
    state: State,
    group: ConsumerGroup,
    members: Collection[Member],
    events: Iterable[GroupEvent],
    now: Millis,
) -> Effects:
    """Take members out, for the reasons that are noted."""
    converted = downgrade.without(state, group, members, now)
    effects = converted or Effects(records_without(state, group, members))
    effects.events.extend(events)
    return effects


def records_without(state: State, group: ConsumerGroup, members: Iterable[Member]) -> list[Record]:
    """The tombstones of members and one new epoch for all of them.

    A group without members gets an empty target (KAFKA-20442), so nothing has to be computed for
    it.
    """
    records: list[Record] = []
    gone = {member.id: member for member in members}
    for member in gone.values():
        records += member_tombstones(group.id, member.id)
    expressions = [member.subscribed_regex for member in gone.values() if member.subscribed_regex]
    records += [
        regex_tombstone(group.id, expression)
        for expression in dict.fromkeys(expressions)
        if expression in group.resolved
        and group.subscribers_of(expression) == expressions.count(expression)
    ]
    epoch = group.group_epoch + 1
    names = group.topic_names(gone.values(), ())
    records.append(epoch_record(group.id, epoch, metadata.hash_of(names, state.topics)))
    if len(gone) == len(group.members):
        records.append(target_epoch_record(group.id, epoch, group.target_time))
    return records


def session_over(state: State, now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:
    """A member was silent for too long."""
    group = state.groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return Effects()
    timeout_ms = timers.session_timeout_ms(group, member)
    text = f"the session of member {member_id} is over after {timeout_ms} ms"
    return remove(
        state, group, [member], [GroupEvent(group_id, text, Cause.SESSION, member_id)], now
    )


def revocation_overdue(
    state: State, now: Millis, group_id: GroupId, member_id: MemberId, epoch: int
) -> Effects:
    """A member has kept too long what it has to give up, and others wait for it."""
    group = state.groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if (
        group is None
        or member is None
        or member.epoch != epoch
        or member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        return Effects()
    return _overdue(state, group, member, "has kept what it has to give up", now)


def join_overdue(state: State, now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:
    """A classic member was told to join again, and has not."""
    return _classic_overdue(state, now, group_id, member_id, "has not joined again")


def sync_overdue(state: State, now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:
    """A classic member has joined, and has not asked for its assignment."""
    return _classic_overdue(state, now, group_id, member_id, "has not synced")


def _classic_overdue(
    state: State, now: Millis, group_id: GroupId, member_id: MemberId, what: str
) -> Effects:
    group = state.groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None or member.classic is None:
        return Effects()
    return _overdue(state, group, member, what, now)


def _overdue(state: State, group: ConsumerGroup, member: Member, what: str, now: Millis) -> Effects:
    text = (
        f"member {member.id} {what} for longer than its rebalance timeout of "
        f"{member.rebalance_timeout_ms} ms"
    )
    return remove(
        state, group, [member], [GroupEvent(group.id, text, Cause.REBALANCE, member.id)], now
    )


def start(state: State, now: Millis) -> None:
    """After loading: every member gets a full session, and time to give up what it has to give up.
    Topics may have changed meanwhile.
    """
    for group in state.groups.all_consumer():
        group.metadata_stale = True
        expressions.start(group)
        for member in group.members.values():
            timers.renew(state, group, member, now)
            timers.watch_revocation(state, group, member, now)
