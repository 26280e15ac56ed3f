"""LeaveGroup in a consumer group: an administrator removes members of either protocol."""

from kohort.coordinator.consumer import fencing
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.effects import Effects, Note
from kohort.coordinator.state import State
from kohort.errors import ErrorCode
from kohort.records.causes import Cause
from kohort.terms import MemberId, Millis
from kohort.wire.messages.leave_group import MemberIdentity


def remove(
    state: State, group: ConsumerGroup, leaving: list[MemberIdentity], now: Millis
) -> tuple[Effects, list[ErrorCode]]:
    """Judge each member by itself, with a code for each; then the group takes one step for all."""
    gone: dict[MemberId, Member] = {}
    codes = []
    notes = []
    for identity in leaving:
        member, code = _member_of(group, identity)
        codes.append(code)
        if member is not None:
            gone[member.id] = member
            reason = f": {identity.reason}" if identity.reason else ""
            text = f"member {member.id} is taken out{reason}"
            notes.append(Note(group.id, text, Cause.KICKED, member.id, identity.reason))
    if not gone:
        return Effects(), codes
    return fencing.remove(state, group, list(gone.values()), notes, now), codes


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
