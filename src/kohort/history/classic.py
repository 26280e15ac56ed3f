# SPDX-License-Identifier: Apache-2.0
"""The records of a classic group: one for each generation, and nothing in between.

Some causes can be proven, because they always lead to a rebalance: a new member, a topic that was
not subscribed before, a partition that did not exist before.
"""

from collections.abc import Iterable

from kohort.history import logged, outages, written
from kohort.history.commits import LONGEST_US, add_removal
from kohort.history.events import ByName, ClassicMember, Generation, Record
from kohort.history.ownership import Holds, Moment, gain, lose
from kohort.history.removals import Gone, gone_with, judged, last_commit
from kohort.history.rows import (
    ASSIGNOR_CHANGE,
    FOLLOW_UP,
    JOIN,
    METADATA_CHANGE,
    MIGRATION,
    SUBSCRIPTION_CHANGE,
    MemberRow,
    Who,
    null_first,
)
from kohort.history.state import ClassicGeneration, ClassicGroup, NamedPlace, Rebalance
from kohort.history.story import Step, Story

Members = list[ClassicMember]


def on_generation(story: Story, step: Step) -> None:
    """Type 2: a generation, or the end of a classic group."""
    state, record = story.state, step.record
    to = story.leads_to(step)
    if not isinstance(record.value, Generation):
        if to is not None and state.consumer.after_classic:
            to.succeeds_classic = True
        state.consumer.after_classic = False
        end(story, record, ends_consumer=False)
        return
    state.consumer.after_classic = True
    value, prior = record.value, state.classic
    follows = (
        prior.ends_consumer
        and prior.at is not None
        and prior.at == record.at
        and prior.offset == record.offset - 1
    )
    is_new = prior.value is None or prior.value.generation != value.generation
    converts = follows and bool(value.members)
    rebalance = None
    if value.generation > 0 and is_new and not converts:
        rebalance = story.rebalance(record.offset, "classic")
        rebalance.ends = True
    _describe(story, record, value)
    _own(story, record, value, rebalance)
    if rebalance is not None:
        _compare(story, record, value, rebalance)
    _next(story, record, value, starts_over=follows)


def end(story: Story, record: Record, *, ends_consumer: bool) -> None:
    """The group has ended, or is no longer a classic one."""
    _describe(story, record, None)
    _own(story, record, None, None)
    _next(story, record, None, ends_consumer=ends_consumer)


def _next(
    story: Story,
    record: Record,
    value: Generation | None,
    *,
    ends_consumer: bool = False,
    starts_over: bool = False,
) -> None:
    group = story.state.classic
    group.offset, group.at, group.value = record.offset, record.at, value
    group.ends_consumer, group.starts_over = ends_consumer, starts_over


def _members(value: Generation | None) -> Members:
    return [] if value is None else value.members or []


def _who(member: ClassicMember) -> Who:
    return Who(member.member_id, member.client_id, member.group_instance_id, member.client_host)


def _describe(story: Story, record: Record, value: Generation | None) -> None:
    """A row goes on for as long as the member is there and does not change."""
    rows = story.state.classic.rows
    said = (
        {}
        if value is None
        else {member.member_id: _row(member, value, record) for member in _members(value)}
    )
    for member_id, row in list(rows.items()):
        now = said.get(member_id)
        if now is not None and _same(row, now):
            if record.at is not None and row.valid_from is not None:
                row.valid_from = min(row.valid_from, record.at)
            del said[member_id]
            continue
        row.valid_to, row.to_offset = record.at, record.offset
        story.closed.append(rows.pop(member_id))
    rows.update(said)


def _row(member: ClassicMember, value: Generation, record: Record) -> MemberRow:
    topics = member.subscribed_topics
    return MemberRow(
        "classic",
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rack_id,
        "classic",
        [value.protocol],
        None if topics is None else sorted(topics),
        None,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        value.leader == member.member_id,
        record.at,
        record.offset,
    )


def _same(row: MemberRow, now: MemberRow) -> bool:
    bounds = ("valid_from", "from_offset")
    return all(
        getattr(row, name) == getattr(now, name)
        for name in MemberRow.__struct_fields__
        if name not in bounds
    )


def _own(
    story: Story, record: Record, value: Generation | None, rebalance: Rebalance | None
) -> None:
    by = None if rebalance is None else rebalance.offset
    generation = 0 if value is None else value.generation
    given = {
        member.member_id: dict.fromkeys(_places(member.assigned_partitions), False)
        for member in _members(value)
    }
    was = {member.member_id: member for member in _members(story.state.classic.value)}
    for member_id in list(story.state.classic_holdings):
        member = was.get(member_id)
        longest = LONGEST_US if member is None else _longest_us(member)
        moment = Moment("classic", record.at, record.offset, by, by, longest)
        lose(story, moment, Holds(member_id, given.get(member_id, {}), generation))
    moment = Moment("classic", record.at, record.offset, by, by)
    for member_id, places in given.items():
        gain(story, moment, Holds(member_id, places, generation))


def _longest_us(member: ClassicMember) -> int:
    timeouts = member.session_timeout_ms + max(member.rebalance_timeout_ms, 0) + 5000
    return timeouts * 1000


def _places(topics: Iterable[ByName] | None) -> list[NamedPlace]:
    return [(topic.topic, index) for topic in topics or () for index in topic.partitions]


def _without(members: Members, others: Members) -> Members:
    """Members that are not among others. A static member in the place of another counts as the
    same.
    """
    ids = {member.member_id for member in others}
    instances = {member.group_instance_id for member in others} - {None}
    return [
        member
        for member in members
        if member.member_id not in ids and member.group_instance_id not in instances
    ]


def _compare(story: Story, record: Record, value: Generation, rebalance: Rebalance) -> None:
    """Compares with the generation before. Without one there is nothing to compare with, unless
    this is the first.
    """
    prior = story.state.classic
    known = prior.value is not None or value.generation == 1
    now, was = _members(value), _members(prior.value)
    times = (value.current_state_timestamp, record.at)
    joined_by = min((at for at in times if at is not None), default=None)
    came = _without(now, was) if known else []
    for member in now:
        outages.alive(story.state, member.member_id)
    _remove(story, record, rebalance, _without(was, now), joined_by)
    if prior.starts_over:
        _not_converted(story, rebalance, was)
    before = {member.member_id: member for member in was}
    resubscribed = [member for member in now if _resubscribes(member, before.get(member.member_id))]
    rebalance.compared = ClassicGeneration(
        value.generation,
        len(now),
        record.at,
        prior.at,
        joined_by,
        [],
        [],
        sorted(map(_who, came), key=null_first),
        sorted(map(_who, resubscribed), key=null_first),
    )
    _explain(rebalance, prior, value, known=known, came=came, resubscribed=resubscribed)
    written.note(rebalance, record.causes, map(_who, now))
    numbers = _generations(prior, value)
    logged.note(story.state, rebalance, story.inputs.lines, numbers, (prior.at, joined_by))
    if FOLLOW_UP in rebalance.compared.proven and not resubscribed:
        written.without_follow_up(rebalance)


def _generations(prior: ClassicGroup, value: Generation) -> range:
    """This generation, and those before it that were never written."""
    first = value.generation
    if prior.value is not None:
        first = min(prior.value.generation + 1, first)
    return range(first, value.generation + 1)


def _resubscribes(member: ClassicMember, before: ClassicMember | None) -> bool:
    if before is None or member.subscribed_topics is None or before.subscribed_topics is None:
        return False
    return sorted(member.subscribed_topics) != sorted(before.subscribed_topics)


def _remove(
    story: Story, record: Record, rebalance: Rebalance, went: Members, joined_by: int | None
) -> None:
    """Members that are no longer in the generation. Their sessions began anew when the generation
    before had been joined; a commit prolongs them.
    """
    prior = story.state.classic
    began = prior.at
    if prior.value is not None and prior.value.current_state_timestamp is not None:
        began = prior.value.current_state_timestamp
    for member in went:
        gone = Gone(
            _who(member),
            joined_by,
            record.at,
            record.offset,
            began,
            member.session_timeout_ms,
            False,
            member.rebalance_timeout_ms,
            commits_prolong=True,
            waits_since=began,
        )
        add_removal(story, rebalance, judged(story, gone, last_commit(story, gone)))


def _not_converted(story: Story, rebalance: Rebalance, was: Members) -> None:
    """Members of the converted consumer group that are not in the classic one: the last member that
    spoke the consumer protocol. Its end was the reason for the conversion.
    """
    ids = {member.member_id for member in was}
    instances = {member.group_instance_id for member in was} - {None}
    for ended in story.state.classic.ended:
        row = ended.row
        if row.valid_to is None or row.valid_to != story.state.classic.at:
            continue
        if row.member_id not in ids and row.group_instance_id not in instances:
            gone = gone_with(story, row)
            removal = judged(story, gone, ended.committed_at)
            written.note_end(rebalance, removal, ended.causes)
            add_removal(story, rebalance, removal)


def _explain(
    rebalance: Rebalance,
    prior: ClassicGroup,
    value: Generation,
    *,
    known: bool,
    came: Members,
    resubscribed: Members,
) -> None:
    """Name the causes, and the facts that prove them."""
    assert rebalance.compared is not None
    now, was = _members(value), _members(prior.value)
    grown, lost, withheld = _grown(now, was), _lost(now, was), _withheld(now, was)
    protocol = None if prior.value is None else prior.value.protocol
    other = None not in (protocol, value.protocol) and protocol != value.protocol
    proven = {
        MIGRATION: prior.starts_over,
        SUBSCRIPTION_CHANGE: resubscribed,
        ASSIGNOR_CHANGE: other,
        JOIN: came,
        METADATA_CHANGE: grown or lost,
        FOLLOW_UP: withheld,
    }
    rebalance.compared.proven = [name for name, is_so in proven.items() if is_so]
    nothing = not rebalance.compared.proven and not rebalance.removals
    facts = {
        f"{_names(came)} joined": came,
        f"{_names(resubscribed)} changed the subscription": resubscribed,
        f"{protocol} was replaced by {value.protocol}": other,
        f"{grown} partitions that were not there": grown,
        f"{lost} partitions that are not there any more": lost,
        f"{withheld} partitions that the generation before had left for this one": withheld,
        "a consumer group was converted": prior.starts_over,
        "the log does not have the generation before": not known,
        "members and subscriptions are those of the generation before": known and nothing,
    }
    rebalance.compared.facts = [fact for fact, is_so in facts.items() if is_so]


def _names(members: Members) -> str:
    return ", ".join(who.in_words for who in sorted(map(_who, members), key=null_first))


def _all(members: Members, name: str) -> list[NamedPlace]:
    return [place for member in members for place in _places(getattr(member, name))]


def _grown(now: Members, was: Members) -> int:
    """How many partitions are new, of topics that were read before: beyond all that any member had
    or claimed.

    If a topic had its partitions from 0 to some number, a larger number is new. Assignors hand out
    all partitions, except those that a cooperative one withholds until their owner has given them
    up.
    """
    seen = {*_all(was, "assigned_partitions"), *_all(was, "owned_partitions")}
    read = {topic for member in was for topic in member.subscribed_topics or ()}
    highest: dict[str, int] = {}
    for topic, index in seen:
        highest[topic] = max(index, highest.get(topic, index))
    has = {*_all(now, "assigned_partitions")} - seen
    return sum(topic in read and index > highest.get(topic, -1) for topic, index in has)


def _lost(now: Members, was: Members) -> int:
    """How many partitions nobody has or claims any more, of topics that are still read: they were
    deleted.
    """
    there = {*_all(now, "assigned_partitions"), *_all(now, "owned_partitions")}
    topics = {topic for topic, _ in there}
    reads = {topic for member in now for topic in member.subscribed_topics or ()}
    had = _all(was, "assigned_partitions")
    return sum(topic in reads and topic not in topics for topic, _ in had) if now else 0


def _withheld(now: Members, was: Members) -> int:
    """How many partitions have an owner now that members claimed in the generation before, where
    nobody was given them (KIP-429).
    """
    had, claimed = _all(was, "assigned_partitions"), _all(was, "owned_partitions")
    return len(({*claimed} - {*had}) & {*_all(now, "assigned_partitions")})
