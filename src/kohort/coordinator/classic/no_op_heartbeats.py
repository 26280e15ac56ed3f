# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of members of classic groups that are Stable, as nearly all are: what must stay
unchanged so that the next one gets the same answer.

A rebalance leaves this state, and no generation is Stable twice. So the answer never hides that a
member has to join again.
"""

from kohort.coordinator.classic import timers
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.state import State
from kohort.errors import ApiError
from kohort.machines.deadlines import Session
from kohort.machines.effects import Client
from kohort.terms import GroupId, GroupState, MemberId
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class ClassicNoOpHeartbeat:
    """What a heartbeat in a classic group rests on."""

    __slots__ = ("_group", "_member", "_revision", "_state", "session")

    def __init__(self, state: State, group: ClassicGroup, member: ClassicMember) -> None:
        self._state = state
        self._group = group
        self._revision = group.revision
        self._member = member
        key = timers.session_key(group.id, member.id)
        self.session = Session(key, member.session_timeout_ms)

    def answer(self) -> HeartbeatResponse:
        """The answer, as long as all of that is as it was."""
        return HeartbeatResponse()

    def holds(self, state: State) -> bool:
        """Whether all of that is as it was."""
        return (
            self._group.revision == self._revision
            and state is self._state
            # A member that joins a stable group again may change this alone.
            and self._member.session_timeout_ms == self.session.timeout_ms
        )


def no_op_heartbeat_or_none(
    state: State, request: HeartbeatRequest, _client: Client
) -> ClassicNoOpHeartbeat | None:
    """What to remember of a heartbeat, when it is one that changes nothing. Members of the classic
    protocol in a consumer group have none: their answers depend on the time.
    """
    group = state.groups.classic(GroupId(request.group_id))
    if group is None or group.state is not GroupState.STABLE:
        return None
    try:
        member = group.check_identity(MemberId(request.member_id), request.group_instance_id)
        group.check_generation(request.generation_id)
    except ApiError:
        return None
    return ClassicNoOpHeartbeat(state, group, member)
