# SPDX-License-Identifier: Apache-2.0
"""Subscriptions by regular expression: when they are resolved, and what follows (KIP-848).

Resolving is a background task: it is done beside the shard, for all expressions of a group at once.
A group asks for it when an expression is new, when the cluster has a new topic, when its log has
been read, and now and then. What comes back is written, and a group that reads other topics than
before gets a new epoch. Until then an expression names what it named before, or nothing.

Unlike Kafka, which lets ten seconds pass after a resolution, the next one may begin at once.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass

from kohort import expressions
from kohort.coordinator.consumer import metadata, planning, rights
from kohort.coordinator.consumer.group import ConsumerGroup, View
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.records import epoch_record, regex_record
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import (
    BackgroundTask,
    Call,
    Client,
    Continuation,
    Effects,
    GroupEvent,
)
from kohort.machines.topics import Topics
from kohort.records.causes import Cause
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

REFRESH = "consumer expressions"
GROUPS_AT_ONCE = 100  # that ask for a background task in one step
SETTLING_MS = 1000  # from a change of the rules to the resolution that obeys them
AGAIN_MS = 30_000  # from a resolution that has failed to the next one, at most
REFUSED_MOST = 1000  # refused expressions that are remembered, so that each is told once
_SHOWN = 100  # characters of an expression, in a line of the log
_OVERHEAD = 200  # bytes of a record beside its topics, the expression and the group id

Resolved = dict[str, tuple[str, ...]]
"""Topics by expression."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a background task is about: it looks at `topics`. `asker` is the member whose heartbeat
    has asked for it, with its client; the group may have been made since.
    """

    group_id: GroupId
    topics: Topics
    asker: tuple[MemberId, Client] | None


class ExpressionRefusedError(ApiError):
    """`why` is the reason alone."""

    def __init__(self, code: ErrorCode, message: str, why: str = "") -> None:
        super().__init__(code, message)
        self.why = why


def check(group: ConsumerGroup, expression: str | None) -> None:
    """Raises ExpressionRefusedError for one that is new to the group and cannot be read."""
    if not expression or group.subscribers_of(expression):
        return
    missing = expressions.unavailable_or_none()
    if missing is not None:
        raise ExpressionRefusedError(
            ErrorCode.INVALID_REQUEST, f"SubscribedTopicRegex {expression!r}: {missing}", missing
        )
    try:
        expressions.check(expression)
    except expressions.InvalidExpression as error:
        raise ExpressionRefusedError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}.",
            str(error),
        ) from error


def refused(
    state: State, call: Call[ConsumerGroupHeartbeatRequest], error: ExpressionRefusedError
) -> list[GroupEvent]:
    """What to tell of a refusal, for clients may keep the reason to themselves: once for each group
    and expression, as far as these are remembered.
    """
    group_id = GroupId(call.request.group_id)
    expression = (call.request.subscribed_topic_regex or "")[:_SHOWN]
    told = state.refused_expressions
    if (group_id, expression) in told:
        return []
    if len(told) >= REFUSED_MOST:
        del told[next(iter(told))]
    told[group_id, expression] = None
    text = f"client {call.client.id} subscribes by the pattern '{expression}', which is refused"
    return [GroupEvent(group_id, f"{text}: {error.why}")]


def asked(
    state: State, group: ConsumerGroup, before: Member, member: Member, client: Client
) -> list[BackgroundTask]:
    """What a heartbeat asks for, with `member` as it leaves it.

    One that replaces an expression asks for nothing: the next one does. As with Kafka, the member
    gives up the old topics before it hears of new ones.
    """
    expression = member.subscribed_regex
    known = expression in group.resolved and rights.is_known(state, group, member)
    new = bool(expression) and not known
    if new and expression != before.subscribed_regex and before.subscribed_regex in group.resolved:
        return []
    if (not new and not group.expressions_stale) or group.asks_rights:
        return []
    group.has_asked = True
    return _tasks(state, group, (expression,) if new else (), asker=(member.id, client))


def topics_changed(
    state: State, before: Topics, changed: Iterable[str], now: Millis
) -> Iterator[Effects]:
    """New topics: every group with an expression looks at them. Other rights: it does so a little
    later, for rules are often changed by one request after the other.
    """
    if state.rights is not None and state.rights.number != state.rights_number:
        state.rights_number = state.rights.number
        _look_soon(state, Millis(now + SETTLING_MS))
    after = state.topics.by_name
    if not any(name in after and name not in before.by_name for name in changed):
        return
    tasks: list[BackgroundTask] = []
    for group in state.groups.all_consumer():
        if group.expressions:
            group.expressions_stale = True
            tasks += _tasks(state, group)
            if len(tasks) >= GROUPS_AT_ONCE:
                yield Effects(tasks=tasks)
                tasks = []
    if tasks:
        yield Effects(tasks=tasks)


def _look_soon(state: State, at: Millis) -> None:
    for group in state.groups.all_consumer():
        if group.expressions:
            due = state.deadlines.at((REFRESH, group.id))
            if due is None or due > at:
                state.deadlines.set((REFRESH, group.id), at)


def refresh(state: State, _now: Millis, group_id: GroupId) -> Effects:
    """The topics were found long ago: look at all of them again."""
    group = state.groups.consumer(group_id)
    if group is None or not group.expressions:
        return Effects()
    group.looked_at = None
    group.expressions_stale = True
    return Effects(tasks=_tasks(state, group))


def start(group: ConsumerGroup) -> None:
    """The log has been read: there may be topics that it does not know of."""
    group.looked_at = None
    group.expressions_stale = bool(group.expressions)


def finished(
    state: State, task: BackgroundTask, outcome: Resolved | Exception, now: Millis
) -> Effects:
    """Write what was found, and raise the epoch of a group that reads other topics by it. Under
    rules of access this may take more steps.
    """
    about: Resolution = task.about
    group = state.groups.consumer(about.group_id)
    if group is None or not group.expressions:
        return Effects()
    group.expressions_stale = False
    group.has_asked = True
    if about.asker is not None:
        rights.hear_of_new(state, group, *about.asker)
    interval_ms = group.settings.regex_refresh_interval_ms
    if isinstance(outcome, Exception):  # its members may have no topics yet
        interval_ms = min(interval_ms, AGAIN_MS)
    state.deadlines.set((REFRESH, group.id), Millis(now + interval_ms))
    if isinstance(outcome, Exception):
        rights.give_up(state, group)
        text = f"its regular expressions cannot be resolved: {outcome}"
        return Effects(warnings=[f"group {group.id}: {text}"])
    if state.rights is None:
        return _taken(state, about, outcome, {}, now)
    if group.asks_rights:  # what comes of that regards all that has happened meanwhile
        return Effects()
    steps = _looked_up(state, group, about, outcome, now)
    try:
        next(steps)
    except StopIteration as end:
        effects: Effects = end.value
        return effects
    return Effects(continuation=Continuation(long_task=_go_on(steps)))


def _looked_up(
    state: State, group: ConsumerGroup, about: Resolution, outcome: Resolved, now: Millis
) -> Generator[None, None, Effects]:
    """Find out what members may know of, and write what was found."""
    group.asks_rights = True
    try:
        seen = yield from rights.look(state, about.group_id, outcome)
    finally:
        group.asks_rights = False
    return _taken(state, about, outcome, seen, now)


def _go_on(steps: Generator[None, None, Effects]) -> Iterator[Effects]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            yield end.value
            return
        yield Effects()


def _taken(
    state: State, about: Resolution, outcome: Resolved, seen: rights.Seen, now: Millis
) -> Effects:
    """Write what was found, for the group as it is now."""
    group = state.groups.consumer(about.group_id)
    if group is None or not group.expressions:
        return Effects()
    group.looked_at = about.topics
    unseen = state.topics is not about.topics and any(
        name not in about.topics.by_name for name in state.topics.by_name
    )
    group.expressions_stale = unseen or any(
        expression not in outcome for expression in group.expressions
    )
    effects, resolved = _written(state, group, outcome, seen, now)
    if group.expressions_stale:  # the records are not true yet, and `looked_at` counts on them
        effects.tasks = _tasks(state, group, known=resolved)
    return effects


def _written(
    state: State, group: ConsumerGroup, found: Resolved, seen: rights.Seen, now: Millis
) -> tuple[Effects, Resolved]:
    """What is written, and what the expressions name once that is true."""
    effects = Effects()
    resolved = dict(group.resolved)
    changed = names_others = False
    views: dict[MemberId, View] = {}
    if state.rights is not None:
        found, views = rights.resolve(state.rights, state, group, found, seen)
    for expression, topics in found.items():
        if not group.subscribers_of(expression):
            continue
        known = resolved.get(expression)
        if known is not None and set(known) == set(topics):
            continue
        record = regex_record(group.id, expression, topics, now)
        if _size(group.id, expression, topics) > state.record_limit():
            text = (
                f"group {group.id}: the expression {expression[:100]!r} names {len(topics)} topics,"
                f" more than a record of {state.record_limit()} bytes has room for; its members"
                " keep what it named before"
            )
            effects.warnings = [*effects.warnings, text]
            continue
        effects.records.append(record)
        changed = changed or bool(known) or bool(topics) or _has_dropped(state, group, expression)
        names_others = names_others or known is not None
        resolved[expression] = topics
    adopted = rights.adopt(group, views)
    changed, names_others = changed or adopted.changed, names_others or adopted.had_views
    metadata_hash = metadata.hash_of(group.topic_names((), (), resolved), state.topics)
    if changed or (effects.records and metadata_hash != group.metadata_hash):
        effects.records.append(epoch_record(group.id, group.group_epoch + 1, metadata_hash))
        text = "its regular expressions name other topics"
        # One that is resolved for the first time came with a member that joined, or has changed its
        # subscription: which of them the records tell.
        effects.events.append(GroupEvent(group.id, text, Cause.TOPICS if names_others else None))
    return effects, resolved


def _has_dropped(state: State, group: ConsumerGroup, expression: str) -> bool:
    """Whether a subscriber by this expression, which names nothing, was meant to have topics that
    it does not read any more: those of the expression before. Only a new target gives them to
    others. Kafka leaves them without an owner.
    """
    for member in group.members.values():
        if member.subscribed_regex == expression:
            reads = planning.topic_ids(member.subscribed_names, state.topics)
            target = group.targets.get(member.id, NOTHING)
            if any(topic not in reads for topic in target.partitions):
                return True
    return False


def _size(*texts: str | Iterable[str]) -> int:
    """About the bytes of a record with these texts."""
    size = _OVERHEAD
    for expression in texts:
        for text in (expression,) if isinstance(expression, str) else expression:
            size += 2 + len(text.encode())
    return size


def _tasks(
    state: State,
    group: ConsumerGroup,
    more: Iterable[str] = (),
    known: Resolved | None = None,
    asker: tuple[MemberId, Client] | None = None,
) -> list[BackgroundTask]:
    """One that resolves every expression of a group. None where nobody has asked since the log was
    read, and none where RE2 is missing. Where there are rules of access, what an expression is
    known to name is not all that it matches.
    """
    if not group.has_asked or expressions.unavailable_or_none() is not None:
        return []
    wanted = tuple(dict.fromkeys((*group.expressions, *more)))
    before = dict(group.resolved) if known is None else known
    looked_at = group.looked_at if state.rights is None else None
    work = _resolving(wanted, before, state.topics, looked_at)
    return [BackgroundTask((REFRESH, group.id), work, Resolution(group.id, state.topics, asker))]


def _resolving(
    wanted: tuple[str, ...], known: Resolved, topics: Topics, looked_at: Topics | None
) -> Callable[[], Generator[None, None, Resolved]]:
    """Of what an expression is known to name, what still exists stays; beside that, only topics are
    looked at that are not among those looked at before.
    """

    def work() -> Generator[None, None, Resolved]:
        names = topics.by_name
        before = None if looked_at is None else looked_at.by_name
        new = names if before is None else [name for name in names if name not in before]
        if before is None:
            kept: Resolved = {}
        else:
            kept = {
                expression: tuple(name for name in known[expression] if name in names)
                for expression in wanted
                if expression in known
            }
        found = yield from expressions.resolve(
            {expression: new if expression in kept else names for expression in wanted}
        )
        return {
            expression: tuple(sorted({*kept.get(expression, ()), *matching}))
            for expression, matching in found.items()
        }

    return work
