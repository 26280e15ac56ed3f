# SPDX-License-Identifier: Apache-2.0
"""What follows when a member has said something about itself, in either protocol (KIP-848).

Has the member changed? Then the group may need a new epoch. Is the target older than the group?
Then compute it. How far may this member go towards it? Each question yields records, in this order.
"""

from typing import NamedTuple

from kohort.coordinator.classic.records import size_of
from kohort.coordinator.consumer import expressions, metadata, planning, reconcile, rights, timers
from kohort.coordinator.consumer.client_side import choosing
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.reconcile import Owned
from kohort.coordinator.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    regex_tombstone,
)
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client, Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.records.codec import Record
from kohort.terms import Millis


class Step(NamedTuple):
    """What a member's word leads to: `effects` without the answer, and the member as it is then.
    With `computes` it is asked to compute the assignment of the group.
    """

    effects: Effects
    member: Member
    computes: bool


def step(
    state: State,
    group: ConsumerGroup,
    before: Member,
    member: Member,
    *,
    owned: Owned | None,
    client: Client,
    now: Millis,
    joins: bool,
) -> Step:
    """One step of a member that was as `before` and describes itself as `member`. One that `joins`
    may be new to the group.

    `owned` is what the member says it has, None when it says nothing. Raises ApiError.
    """
    known = group.members.get(before.id)
    effects = Effects()
    records = effects.records
    if known is None or member != before:
        records.append(checked_member_record(state, group, member))
    records += _dropped_expression(group, before, member)
    epoch, metadata_hash = _epoch(state, group, known, before, member)
    if epoch > group.group_epoch:
        records.append(epoch_record(group.id, epoch, metadata_hash))

    computation, planned = None, None
    if (group.offering or member.client_assignors) and planning.is_due(group, epoch, now):
        computation = choosing.due_computation(state, group, before, member, epoch, joins=joins)
    if computation is None or computation.member_id is None:  # no member computes
        why = "" if computation is None else computation.why
        planned = planning.plan(state, group, member, epoch, now, why)
        effects.tasks += planning.asked(state, group, member, epoch, now, why)
    if planned is None:
        target_epoch, target = group.target_epoch, group.targets.get(member.id, NOTHING)
    else:
        target_epoch, target = planned.epoch, planned.of_member
        records += planned.records

    subscribed = frozenset(planning.topic_ids(rights.names_of(state, group, member), state.topics))
    goal = reconcile.Goal(target_epoch, target.partitions, subscribed, target.attachment)
    resubscribed = _subscription(before) != _subscription(member)
    moved = reconcile.step(member, goal, owned=owned, held=group.held, resubscribed=resubscribed)
    if moved is not member:
        records.append(current_record(group.id, moved))

    # From here on nothing refuses, so what a reload forgets may be touched.
    if epoch == group.group_epoch:  # else the record of the epoch ends it, once it is written
        group.metadata_stale = False
    computes = choosing.settle(state, group, computation, moved, now)
    timers.renew(state, group, moved, now)
    if moved is not member or before.classic is not None:
        timers.watch_revocation(state, group, moved, now)
    if known is None:
        text = f"member {moved.id} joins"
        effects.events.append(GroupEvent(group.id, text, Cause.JOIN, moved.id))
    elif epoch > group.group_epoch:
        effects.events.append(_why(group, before, member))
    effects.tasks += expressions.asked(state, group, before, member, client)
    return Step(effects, moved, computes)


def look_at_topics(state: State, group: ConsumerGroup) -> Effects:
    """Raise the epoch where the group's topics have changed since somebody looked. A member of the
    classic protocol does no more than that until it joins again.
    """
    if not group.metadata_stale:
        return Effects()
    metadata_hash = metadata.hash_of(group.topic_names((), ()), state.topics)
    if metadata_hash == group.metadata_hash:
        group.metadata_stale = False
        return Effects()
    record = epoch_record(group.id, group.group_epoch + 1, metadata_hash)
    return Effects([record], events=[_topics_changed(group)])


def checked_member_record(state: State, group: ConsumerGroup, member: Member) -> Record:
    """What a member has said, for the log. Raises ApiError MESSAGE_TOO_LARGE where no record has
    room for it: later, a computation or a place would have changed hands already.
    """
    record = member_record(group.id, member)
    size, limit = size_of(record), state.record_limit()
    if size > limit:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"what the member says takes {size} bytes, expected at most {limit}"
            " (max.message.bytes of the topic of groups)",
        )
    return record


def _subscription(member: Member) -> tuple[tuple[str, ...], str]:
    return member.subscribed_names, member.subscribed_regex


def _dropped_expression(group: ConsumerGroup, before: Member, member: Member) -> list[Record]:
    """Forget the topics of an expression that has lost its last subscriber."""
    expression = before.subscribed_regex
    if (
        not expression
        or expression == member.subscribed_regex
        or expression not in group.resolved
        or group.subscribers_of(expression) > 1
    ):
        return []
    return [regex_tombstone(group.id, expression)]


def _epoch(
    state: State, group: ConsumerGroup, known: Member | None, before: Member, member: Member
) -> tuple[int, int]:
    """The group's epoch after this heartbeat, and the hash over the topics that it then reads.

    A new epoch is due when a subscription has changed, when a member has changed anything about the
    assignors that it offers, when another assignor is chosen (KAFKA-20434), or when the topics
    themselves have changed.
    """
    leaving = () if known is None else (known,)
    changed = _reads_other_topics(group, before, member)
    changed = changed or before.client_assignors != member.client_assignors
    if not changed and group.members and _may_change_choice(group, known, before, member):
        changed = group.choice != group.choice_with(leaving, (member,))
    if not changed and not group.metadata_stale:
        return group.group_epoch, group.metadata_hash
    names = group.topic_names(leaving, (member,))
    metadata_hash = metadata.hash_of(names, state.topics)
    if not changed and metadata_hash == group.metadata_hash:
        return group.group_epoch, metadata_hash
    return group.group_epoch + 1, metadata_hash


def _may_change_choice(
    group: ConsumerGroup, known: Member | None, before: Member, member: Member
) -> bool:
    """Whether the choice of an assignor has to be looked at: who joins must have it, too."""
    if before.server_assignor != member.server_assignor:
        return True
    return bool(group.offering) and (known is None or before.classic != member.classic)


def _why(group: ConsumerGroup, before: Member, member: Member) -> GroupEvent:
    """Why the heartbeat of a member that was there raises the epoch."""
    if _reads_other_topics(group, before, member):
        text, cause = f"member {member.id} reads other topics", Cause.SUBSCRIPTION
    elif before.server_assignor != member.server_assignor:
        text = f"member {member.id} asks for assignor {member.server_assignor}"
        cause = Cause.ASSIGNOR
    elif before.client_assignors != member.client_assignors:
        text = f"member {member.id} says other things about its assignors{_reasons(member)}"
        cause = Cause.ASSIGNOR
    else:
        return _topics_changed(group)
    return GroupEvent(group.id, text, cause, member.id)


def _reasons(member: Member) -> str:
    """The reasons that a member gives, by assignor."""
    given = ", ".join(
        f"{assignor.name} {assignor.reason}"
        for assignor in member.client_assignors
        if assignor.reason
    )
    return f": reason {given}" if given else ""


def _reads_other_topics(group: ConsumerGroup, before: Member, member: Member) -> bool:
    """An expression counts once it is resolved, or once it is taken back."""
    if before.subscribed_names != member.subscribed_names:
        return True
    expression = member.subscribed_regex
    return before.subscribed_regex != expression and (
        not expression or expression in group.resolved
    )


def _topics_changed(group: ConsumerGroup) -> GroupEvent:
    return GroupEvent(group.id, "its topics have changed", Cause.TOPICS)
