# SPDX-License-Identifier: Apache-2.0
"""How far one member may go towards its target, one step at a time (KIP-848, "Assignment Process").

A member moves on its own. It does so by these rules alone:

- It *gives up* first. What it has and is not meant to have is moved to `revoking`, and the member
  stays at its epoch until a heartbeat no longer names any of it. Not naming a partition is the
  acknowledgement, so a heartbeat that never named it needs no round trip. Newer targets do not
  matter meanwhile, or each of them would give it more time.
- Then it *receives*: it goes to the epoch of the target and gets what is free. What somebody else
  still holds it waits for, in UNRELEASED_PARTITIONS; every heartbeat looks again.
- When nothing is missing it is STABLE.

Two owners are worse than none. That is why a partition counts as held while any other member has it
in `assigned` or `revoking`.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from kohort.assignors import Assignment
from kohort.coordinator.consumer.member import Held, Member, MemberState
from kohort.coordinator.consumer.target import Attachment
from kohort.errors import ApiError, ErrorCode
from kohort.terms import MemberId, TopicId

Owned = Mapping[TopicId, Collection[int]]


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go: to `target`, computed for `epoch`, as far as it is subscribed.

    `subscribed` holds the topics of its subscription as it is now; the target may be older
    (KAFKA-19431). The `attachment` of the target is the member's from that epoch on.
    """

    epoch: int
    target: Assignment
    subscribed: AbstractSet[TopicId]  # a pattern may name thousands
    attachment: Attachment | None = None


def step(
    member: Member,
    goal: Goal,
    *,
    owned: Owned | None,
    held: Mapping[TopicId, Mapping[int, MemberId]],
    resubscribed: bool = False,
) -> Member:
    """The member after one heartbeat, or itself when nothing may change.

    `owned` is what the member says it has, None when it says nothing; `held` tells who has what;
    `resubscribed` says that this heartbeat changed its subscription. Raises ApiError.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch != goal.epoch:
                return _advance(member, member.epoch, goal, owned, held)
            return _unsubscribe(member, goal, owned) if resubscribed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if owned is None or _names_any(owned, member.revoking):
                return _unsubscribe(member, goal, None) if resubscribed else member
            return _advance(member, member.epoch, goal, owned, held)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(member, member.epoch, goal, owned, held)
        case MemberState.UNKNOWN:
            if owned is None or any(owned.values()):
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"member {member.id} is in a state that a newer broker wrote, "
                    "it must abandon all its partitions and rejoin",
                )
            return _advance(member, goal.epoch, goal, owned, held)


def _advance(
    member: Member,
    epoch: int,
    goal: Goal,
    owned: Owned | None,
    held: Mapping[TopicId, Mapping[int, MemberId]],
) -> Member:
    target = {topic: set(goal.target[topic]) for topic in goal.target if topic in goal.subscribed}
    kept, to_revoke = _split(member.assigned, target)
    if to_revoke and (owned is None or _names_any(owned, to_revoke)):
        return _moved(member, epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
    waiting = False
    assigned = dict(kept)
    for topic, partitions in target.items():
        missing = partitions.difference(kept.get(topic, ()))
        free = _free(missing, held.get(topic, {}), member.id)
        waiting = waiting or len(free) < len(missing)
        if free:
            together = {**kept.get(topic, {}), **dict.fromkeys(free, goal.epoch)}
            assigned[topic] = dict(sorted(together.items()))
    state = MemberState.UNRELEASED_PARTITIONS if waiting else MemberState.STABLE
    moved = _moved(member, goal.epoch, state, assigned, {})
    if moved.attachment == goal.attachment:
        return moved
    return replace(moved, attachment=goal.attachment)


def _free(missing: set[int], held: Mapping[int, MemberId], member_id: MemberId) -> set[int]:
    """Partitions that nobody else holds. The member may get back what it has just given up."""
    return {index for index in missing if held.get(index, member_id) == member_id}


def _unsubscribe(member: Member, goal: Goal, owned: Owned | None) -> Member:
    """Take away the topics that it no longer reads, at its epoch and without a new target.

    It goes on giving up what it was giving up already.
    """
    kept = {topic: held for topic, held in member.assigned.items() if topic in goal.subscribed}
    if len(kept) == len(member.assigned):
        return member
    lost = {topic: held for topic, held in member.assigned.items() if topic not in kept}
    if owned is not None and not _names_any(owned, lost):
        return _moved(member, member.epoch, member.state, kept, member.revoking)
    revoking = dict(member.revoking)
    for topic, partitions in lost.items():
        revoking[topic] = dict(sorted({**revoking.get(topic, {}), **partitions}.items()))
    return _moved(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)


def _moved(
    member: Member, epoch: int, state: MemberState, assigned: Held, revoking: Held
) -> Member:
    """The epoch before is kept too: the answer that tells the new one may get lost. Who comes again
    at the new one has had that answer, and the epoch before counts no more.
    """
    moved = replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )
    return member if moved == member else moved


def _split(assigned: Held, target: Mapping[TopicId, Collection[int]]) -> tuple[Held, Held]:
    """The partitions that may stay, and those that have to go."""
    kept: Held = {}
    to_revoke: Held = {}
    for topic, partitions in assigned.items():
        wanted = target.get(topic, ())
        stay = {index: epoch for index, epoch in partitions.items() if index in wanted}
        if len(stay) < len(partitions):
            to_revoke[topic] = {
                index: epoch for index, epoch in partitions.items() if index not in wanted
            }
        if stay:
            kept[topic] = stay
    return kept, to_revoke


def _names_any(owned: Owned, partitions: Held) -> bool:
    return any(
        index in indices for topic, indices in owned.items() for index in partitions.get(topic, ())
    )
