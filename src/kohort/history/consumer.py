# SPDX-License-Identifier: Apache-2.0
"""Records of a consumer group (KIP-848), with a handler for each.

A coordinator writes what one request or one timer causes as a whole. The records that led to a new
epoch stand before the record of that epoch; those behind it are the members' answers to it.
"""

from kohort.history import classic, logged, outages, written
from kohort.history.commits import add_removal
from kohort.history.events import (
    AWAY,
    GIVES_UP,
    STABLE,
    ById,
    Computation,
    Current,
    Epoch,
    Expression,
    Member,
    Record,
    TargetEpoch,
)
from kohort.history.ownership import Holds, Moment, change
from kohort.history.removals import Gone, gone_with, judged, last_commit
from kohort.history.rows import AssignmentComputation, MemberRow, Who
from kohort.history.state import (
    Coming,
    ConsumerMember,
    EndedMember,
    Number,
    Place,
    Rebalance,
    Resolution,
    Seat,
    Subscriber,
)
from kohort.history.story import SESSION_TIMEOUT_MS, Step, Story


def on_epoch(story: Story, step: Step) -> None:
    """Type 3: a rebalance begins, or the group ends."""
    group, record = story.state.consumer, step.record
    story.leads_to(step)
    value = record.value if isinstance(record.value, Epoch) else None
    if step.begins:
        _begin(story, record, value)
    group.epoch_known = value is not None
    group.hash = None if value is None else value.metadata_hash
    if value is None:
        group.after_classic = False
        classic.end(story, record, ends_consumer=True)


def _begin(story: Story, record: Record, value: Epoch | None) -> None:
    group = story.state.consumer
    if group.begun is not None:
        story.rebalance(group.begun).ends = True
    group.begun = None
    if value is None:
        return
    group.begun = record.offset
    rebalance = story.rebalance(record.offset)
    rebalance.number = Number(
        record.at,
        value.epoch,
        value.metadata_hash,
        group.hash,
        group.epoch_known,
        len(group.members),
    )
    there = (_who(member_id, one.value) for member_id, one in group.members.items())
    written.note(rebalance, record.causes, there)
    epochs = range(value.epoch, value.epoch + 1)
    logged.note(story.state, rebalance, story.inputs.lines, epochs, (record.at, record.at))


def on_topics(story: Story, step: Step) -> None:
    """Type 4: the topics of the group, as brokers up to 4.0 write them."""
    to = story.leads_to(step)
    if to is not None:
        to.other_topics |= step.record.value is not None


def on_member(story: Story, step: Step) -> None:
    """Type 5: what a member says of itself, or the end of a member."""
    group, record = story.state.consumer, step.record
    member_id = record.key or ""
    to = story.leads_to(step)
    was = group.members.get(member_id)
    value = record.value if isinstance(record.value, Member) else None
    _describe(story, record, member_id, value)
    if value is None:
        if was is not None and to is not None:
            _remove(story, record, was, to)
        group.members.pop(member_id, None)
        seat = group.seats.get(member_id)
        if seat is not None and not seat.there:
            del group.seats[member_id]
        return
    who = _who(member_id, value)
    if was is None:
        group.coming.setdefault(member_id, []).append(
            Coming(record.offset, who, None if to is None else to.offset)
        )
        if to is not None:
            to.awaits.append(record.offset)
    else:
        outages.alive(story.state, member_id)
        if to is not None:
            _compare(to, who, value, was.value)
    if value.subscribed_topic_regex:
        group.subscriber = Subscriber(who, value.subscribed_topic_regex, record.offset)
    seen = None if was is None else was.seen_at
    group.members[member_id] = ConsumerMember(value, _later(seen, record.at))


def _who(member_id: str, value: Member) -> Who:
    return Who(member_id, value.client_id, value.instance_id, value.client_host)


def _later(known: int | None, other: int | None) -> int | None:
    return max((at for at in (known, other) if at is not None), default=None)


def _compare(to: Rebalance, who: Who, value: Member, was: Member) -> None:
    names, before = value.subscribed_topic_names, was.subscribed_topic_names
    others = names is not None and before is not None and sorted(names) != sorted(before)
    if others or value.subscribed_topic_regex != was.subscribed_topic_regex:
        to.resubscribed.append(who)
    if value.server_assignor != was.server_assignor:
        to.revoted.append(who)


def _describe(story: Story, record: Record, member_id: str, value: Member | None) -> None:
    group, ended = story.state.consumer, story.state.classic.ended
    row = group.rows.pop(member_id, None)
    if row is not None:
        row.valid_to, row.to_offset = record.at, record.offset
        story.closed.append(row)
        if ended and ended[0].row.valid_to != record.at:
            ended.clear()
        committed_at = last_commit(story, gone_with(story, row))
        ended.append(EndedMember(row, committed_at, record.causes))
    if value is None:
        return
    names = value.subscribed_topic_names
    is_classic = value.classic_protocols is not None
    wish: list[str | None] | None = [value.server_assignor] if value.server_assignor else None
    offered: list[str | None] = [*(value.classic_protocols or ())]
    group.rows[member_id] = MemberRow(
        "consumer",
        member_id,
        value.instance_id,
        value.client_id,
        value.client_host,
        value.rack_id,
        "classic" if is_classic else "consumer",
        offered if is_classic else wish,
        None if names is None else sorted(names),
        value.subscribed_topic_regex or None,
        value.classic_session_timeout_ms,
        value.rebalance_timeout_ms,
        None,
        record.at,
        record.offset,
    )


def _remove(story: Story, record: Record, was: ConsumerMember, to: Rebalance) -> None:
    """A member was removed together with a new epoch."""
    group, value, member_id = story.state.consumer, was.value, record.key or ""
    is_classic = value.classic_protocols is not None
    known = story.inputs.session_timeout_ms
    session_ms = value.classic_session_timeout_ms
    if session_ms is None:
        session_ms = SESSION_TIMEOUT_MS if known is None else known
    seat = group.seats.get(member_id)
    gives_up = seat is not None and seat.state == GIVES_UP
    waits_since = None
    if is_classic:
        waits_since = was.seen_at
    elif seat is not None and gives_up:
        waits_since = seat.at
    gone = Gone(
        _who(member_id, value),
        record.at,
        record.at,
        record.offset,
        was.seen_at,
        session_ms,
        not is_classic and known is None,
        value.rebalance_timeout_ms,
        waits_since=waits_since,
        waits_exactly=gives_up and not is_classic,
        away=seat is not None and seat.member_epoch == AWAY,
    )
    removal = judged(story, gone, last_commit(story, gone))
    written.settle(removal, record.causes)
    add_removal(story, to, removal)


def on_target_epoch(story: Story, step: Step) -> None:
    """Type 6: the target of an epoch is there."""
    value, rebalance = step.record.value, _begun(story)
    story.leads_to(step)
    if (
        rebalance is not None
        and rebalance.number is not None
        and isinstance(value, TargetEpoch)
        and value.assignment_epoch == rebalance.number.epoch
    ):
        times = (rebalance.assigned_at, step.record.at)
        rebalance.assigned_at = min((at for at in times if at is not None), default=None)
        if value.computation is not None and rebalance.computed is None:
            rebalance.computed = _computed(value.computation)


def _computed(value: Computation) -> AssignmentComputation:
    if value.member_id is None:
        return AssignmentComputation(value.assignor, None, None, None, None, value.why or None)
    took = value.took_ms / 1000
    return AssignmentComputation(
        value.assignor, value.member_id, took, value.error, value.reason, None
    )


def _begun(story: Story) -> Rebalance | None:
    begun = story.state.consumer.begun
    return None if begun is None else story.rebalance(begun)


def on_target(story: Story, step: Step) -> None:
    """Type 7: the partitions that a member shall have. The ones that it has tell more."""
    story.leads_to(step)


def on_current(story: Story, step: Step) -> None:
    """Type 8: the partitions that a member has."""
    group, record = story.state.consumer, step.record
    member_id = record.key or ""
    story.leads_to(step)
    value = record.value if isinstance(record.value, Current) else None
    _come(story, member_id, value)
    had = group.seats.get(member_id)
    _progress(story, record.at, value, had)
    away = value is not None and value.member_epoch == AWAY
    was_away = had is not None and had.there and had.member_epoch == AWAY
    takes = not away and (value is not None or step.leads)
    gives = value is not None and value.member_epoch > 0 and not step.upgrading and not was_away
    moment = Moment(
        "consumer",
        record.at,
        record.offset,
        step.rebalance if gives else None,
        step.rebalance if takes else None,
        _longest_us(story, member_id),
    )
    change(story, moment, _holds(member_id, value, away=away))
    if value is None:
        if had is not None:
            had.there = False
        return
    group.seats[member_id] = Seat(record.at, value.member_epoch, value.state)
    described = group.members.get(member_id)
    if described is not None and not away:
        described.seen_at = _later(described.seen_at, record.at)
        outages.alive(story.state, member_id)


def _longest_us(story: Story, member_id: str) -> int:
    """How long a member may be silent before it is removed."""
    described = story.state.consumer.members.get(member_id)
    session_ms, rebalance_ms = story.inputs.session_timeout_ms, -1
    if described is not None:
        session_ms = described.value.classic_session_timeout_ms or session_ms
        rebalance_ms = described.value.rebalance_timeout_ms
    return longest_us(SESSION_TIMEOUT_MS if session_ms is None else session_ms, rebalance_ms)


def longest_us(session_ms: int, rebalance_ms: int) -> int:
    """How long a member may be silent before it is removed, with time for a rebalance."""
    return (session_ms + max(rebalance_ms, 0) + 5000) * 1000


def _come(story: Story, member_id: str, value: Current | None) -> None:
    """Members that were not there before have joined if their first epoch is the first. Otherwise
    the record before may be hidden, and a change would look the same.
    """
    group = story.state.consumer
    waiting = group.coming.pop(member_id, ())
    if value is None or value.previous_member_epoch != 0:
        return
    for newcomer in waiting:
        if newcomer.rebalance is not None and newcomer.rebalance in story.state.rebalances:
            story.state.rebalances[newcomer.rebalance].came.append(newcomer.who)
        if group.subscriber is not None and group.subscriber.told_at == newcomer.offset:
            group.subscriber.comes = True
        for rebalance in story.state.rebalances.values():
            for resolution in rebalance.resolved:
                resolution.comes |= resolution.told_at == newcomer.offset


def _progress(story: Story, at: int | None, value: Current | None, had: Seat | None) -> None:
    """Members that have reached the epoch of the group and have nothing left to do. The rebalance
    ends with the last of them.
    """
    rebalance = _begun(story)
    if rebalance is None or rebalance.number is None:
        return
    epoch = rebalance.number.epoch
    there = value is not None and value.state == STABLE and value.member_epoch == epoch
    was = had is not None and had.there and had.state == STABLE and had.member_epoch == epoch
    rebalance.arrived += there - was
    members = len(story.state.consumer.members)
    if value is not None and rebalance.done_at is None and rebalance.arrived == members:
        rebalance.done_at = at


def _holds(member_id: str, value: Current | None, *, away: bool) -> Holds:
    if value is None:
        return Holds(member_id, {}, 0)
    places = dict.fromkeys(_places(value.assigned_partitions), False)
    places |= dict.fromkeys(_places(value.partitions_pending_revocation), True)
    return Holds(member_id, places, value.member_epoch, away)


def _places(topics: list[ById] | None) -> list[Place]:
    return [(topic.topic_id, index) for topic in topics or () for index in topic.partitions]


def on_expression(story: Story, step: Step) -> None:
    """Type 16: the topics that a regular expression matches."""
    group, record = story.state.consumer, step.record
    expression = record.key or ""
    to = story.leads_to(step)
    was = group.expressions.pop(expression, None)
    if not isinstance(record.value, Expression):
        return
    now = group.expressions[expression] = record.value
    if to is None:
        return
    topics = now.topics
    if was is None:
        subscriber = group.subscriber
        if subscriber is None or subscriber.expression != expression:
            subscriber = None
        resolution = Resolution(expression, None if topics is None else len(topics))
        if subscriber is not None:
            resolution.who, resolution.comes = subscriber.who, subscriber.comes
            resolution.told_at = subscriber.told_at
            to.awaits.append(subscriber.told_at)
        to.resolved.append(resolution)
    elif topics is not None and was.topics is not None:
        to.matches_others |= sorted(topics) != sorted(was.topics)
