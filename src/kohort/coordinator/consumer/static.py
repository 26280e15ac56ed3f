# SPDX-License-Identifier: Apache-2.0
"""Static members of consumer groups (KIP-345): an instance id outlives the client that uses it.

A client that goes away for a while keeps its place and its partitions; the next one with the same
instance id takes both over, under a member id of its own, and nobody rebalances. Until then the
instance id belongs to one member, and every other member that claims it is fenced.
"""

from dataclasses import replace

from kohort.coordinator.consumer import timers
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY, JOINING, Held, Member, MemberState
from kohort.coordinator.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import TAKE_AGAIN, Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.terms import MemberId, Millis


def former_self(
    group: ConsumerGroup, member_id: MemberId, instance_id: str | None
) -> Member | None:
    """The member whose place a joining one takes, if there is one: the last that had its instance
    id, under another member id, and has gone away. A member of the classic protocol need not have
    gone (KAFKA-17228).

    Raises ApiError UNRELEASED_INSTANCE_ID while the other one is there.
    """
    former = group.holder(instance_id)
    if former is None or former.id == member_id:
        return None
    if former.epoch != AWAY and former.classic is None:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {former.id} member.",
        )
    return former


def replaced(
    state: State, group: ConsumerGroup, former: Member, member_id: MemberId, now: Millis
) -> Effects:
    """Give the place of a member to its successor. The call is taken once more after that, and
    finds the successor at the epoch of a member that joins.
    """
    successor = replace(former, id=member_id, epoch=JOINING, previous_epoch=JOINING)
    target = group.targets.get(former.id, NOTHING)
    records = [
        *member_tombstones(group.id, former.id),
        member_record(group.id, successor),
        target_record(group.id, member_id, target),
        current_record(group.id, successor),
    ]
    timers.renew(state, group, successor, now)
    text = f"member {member_id} takes the place of {former.id}, instance {former.instance_id}"
    return Effects(
        records,
        events=[GroupEvent(group.id, text, Cause.REPLACED, former.id)],
        continuation=TAKE_AGAIN,
    )


def away(member: Member) -> Member:
    """The member once it has left for a while: it keeps what it has, and gives up at once what it
    was to give up. Its session goes on.
    """
    if member.epoch == AWAY:
        return member
    assigned: Held = {
        topic: dict.fromkeys(partitions, JOINING) for topic, partitions in member.assigned.items()
    }
    return replace(member, epoch=AWAY, state=MemberState.STABLE, assigned=assigned, revoking={})
