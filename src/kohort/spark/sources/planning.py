"""What is new in a log since some positions, and what happened to it: the same for every feed."""

from collections.abc import Mapping
from datetime import datetime

from kohort.spark.sources.feed import Bounds, Feed
from kohort.spark.sources.source import Note, Plan, Position, SourceError


def plan(
    feed: Feed,
    since: Mapping[int, Position],
    from_time: datetime | None = None,
    to_time: datetime | None = None,
) -> Plan:
    """See `Source.plan`."""
    bounds = feed.bounds()
    notes = [
        Note(index, since[index].next, f"partition {index} is not there any more; it was read to "
             f"offset {since[index].next}")
        for index in sorted(since.keys() - bounds.keys())
    ]  # fmt: skip
    cut = _cuts(feed, {one: since[one] for one in since if one in bounds}, bounds)
    notes += (
        Note(index, offset, f"the log of partition {index} was cut at or behind offset {offset} "
             f"after it was read to {since[index].next}; it is read again from {offset} on")
        for index, offset in sorted(cut.items())
    )  # fmt: skip
    starts = _starts(feed, since, bounds, cut, from_time)
    for index, begin in starts.items():
        if begin < bounds[index].start:
            notes.append(gap(index, begin, bounds[index].start))
    ends = feed.at_time(bounds, milliseconds(to_time)) if to_time is not None else {}
    ranges = {}
    for index, one in sorted(bounds.items()):
        begin, end = max(starts[index], one.start), min(one.end, ends.get(index, one.end))
        if begin < end:
            ranges[index] = (begin, end)
    positions = dict(since)
    for index, offset in cut.items():
        positions[index] = _back(since[index], offset)
    for index, begin in starts.items():
        if index not in since and index not in ranges:
            positions[index] = Position(begin)
    marks = feed.marks({index: end for index, (_, end) in ranges.items()})
    for index, (_, end) in ranges.items():
        before = positions.get(index, Position(0))
        positions[index] = before.moved(Position(end, marks.get(index)))
    return Plan(ranges, cut, tuple(notes), dict(sorted(positions.items())))


def gap(partition: int, begin: int, start: int) -> Note:
    """Records that were removed before they were read."""
    return Note(
        partition,
        begin,
        f"offsets {begin} to {start - 1} of partition {partition} were removed before they were "
        "read",
    )


def changes(feed: Feed, planned: Plan) -> tuple[Note, ...]:
    """See `Source.changes`."""
    bounds = feed.bounds()
    return (
        *feed.happened(),
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


def positions(feed: Feed, following: Mapping[int, int]) -> dict[int, Position]:
    """See `Source.positions`."""
    marks = feed.marks(following)
    return {index: Position(offset, marks.get(index)) for index, offset in following.items()}


def milliseconds(time: datetime) -> int:
    """The time as a log has it. Raises SourceError for a time without a zone."""
    if time.tzinfo is None:
        raise SourceError(f"the time {time} has no zone, expected one such as +00:00")
    return int(time.timestamp() * 1000)


def _starts(
    feed: Feed,
    since: Mapping[int, Position],
    bounds: Mapping[int, Bounds],
    cut: Mapping[int, int],
    from_time: datetime | None,
) -> dict[int, int]:
    fresh = [index for index in bounds if index not in since]
    found = (
        feed.at_time(fresh, milliseconds(from_time))
        if from_time is not None and fresh
        else {index: bounds[index].start for index in fresh}
    )
    known = {index: cut.get(index, since[index].next) for index in bounds if index in since}
    return dict(sorted({**found, **known}.items()))


def _cuts(
    feed: Feed, since: Mapping[int, Position], bounds: Mapping[int, Bounds]
) -> dict[int, int]:
    """Where logs were cut since they were read: behind the newest batch that still stands."""
    cut: dict[int, int] = {}
    marks = {index: one.last for index, one in since.items() if one.last is not None}
    standing = feed.standing(marks) if marks else {}
    for index, one in since.items():
        end = bounds[index].end
        if index not in marks:
            if end < one.next:
                cut[index] = end
            continue
        following = standing[index]
        if following is None:
            cut[index] = _behind_an_older(feed, index, one, bounds[index])
        elif end < one.next:
            cut[index] = min(following, end)
    return cut


def _behind_an_older(feed: Feed, index: int, position: Position, bounds: Bounds) -> int:
    for mark in position.older:
        following = feed.standing({index: mark})[index]
        if following is not None:
            return min(following, bounds.end)
    return bounds.start


def _back(position: Position, offset: int) -> Position:
    """The position, moved back to where a log was cut."""
    left = tuple(mark for mark in position.older if mark[0] < offset)
    return Position(offset, left[0] if left else None, left[1:])
