# SPDX-License-Identifier: Apache-2.0
"""Static members of classic groups (KIP-345): an instance id outlives the client that uses it.

The next client with the instance id of a member takes its place under a new member id, and the old
one is fenced. A group at rest stays at rest, so nobody loses anything by the restart.
"""

from kohort.coordinator.classic import rebalance, timers
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember, subscribed_topics
from kohort.coordinator.classic.records import size_of
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply
from kohort.records.causes import Cause
from kohort.terms import GroupState, Millis
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

SKIPS_ASSIGNMENT = 9  # the first version of JoinGroup that can ask a leader to do so (KIP-814)


def replace(
    state: State,
    group: ClassicGroup,
    successor: ClassicMember,
    call: Call[JoinGroupRequest],
    now: Millis,
) -> Effects:
    """Let a member take the place of the one with its instance id.

    The group rebalances where the successor makes it choose another protocol, and where the leader
    may just be assigning partitions to the old member id (KAFKA-9801). Its client is the one
    that speaks now; upstream goes on showing the one before.
    """
    leader = group.leader
    former = group.replace(successor)
    effects = Effects([], _fenced(former))
    text = f"member {successor.id} takes the place of {former.id}, instance {former.instance_id}"
    effects.events.append(GroupEvent(group.id, text, Cause.REPLACED, former.id))
    timers.end_session(state.deadlines, group.id, former.id)
    rebalance.renew(state, group, successor, now)
    if group.state is GroupState.STABLE and group.vote() == group.protocol:
        if _topics(group, successor) != _topics(group, former):
            group.topics = group.subscribed()
        assignments = {member.id: member.assignment for member in group.members.values()}
        outcome = group.outcome(assignments, group.state_timestamp)
        if size_of(outcome) <= state.record_limit():
            effects.records.append(outcome)
            answer = _taken_over(group, successor, call.version, leader or "")
            effects.replies.append(Reply(call.token, answer))
            return effects
    effects.extend(rebalance.park_join(group, successor, call))
    effects.extend(rebalance.advance(state, group, now))
    return effects


def _topics(group: ClassicGroup, member: ClassicMember) -> list[str] | None:
    return subscribed_topics(group.metadata_of(member))


def _taken_over(
    group: ClassicGroup, successor: ClassicMember, version: int, leader: str
) -> JoinGroupResponse:
    """The answer in a group that stays at rest. A leader must not assign again: it is told so, or,
    in versions that cannot tell, that the one before it leads.
    """
    answer = rebalance.joined(group, successor)
    if version >= SKIPS_ASSIGNMENT:
        answer.skip_assignment = successor.id == group.leader
    else:
        answer.leader, answer.members = leader, []
    return answer


def _fenced(former: ClassicMember) -> list[Reply]:
    """The answers to the calls that the old member has parked."""
    error = ApiError(
        ErrorCode.FENCED_INSTANCE_ID,
        f"instance id {former.instance_id} belongs to another member than {former.id} now",
    )
    replies = []
    if former.join is not None:
        refusal = former.join.request.refused(error)
        refusal.member_id = former.id  # its request named none, if it was its first
        replies.append(Reply(former.join.token, refusal))
    if former.sync is not None:
        replies.append(Reply(former.sync.token, former.sync.request.refused(error)))
    former.join = former.sync = None
    return replies
