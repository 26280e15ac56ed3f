# SPDX-License-Identifier: Apache-2.0
"""The course of a computation: it begins when a group needs an assignment by an assignor of its
members, one of them is asked at its heartbeats, and it ends with a target of a newer epoch.

Nothing here writes. A computation changes hands when its member goes, is late, or has the assignor
no more; whatever decides about that has raised the group's epoch, or is looked at each time.
"""

from dataclasses import replace

from kohort.coordinator.consumer import planning, timers
from kohort.coordinator.consumer.client_side.computation import Computation, fit
from kohort.coordinator.consumer.client_side.selection import offered_by
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Effects, GroupEvent
from kohort.terms import GroupId, MemberId, Millis

PREPARED_AT_MOST = 64 << 20  # bytes of an answer to Prepare
_OVERHEAD = 40  # bytes of a member in it, beside its texts and lists
TOO_LATE = "no member has computed in time"
NOBODY = "no member can compute"


def due_computation(
    state: State, group: ConsumerGroup, before: Member, member: Member, epoch: int, *, joins: bool
) -> Computation | None:
    """The computation that a group needs which is due at `epoch`, with `member` as a heartbeat
    leaves it; by that heartbeat it `joins`. None where the group uses an assignor of the broker.

    The member whose heartbeat finds the need is asked if it is fit, else the first one by id.
    """
    number = group.number or state.groups.made + 1  # of the group that this step makes
    known = state.computations.get(group.id)
    if known is not None and known.number != number:
        known = None
    own = known is not None and known.member_id == member.id
    begins_anew = own and joins
    if known is not None and known.epoch == epoch and _goes_on(group, known) and not begins_anew:
        return known  # before anybody walks over the group
    replaced = group.members.get(member.id)
    choice = group.choice_with((replaced,) if replaced else (), (member,))
    if choice.version is None:
        return None
    late = known.late if known is not None and known.epoch == epoch else ()
    reason = _new_reason(choice.name, before, member) or (0 if known is None else known.reason)
    judgement = Computation(number, epoch, choice.name, choice.version, None, late, reason=reason)
    too_large = _too_large(state, group, member, choice.name)
    if too_large:
        return replace(judgement, why=too_large)
    here = member if member.epoch > 0 else replace(member, epoch=max(group.target_epoch, 0))
    able = fit({**group.members, member.id: here}.values(), choice.name, late)
    if not able:
        return replace(judgement, why=TOO_LATE if late else NOBODY)
    if (
        known is not None
        and known.assignor == choice.name
        and known.member_id in able
        and not begins_anew
    ):
        return replace(known, epoch=epoch, version=choice.version, late=late, reason=reason)
    return replace(judgement, member_id=member.id if member.id in able else able[0])


def settle(
    state: State, group: ConsumerGroup, computation: Computation | None, member: Member, now: Millis
) -> bool:
    """Keep what was judged, once nothing refuses the step any more. Whether `member` is to be told
    that it computes; its time begins when it is told for the first time.
    """
    known = state.computations.get(group.id)
    if computation is None or computation.member_id is None:  # nearly always
        if known is not None:
            timers.end_computation(state, group.id)
        return False
    if known is not None and known.asked_at is not None and computation.asked_at is None:
        timers.end_computation(state, group.id)
    told = computation.member_id == member.id and member.epoch > 0
    if told and computation.asked_at is None:
        computation = replace(computation, asked_at=now)
        timers.watch_computation(state, group, member, now)
        state.counters.computations += 1
    state.computations[group.id] = computation
    return told


def outstanding(state: State, group: ConsumerGroup, member: Member) -> Computation:
    """The computation that a member was asked for and that is still waited for. Raises ApiError
    UNKNOWN_MEMBER_ID.
    """
    known = state.computations.get(group.id)
    if (
        known is not None
        and known.number == group.number
        and known.member_id == member.id
        and group.group_epoch > group.target_epoch
    ):
        now = due_computation(state, group, member, member, group.group_epoch, joins=False)
        if now is not None and now.member_id == member.id and now.asked_at is not None:
            return now
    raise ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member.id} of group {group.id} is not asked to compute an assignment.",
    )


def is_awaited(state: State, group: ConsumerGroup) -> bool:
    """Whether a member has been picked to compute the assignment of the group's epoch."""
    known = state.computations.get(group.id)
    return (
        known is not None
        and known.number == group.number
        and known.epoch == group.group_epoch
        and known.member_id is not None
    )


def overdue(state: State, _now: Millis, group_id: GroupId, member_id: MemberId) -> Effects:
    """A member was asked, and has not delivered in its time. It stays, and somebody else is asked
    at the next heartbeat.
    """
    group = state.groups.consumer(group_id)
    known = state.computations.get(group_id)
    if group is None:  # it was to be made by a step that the log had no room for
        timers.end_computation(state, group_id)
        return Effects()
    if known is None or known.member_id != member_id:
        return Effects()
    late = known.late if known.epoch == group.group_epoch else ()
    state.computations[group_id] = replace(
        known,
        epoch=group.group_epoch,
        member_id=None,
        late=(*late, member_id),
        asked_at=None,
        basis=None,
    )
    state.counters.computations_late += 1
    member = group.members.get(member_id)
    timeout_ms = 0 if member is None else timers.computation_timeout_ms(group, member)
    text = (
        f"member {member_id} has not computed the assignment of epoch {group.group_epoch} by "
        f"assignor {known.assignor} within {timeout_ms} ms"
    )
    return Effects(events=[GroupEvent(group_id, text)])


def _goes_on(group: ConsumerGroup, known: Computation) -> bool:
    """Whether the member that was picked is still there; a static one may have gone for a while."""
    member = None if known.member_id is None else group.members.get(known.member_id)
    return member is not None and member.epoch > 0 and group.settings.client_assignors


def _new_reason(assignor: str, before: Member, member: Member) -> int:
    """The reason that a heartbeat newly gives for an assignor, 0 for none."""
    said, now = offered_by(before).get(assignor), offered_by(member).get(assignor)
    if now is None or (said is not None and said.reason == now.reason):
        return 0
    return now.reason


def _too_large(state: State, group: ConsumerGroup, member: Member, assignor: str) -> str:
    """Why nobody can be asked about a group this large, empty where an answer has room for it."""
    given = planning.assignor_input(state, group, member)
    members = {**group.members, member.id: member}
    size = 0
    for member_id, subscription in given.members.items():
        offer = offered_by(members[member_id]).get(assignor)
        size += _OVERHEAD + 3 * len(member_id) + 16 * len(subscription.topics)
        size += sum(20 + 4 * len(partitions) for partitions in subscription.previous.values())
        size += 0 if offer is None else len(offer.metadata)
    size += sum(24 + 3 * len(state.topics.by_id[topic].name) for topic in given.partitions)
    if size <= PREPARED_AT_MOST:
        return ""
    return f"to describe the group takes {size} bytes, more than {PREPARED_AT_MOST}"
