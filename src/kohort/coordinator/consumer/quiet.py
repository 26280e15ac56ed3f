"""Heartbeats that change nothing, as nearly all of them are: how they are known and answered, and
what has to stay as it is for the next one to be answered alike.

Whoever remembers one stands in front of the normal path, never in place of it. It holds the very
objects that the answer was made from; a change replaces them, and then it no longer applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.consumer import fencing
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.requests import says_nothing
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from kohort.coordinator.consumer.member import Member
    from kohort.coordinator.effects import Client
    from kohort.coordinator.shard import Shard
    from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def quiet_member(
    shard: Shard, request: ConsumerGroupHeartbeatRequest, client: Client
) -> Member | None:
    """The member whose heartbeat this is, when it changes nothing."""
    group = shard.groups.get(GroupId(request.group_id))
    if type(group) is not ConsumerGroup:
        return None
    member = group.members.get(MemberId(request.member_id))
    if (
        member is not None
        and member.epoch == request.member_epoch
        and says_nothing(request, member, client)
        and group.at_rest(member)
    ):
        return member
    return None


def quiet_answer(shard: Shard, member: Member) -> ConsumerGroupHeartbeatResponse:
    """Go on as before."""
    return ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=shard.config.group_consumer_heartbeat_interval_ms,
    )


class Quiet:
    """What a quiet heartbeat rests on."""

    __slots__ = ("_group", "_member", "_session", "_shard", "_timeout_ms", "answer")

    def __init__(self, shard: Shard, group: ConsumerGroup, member: Member) -> None:
        self.answer = quiet_answer(shard, member)
        self._shard = shard
        self._group = group
        self._member = member
        self._session = (fencing.SESSION, group.id, member.id)
        self._timeout_ms = shard.config.group_consumer_session_timeout_ms

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
    member = quiet_member(shard, request, client)
    group = shard.groups.get(GroupId(request.group_id))
    if member is None or not isinstance(group, ConsumerGroup):
        return None
    return Quiet(shard, group, member)
