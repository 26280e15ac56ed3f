"""A heartbeat that says nothing, remembered: as long as nothing changes, the next one is answered
alike.

The memory is in front of the normal path, never in place of it. It holds the very objects that the
answer was made from; a change replaces them, and then it no longer applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.consumer import fencing
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.heartbeat import says_nothing
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from kohort.coordinator.consumer.member import Member
    from kohort.coordinator.effects import Client
    from kohort.coordinator.shard import Shard
    from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class Quiet:
    """What a quiet heartbeat rests on."""

    __slots__ = ("_group", "_member", "_session", "_shard", "_timeout_ms")

    def __init__(self, shard: Shard, group: ConsumerGroup, member: Member) -> None:
        self._shard = shard
        self._group = group
        self._member = member
        self._session = (fencing.SESSION, group.id, member.id)
        self._timeout_ms = shard.config.group_consumer_session_timeout_ms

    @property
    def answer(self) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(
            member_id=self._member.id,
            member_epoch=self._member.epoch,
            heartbeat_interval_ms=self._shard.config.group_consumer_heartbeat_interval_ms,
        )

    def renew(self, shard: Shard, now: Millis) -> bool:
        """Take the heartbeat once more; False when it has to go the normal way."""
        group, member = self._group, self._member
        if (
            shard is not self._shard
            or shard.groups.get(group.id) is not group
            or group.members.get(member.id) is not member
            or not group.at_rest(member)
        ):
            return False
        shard.deadlines.move(self._session, Millis(now + self._timeout_ms))
        return True


def quiet_or_none(
    shard: Shard, request: ConsumerGroupHeartbeatRequest, client: Client
) -> Quiet | None:
    """What to remember of a heartbeat, when it is one that changes nothing."""
    group = shard.groups.get(GroupId(request.group_id))
    if type(group) is not ConsumerGroup:
        return None
    member = group.members.get(MemberId(request.member_id))
    if (
        member is None
        or member.epoch != request.member_epoch
        or not says_nothing(request, member, client)
        or not group.at_rest(member)
    ):
        return None
    return Quiet(shard, group, member)
