# SPDX-License-Identifier: Apache-2.0
"""The history of a group: its records replayed, in the order of the log, as the coordinator itself
would read them.

However a log is cut into pieces, the rows are the same in the end. A coordinator writes what one
request or one timer causes as a whole, so the last write counts as open until something follows it.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import msgpack

from kohort.errors import Broken
from kohort.history import consumer, outages
from kohort.history.classic import on_generation
from kohort.history.commits import on_commits, waits_for_commits
from kohort.history.events import (
    CLASSIC,
    CURRENT,
    EPOCH,
    EXPRESSION,
    MEMBER,
    TARGET,
    TARGET_EPOCH,
    TOPICS,
    Commits,
    Current,
    Event,
    Member,
    Record,
)
from kohort.history.explained import row_of
from kohort.history.logged import may_change
from kohort.history.ownership import end_life, forget
from kohort.history.rows import Row
from kohort.history.state import VERSION, Life, Rebalance, State
from kohort.history.story import HistoryInputs, Step, Story

HANDLERS: dict[int, Callable[[Story, Step], None]] = {
    CLASSIC: on_generation,
    EPOCH: consumer.on_epoch,
    TOPICS: consumer.on_topics,
    MEMBER: consumer.on_member,
    TARGET_EPOCH: consumer.on_target_epoch,
    TARGET: consumer.on_target,
    CURRENT: consumer.on_current,
    EXPRESSION: consumer.on_expression,
}

_ENCODER = msgpack.Encoder()
_DECODER = msgpack.Decoder(State)


class History:
    """A group's history up to some point of the log.

    `feed` takes the events behind that point. `closed` are rows that nothing can change any more,
    `open_rows` those that may still change.
    """

    def __init__(self, inputs: HistoryInputs, state: bytes | None = None) -> None:
        """With the state that an earlier history has left, or from the beginning of the log."""
        self._inputs = inputs
        self._state = State() if state is None else _DECODER.decode(state)
        if self._state.version != VERSION:
            raise Broken(f"a state of version {self._state.version}, expected {VERSION}")
        self.closed: list[Row] = []

    def state(self) -> bytes:
        """The state from which a later history goes on."""
        return _ENCODER.encode(self._state)

    def feed(self, events: Iterable[Event]) -> None:
        """Take events in the order of the log, behind those that were fed before."""
        state = self._state
        write = [record for record in state.pending if isinstance(record, Record)]
        state.pending = []
        story = Story(state, self._inputs)
        for event in events:
            if isinstance(event, Record) and (not write or _goes_on(write[-1], event)):
                write.append(event)
                continue
            _apply(story, write)
            write = []
            if isinstance(event, Commits):
                outages.on_time(state, event)
                on_commits(story, event)
                _pass(state, event.at)
            else:
                write = [event]
        outages.take_rest(story)
        forget(story)
        state.pending = [*write]
        self.closed += _closed(story)

    def open_rows(self) -> Iterator[Row]:
        """The rows that may still change, as they are after the last event."""
        state = _DECODER.decode(self.state())
        story = Story(state, self._inputs)
        _apply(story, [record for record in state.pending if isinstance(record, Record)])
        yield from _closed(story)
        yield from state.consumer.rows.values()
        yield from state.classic.rows.values()
        for holdings in (state.holdings, state.classic_holdings):
            yield from (holding.row for mine in holdings.values() for holding in mine.values())
        for rebalance in state.rebalances.values():
            row = row_of(rebalance, self._inputs)
            if row is not None:
                yield row


def _goes_on(last: Record, record: Record) -> bool:
    """Whether two records were written together."""
    return record.offset == last.offset + 1 and record.at == last.at and record.at is not None


def _pass(state: State, at: int | None) -> None:
    if at is not None:
        state.now = at if state.now is None else max(at, state.now)


def _apply(story: Story, write: list[Record]) -> None:
    """Apply records that were written together: those before the record of an epoch led to it."""
    state = story.state
    if write:
        outages.take_rest(story)
    _begin(state, write)
    marks = [_mark(state.consumer.life, record) for record in write]
    coming: Record | None = None
    steps = []
    for record, (converted, upgrading) in zip(reversed(write), reversed(marks), strict=True):
        begins = record.type == EPOCH and not converted
        if begins:
            coming = record
        leads = (
            coming is not None
            and coming.value is not None
            and (begins or _is_cause(record, upgrading=upgrading))
        )
        assert not leads or coming is not None
        offset = coming.offset if leads and coming is not None else None
        steps.append(Step(record, offset, leads, upgrading, begins))
    for step in reversed(steps):
        outages.on_time(state, step.record)
        outages.on_record(state, step.record)
        begun = state.consumer.begun
        if step.begins:
            begun = step.record.offset if step.record.value is not None else None
        belongs = step.rebalance if step.leads else begun
        HANDLERS[step.record.type](story, step._replace(rebalance=belongs))
        _pass(state, step.record.at)
    _note_end(state, write)


def _begin(state: State, write: list[Record]) -> None:
    """A group that has ended begins anew, unless it has only changed its protocol: then the other
    one begins at the same time, whatever a cleaner may have removed between.
    """
    begins = [one for one in write if one.type in (EPOCH, CLASSIC) and one.value is not None]
    if begins and state.is_over:
        state.is_over = False
        if state.over_at is None or begins[0].at != state.over_at:
            end_life(state)


def _note_end(state: State, write: list[Record]) -> None:
    ends = [one for one in write if one.type in (EPOCH, CLASSIC) and one.value is None]
    if ends and state.consumer.begun is None and state.classic.value is None:
        state.is_over, state.over_at = True, ends[-1].at


def _is_cause(record: Record, *, upgrading: bool) -> bool:
    """Whether a record belongs before the epoch record that it leads to, and not behind it."""
    return (
        record.value is None
        or record.type in (MEMBER, TOPICS, EXPRESSION, EPOCH)
        or upgrading
        or (isinstance(record.value, Current) and record.value.member_epoch == 0)
    )


def _mark(life: Life, record: Record) -> tuple[bool, bool]:
    """Whether an epoch record only takes over the generation of a classic group: then only its
    members stand before it, behind the tombstone of that group. And whether a record is part of the
    conversion.
    """
    value = record.value
    if record.type == CLASSIC and value is None:
        life.ended += 1
        life.described = life.classic = life.epochs = 0
        life.begins_at, life.begun, life.converted = None, False, False
    if not life.begun:
        life.begun, life.begins_at = True, record.at
    if isinstance(value, Member):
        life.described += 1
        life.classic += value.classic_protocols is not None
    life.epochs += record.type == EPOCH
    converted = (
        record.type == EPOCH
        and value is not None
        and life.ended > 0
        and life.epochs == 1
        and 0 < life.described == life.classic
    )
    life.converted |= converted
    is_first = life.epochs == 1 and record.at is not None and record.at == life.begins_at
    return converted, life.converted and is_first


def _closed(story: Story) -> list[Row]:
    """The rows that are over, and the rebalances that nothing can change any more."""
    state = story.state
    awaited = {newcomer.offset for coming in state.consumer.coming.values() for newcomer in coming}
    out = {offset for offset, _ in state.outage.out}
    rows: list[Row] = []
    for rebalance in list(state.rebalances.values()):
        if _is_final(rebalance, awaited, out, state.now) and not may_change(state, rebalance):
            del state.rebalances[rebalance.offset]
            row = row_of(rebalance, story.inputs)
            if row is not None:
                rows.append(row)
    rows, story.closed = [*story.closed, *rows], []
    return rows


def _is_final(rebalance: Rebalance, awaited: set[int], out: set[int], now: int | None) -> bool:
    return (
        rebalance.ends
        and not any(gap.ongoing for gap in rebalance.gaps)
        and awaited.isdisjoint(rebalance.awaits)
        and rebalance.offset not in out
        and not waits_for_commits(rebalance, now)
    )
