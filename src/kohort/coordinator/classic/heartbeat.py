# SPDX-License-Identifier: Apache-2.0
"""Heartbeat in a classic group: a member is alive, and learns whether it has to join again."""

from collections.abc import Iterator

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.state import State
from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply
from kohort.records.causes import Cause
from kohort.terms import GroupState, MemberId, Millis
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    state: State, group: ClassicGroup, call: Call[HeartbeatRequest], now: Millis
) -> Effects:
    """Is this a member of the current generation, and is the group at rest?"""
    request = call.request
    member = group.check_identity(MemberId(request.member_id), request.group_instance_id)
    group.check_generation(request.generation_id)
    rebalance.renew(state, group, member, now)
    response = HeartbeatResponse()
    if group.state is GroupState.PREPARING_REBALANCE:
        response.error_code = ErrorCode.REBALANCE_IN_PROGRESS
    return Effects([], [Reply(call.token, response)])


def start(state: State, now: Millis) -> Iterator[Effects]:
    """After loading: every member gets a full session. A group above a lowered limit rebalances."""
    for group in state.groups.all_classic():
        for member in group.members.values():
            rebalance.renew(state, group, member, now)
        limit = state.classic_settings.max_size
        if len(group.members) > limit:
            effects = rebalance.prepare(state, group, now)
            text = f"it has {len(group.members)} members, expected at most {limit}"
            effects.events.append(GroupEvent(group.id, text, Cause.SIZE))
            yield effects
