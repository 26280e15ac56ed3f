# SPDX-License-Identifier: Apache-2.0
"""Heartbeats that change nothing, as nearly all do: how they are known and answered, and what must
stay unchanged so that the next one gets the same answer.

A remembered heartbeat is a shortcut in front of the normal path, never a replacement of it. It
applies as long as the group has the revision that the answer was made from, and knows of nothing
that it still has to look at.
"""

from kohort.coordinator.consumer import timers
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.requests import changes_nothing
from kohort.coordinator.consumer.rights import is_known
from kohort.coordinator.state import State
from kohort.machines.effects import Client
from kohort.terms import GroupId, MemberId
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def member_of_no_op(
    state: State, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, client: Client
) -> Member | None:
    """The member whose heartbeat this is, when it changes nothing."""
    member = group.members.get(MemberId(request.member_id))
    if (
        member is not None
        and member.epoch == request.member_epoch
        and request.instance_id in (None, member.instance_id)
        and changes_nothing(request, member, client)
        and group.at_rest(member)
        and (not member.subscribed_regex or is_known(state, group, member))
    ):
        return member
    return None


def no_op_response(group: ConsumerGroup, member: Member) -> ConsumerGroupHeartbeatResponse:
    """The answer that tells the member to go on as before."""
    return ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
    )


class NoOpHeartbeat:
    """What a quiet heartbeat rests on."""

    __slots__ = ("_group", "_member", "_revision", "_state", "session")

    def __init__(self, state: State, group: ConsumerGroup, member: Member) -> None:
        self._state = state
        self._group = group
        self._member = member
        self._revision = group.revision
        self.session = timers.session_of(group, member)

    def answer(self) -> ConsumerGroupHeartbeatResponse:
        """The answer, as long as all of that is as it was."""
        return no_op_response(self._group, self._member)

    def holds(self, state: State) -> bool:
        """Whether all of that is as it was."""
        group = self._group
        return (
            group.revision == self._revision
            and state is self._state
            and not group.metadata_stale
            and not group.expressions_stale
        )


def no_op_heartbeat_or_none(
    state: State, request: ConsumerGroupHeartbeatRequest, client: Client
) -> NoOpHeartbeat | None:
    """What to remember of a heartbeat, when it is one that changes nothing."""
    group = state.groups.consumer(GroupId(request.group_id))
    member = None if group is None else member_of_no_op(state, group, request, client)
    if group is None or member is None:
        return None
    return NoOpHeartbeat(state, group, member)
