# SPDX-License-Identifier: Apache-2.0
"""What is new in a log since some positions, and what happened to it: the same for every source."""

from collections.abc import Mapping
from datetime import datetime

from kohort.pipeline.sources.log_position import Note, Plan, Position, SourceError
from kohort.spark.sources.feed import Bounds, Survey
from kohort.terms import millis_of

_BACK = (100_000, 1_000, 0)
"""How far before the end of a plan batches are remembered: a cut of the tail goes back to one."""


def plan(
    survey: Survey,
    since: Mapping[int, Position],
    from_time: datetime | None = None,
    to_time: datetime | None = None,
) -> Plan:
    """See `Source.plan`."""
    bounds = survey.bounds()
    cut = _cuts(survey, {index: since[index] for index in since if index in bounds}, bounds)
    starts = _starts(survey, since, bounds, cut, from_time)
    ends = survey.at_time(bounds, milliseconds(to_time)) if to_time is not None else {}
    ranges = {}
    for index, edges in sorted(bounds.items()):
        begin, end = max(starts[index], edges.start), min(edges.end, ends.get(index, edges.end))
        if begin < end:
            ranges[index] = (begin, end)
    reached = {index: Position(begin) for index, begin in starts.items()}
    reached |= since
    reached |= {index: _back(since[index], offset) for index, offset in cut.items()}
    for back in _BACK:
        ends = {index: end - back for index, (start, end) in ranges.items() if start < end - back}
        marks = survey.marks(ends) if ends else {}
        for index, end in ends.items():
            reached[index] = reached[index].moved(Position(end, marks.get(index)))
    notes = (
        *(_absent(index, since[index].next) for index in sorted(since.keys() - bounds.keys())),
        *(cut_note(index, offset, since[index].next) for index, offset in sorted(cut.items())),
        *(
            gap(index, begin, bounds[index].start)
            for index, begin in starts.items()
            if begin < bounds[index].start
        ),
    )
    return Plan(ranges, cut, notes, dict(sorted(reached.items())))


def _absent(partition: int, following: int) -> Note:
    text = f"partition {partition} is not there any more; it was read to offset {following}"
    return Note(partition, following, text)


def cut_note(partition: int, offset: int, following: int) -> Note:
    """Records whose offsets were used again."""
    text = (
        f"the log of partition {partition} was cut at or behind offset {offset} after it was read "
        f"to {following}; it is read again from {offset} on"
    )
    return Note(partition, offset, text)


def gap(partition: int, begin: int, start: int) -> Note:
    """Records that were removed before they were read."""
    lost = f"offsets {begin} to {start - 1} of partition {partition}"
    return Note(partition, begin, f"{lost} were removed before they were read")


def changes(survey: Survey, planned: Plan) -> tuple[Note, ...]:
    """See `Source.changes`."""
    bounds = survey.bounds()
    return (
        *survey.observed_changes(),
        *(
            Note(
                index,
                begin,
                f"offsets {begin} to {min(end, bounds[index].start) - 1} of partition {index} were "
                "removed while they were read; some may be missing",
            )
            for index, (begin, end) in planned.ranges.items()
            if index in bounds and begin < bounds[index].start
        ),
    )


def positions(survey: Survey, following: Mapping[int, int]) -> dict[int, Position]:
    """See `Source.positions`."""
    marks = survey.marks(following)
    return {index: Position(offset, marks.get(index)) for index, offset in following.items()}


def milliseconds(time: datetime) -> int:
    """The time as a log has it. Raises SourceError for a time without a zone."""
    if time.tzinfo is None:
        raise SourceError(f"the time {time} has no zone, expected one such as +00:00")
    return millis_of(time)


def _starts(
    survey: Survey,
    since: Mapping[int, Position],
    bounds: Mapping[int, Bounds],
    cut: Mapping[int, int],
    from_time: datetime | None,
) -> dict[int, int]:
    fresh = [index for index in bounds if index not in since]
    found = (
        survey.at_time(fresh, milliseconds(from_time))
        if from_time is not None and fresh
        else {index: bounds[index].start for index in fresh}
    )
    known = {index: cut.get(index, since[index].next) for index in bounds if index in since}
    return dict(sorted({**found, **known}.items()))


def _cuts(
    survey: Survey, since: Mapping[int, Position], bounds: Mapping[int, Bounds]
) -> dict[int, int]:
    """Where logs were truncated since they were read: they are cut behind the newest batch that is
    still the same.
    """
    cut: dict[int, int] = {}
    marks = {index: position.last for index, position in since.items() if position.last is not None}
    offset_after_mark = survey.offset_after_mark(marks) if marks else {}
    for index, position in since.items():
        end = bounds[index].end
        if index not in marks:
            if end < position.next:
                cut[index] = end
            continue
        following = offset_after_mark[index]
        if following is None:
            cut[index] = _behind_an_older(survey, index, position, bounds[index])
        elif end < position.next:
            cut[index] = min(following, end)
    return cut


def _behind_an_older(survey: Survey, index: int, position: Position, bounds: Bounds) -> int:
    for mark in position.older:
        following = survey.offset_after_mark({index: mark})[index]
        if following is not None:
            return min(following, bounds.end)
    return bounds.start


def _back(position: Position, offset: int) -> Position:
    """The position, moved back to where a log was cut."""
    left = tuple(mark for mark in position.older if mark[0] < offset)
    return Position(offset, left[0] if left else None, left[1:])
