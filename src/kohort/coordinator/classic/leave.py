# SPDX-License-Identifier: Apache-2.0
"""LeaveGroup in a classic group: members leave, or an administrator removes several (KIP-345)."""

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.leave_group import MemberIdentity


def leave(
    state: State, group: ClassicGroup, leaving: list[MemberIdentity], now: Millis
) -> tuple[Effects, list[ErrorCode]]:
    """Judge each member by itself, with a code for each; then the group takes one step for all."""
    effects = Effects()
    codes = [_take_out(state, group, member, effects) for member in leaving]
    # Also when it was only expected (KIP-394): upstream rebalances for every valid entry.
    if ErrorCode.NONE in codes:
        effects.extend(rebalance.advance_without(state, group, now))
    return effects, codes


def _take_out(
    state: State, group: ClassicGroup, identity: MemberIdentity, effects: Effects
) -> ErrorCode:
    """Without a member id an instance id is enough: that is how tools remove static members."""
    member_id = MemberId(identity.member_id)
    if not member_id:
        instance_id = identity.group_instance_id
        owner = None if instance_id is None else group.instances.get(instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = owner
    elif member_id not in group.pending:
        try:
            group.check_identity(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
    effects.replies += rebalance.drop(state, group, member_id)
    effects.events.append(left(group.id, member_id, identity.reason))
    return ErrorCode.NONE


def left(group_id: GroupId, member_id: MemberId, reason: str | None) -> GroupEvent:
    """What to tell of a member that leaves, with the reason that it gave (KIP-800)."""
    text = f"member {member_id} leaves" + (f": {reason}" if reason else "")
    return GroupEvent(group_id, text, Cause.LEAVE, member_id, reason)
