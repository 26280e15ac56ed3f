# SPDX-License-Identifier: Apache-2.0
"""LeaveGroup in a consumer group: a classic member leaves, or an administrator removes members of
either protocol.
"""

from kohort.coordinator.consumer import fencing
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.state import State
from kohort.errors import ErrorCode
from kohort.machines.effects import Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.terms import MemberId, Millis
from kohort.wire.messages.leave_group import MemberIdentity


def remove(
    state: State, group: ConsumerGroup, leaving: list[MemberIdentity], now: Millis
) -> tuple[Effects, list[ErrorCode]]:
    """Judge each member by itself, with a code for each; then the group takes one step for all."""
    gone: dict[MemberId, Member] = {}
    codes = []
    events = []
    for identity in leaving:
        member, code = _member_of(group, identity)
        codes.append(code)
        if member is not None:
            gone[member.id] = member
            events.append(_leave_event(group, member, identity))
    if not gone:
        return Effects(), codes
    return fencing.remove(state, group, list(gone.values()), events, now), codes


def _leave_event(group: ConsumerGroup, member: Member, leaving: MemberIdentity) -> GroupEvent:
    """A classic member that leaves names itself. So does an administrator who removes all of them,
    and nothing tells the two apart, as in a classic group.
    """
    itself = member.classic is not None and leaving.member_id
    what, cause = ("leaves", Cause.LEAVE) if itself else ("is taken out", Cause.KICKED)
    reason = f": {leaving.reason}" if leaving.reason else ""
    return GroupEvent(
        group.id, f"member {member.id} {what}{reason}", cause, member.id, leaving.reason
    )


def _member_of(group: ConsumerGroup, identity: MemberIdentity) -> tuple[Member | None, ErrorCode]:
    member_id = MemberId(identity.member_id)
    if identity.group_instance_id is not None:
        owner = group.instances.get(identity.group_instance_id)
        if owner is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        if member_id not in ("", owner):
            return None, ErrorCode.FENCED_INSTANCE_ID
        member_id = owner
    member = group.members.get(member_id)
    if member is None:
        return None, ErrorCode.UNKNOWN_MEMBER_ID
    return member, ErrorCode.NONE
