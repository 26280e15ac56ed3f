# SPDX-License-Identifier: Apache-2.0
"""The deadlines of the members of consumer groups: a session for each, and the time it has for
giving up partitions that go to others. A member of the classic protocol has as long for joining
again when it has been told to, and for asking for its assignment once it has joined.

Only `Deadlines.renew` begins a session anew, whoever has heard from the member.
"""

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY, Member, MemberState
from kohort.coordinator.state import State
from kohort.machines.deadlines import Session
from kohort.terms import GroupId, MemberId, Millis

SESSION, REVOCATION = "consumer session", "consumer revocation"
COMPUTATION = "consumer computation"
JOIN, SYNC = "consumer join", "consumer sync"


def renew(state: State, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """The member has shown that it is alive: begin its session anew."""
    state.deadlines.renew(session_of(group, member), now)


def session_of(group: ConsumerGroup, member: Member) -> Session:
    """The deadline that every sign of life moves, while group and member stay the same."""
    return Session((SESSION, group.id, member.id), session_timeout_ms(group, member))


def session_timeout_ms(group: ConsumerGroup, member: Member) -> int:
    """The session timeout of a member. A classic member has named its own."""
    if member.classic is None:
        return group.settings.session_timeout_ms
    return member.classic.session_timeout_ms


def watch_revocation(state: State, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """Give a member its rebalance timeout for giving up what it has to give up, if anything."""
    if _must_give_up(member):
        until = Millis(now + member.rebalance_timeout_ms)
        state.deadlines.set((REVOCATION, group.id, member.id), until, member.epoch)


def end_revocation(state: State, group: ConsumerGroup, member: Member) -> None:
    """A record says what the member has: end the deadline, unless there is more to give up."""
    if not _must_give_up(member):
        state.deadlines.cancel((REVOCATION, group.id, member.id))


def await_join(state: State, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """A classic member is told to join again. To be told so once more gives it no more time."""
    key = (JOIN, group.id, member.id)
    if key not in state.deadlines:
        state.deadlines.set(key, Millis(now + member.rebalance_timeout_ms))


def await_sync(state: State, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """A classic member has joined, and asks for its assignment next."""
    state.deadlines.cancel((JOIN, group.id, member.id))
    until = Millis(now + member.rebalance_timeout_ms)
    state.deadlines.set((SYNC, group.id, member.id), until)


def end_sync(state: State, group: ConsumerGroup, member_id: MemberId) -> None:
    state.deadlines.cancel((SYNC, group.id, member_id))


def end_classic(state: State, group: ConsumerGroup, member_id: MemberId) -> None:
    """A record says that the member does not use the classic protocol any more."""
    state.deadlines.cancel((JOIN, group.id, member_id))
    end_sync(state, group, member_id)


def computation_timeout_ms(group: ConsumerGroup, member: Member) -> int:
    """The member's rebalance timeout, unless the broker's bound is shorter: that is how long a
    client may take for its records, often minutes, and the whole group waits for the computation.
    """
    return min(member.rebalance_timeout_ms, group.settings.computation_timeout_ms)


def watch_computation(state: State, group: ConsumerGroup, member: Member, now: Millis) -> None:
    """Give a member its time for computing an assignment that it is asked for."""
    until = Millis(now + computation_timeout_ms(group, member))
    state.deadlines.set((COMPUTATION, group.id), until, member.id)


def end_computation(state: State, group_id: GroupId) -> None:
    """Nobody computes for the group any more, and nobody's answer is waited for."""
    if state.computations.pop(group_id, None) is not None:
        state.deadlines.cancel((COMPUTATION, group_id))


def end(state: State, group: ConsumerGroup, member_id: MemberId) -> None:
    """A record says that the member has gone: forget its deadlines."""
    state.deadlines.cancel((SESSION, group.id, member_id))
    state.deadlines.cancel((REVOCATION, group.id, member_id))
    end_classic(state, group, member_id)


def _must_give_up(member: Member) -> bool:
    return (
        member.state is MemberState.UNREVOKED_PARTITIONS
        and member.classic is None
        and member.epoch != AWAY  # other brokers keep the state of a member that is away
    )
