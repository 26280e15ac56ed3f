"""What the coordinator has said in its log file about members that are gone: proof, where the group
log has the same records for several causes.

Clocks of such files name no zone. So a line is one about a removal where the member is the same,
the epoch or generation that followed is the same, and the clock fits in some zone. What fits in
more than one way, with different causes, decides nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kohort.history.state import Rebalance

QUARTER_US = 15 * 60 * 1_000_000
"""Zones differ from each other by quarters of an hour."""
WEST, EAST = -12 * 4, 14 * 4
"""The farthest zones, in quarters of an hour."""
TOLERANCE_US = 2_000_000
"""By how much a line and a record of the same moment may differ: a record takes the time at which
its batch was begun."""


class Line(NamedTuple):
    """A line of a log file about a member that is gone."""

    member_id: str
    trigger: str
    """What the tables call its cause."""
    reason: str | None
    """What the client has given as its reason."""
    clock_us: int
    """The clock of the line, as if its zone were UTC."""
    number: int | None
    """The epoch or generation that the same file names next; None where it names none."""
    file: str


Lines = Mapping[str, Sequence[Line]]
"""Member -> the lines about it."""


def by_member(lines: Iterable[Line]) -> Lines:
    """The lines about each member."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.member_id, []).append(line)
    return found


def note(
    rebalance: Rebalance, lines: Lines, numbers: range, after: int | None, before: int | None
) -> None:
    """Settle the removals of a rebalance that leads to an epoch, or to one of these generations, by
    lines whose clock is between two times in microseconds. What the records themselves say has
    precedence.
    """
    for removal in rebalance.removals:
        member_id = removal.who.member_id
        if removal.settled or before is None or member_id not in lines:
            continue
        since = before if after is None else min(after, before)
        found = _fitting(lines[member_id], numbers, since, before)
        if len({one.trigger for one in found}) > 1:
            rebalance.said.append(f"lines of the broker's log about {member_id} differ")
        elif found:
            removal.possible, removal.settled = [found[0].trigger], True
            rebalance.said.append(_text(found, since, before))


def _fitting(lines: Sequence[Line], numbers: range, since: int, before: int) -> list[Line]:
    """Lines that name such a number; where none does, those that name none, if a clock can tell
    anything.
    """
    near = [line for line in lines if zones(line.clock_us, since, before)]
    named = [one for one in near if one.number in numbers]
    if named:
        return named
    if before - since + 2 * TOLERANCE_US >= QUARTER_US:  # any clock is near
        return []
    return [one for one in near if one.number is None]


def zones(clock_us: int, since: int, before: int) -> range:
    """By how many quarters of an hour a clock may be ahead of UTC, if it is read between two times
    in microseconds.
    """
    least = -((before + TOLERANCE_US - clock_us) // QUARTER_US)
    most = (clock_us - since + TOLERANCE_US) // QUARTER_US
    return range(max(least, WEST), min(most, EAST) + 1)


def _text(found: list[Line], since: int, before: int) -> str:
    one = found[0]
    reasons = {line.reason for line in found}
    reason = f" ({one.reason})" if len(reasons) == 1 and one.reason else ""
    clock = datetime.fromtimestamp(one.clock_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    possible = zones(one.clock_us, since, before)
    zone = _zone(possible[0]) if len(possible) == 1 else ""
    how = "" if one.number is not None else ", known by its clock alone"
    return f"{one.file} says at {clock}{zone}: {one.trigger} of {one.member_id}{reason}{how}"


def _zone(quarters: int) -> str:
    hours, rest = divmod(abs(quarters), 4)
    return f"{'-' if quarters < 0 else '+'}{hours:02}:{rest * 15:02}"
