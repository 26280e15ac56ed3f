# SPDX-License-Identifier: Apache-2.0
"""The coordinator's log file on members that are gone: a proof where the group log has the same
records for several causes.

Clocks of such files name no zone. A line is about a removal if the member is the same, the epoch or
generation that followed is the same, and the clock fits in some zone. A line that may be about
another removal, or lines that fit with different causes, decide nothing; the doubt is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kohort.history.rows import Who
from kohort.history.state import Clocks, Rebalance, SettledRemoval, State

QUARTER_US = 15 * 60 * 1_000_000
"""Zones differ from each other by quarters of an hour."""
WEST, EAST = -12 * 4, 14 * 4
"""The farthest zones, in quarters of an hour."""
TOLERANCE_US = 2_000_000
"""How far a line and a record of the same moment may differ: a record has the time at which its
batch was begun.
"""


class Line(NamedTuple):
    """A line of a log file about a member that is gone."""

    member_id: str
    trigger: str
    """The cause, as the tables call it."""
    reason: str | None
    """The reason that the client has given."""
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
    state: State,
    rebalance: Rebalance,
    lines: Lines,
    numbers: range,
    between: tuple[int | None, int | None],
) -> None:
    """Settle the removals of a rebalance that leads to an epoch, or to one of these generations, by
    lines whose clock is between two times in microseconds. What the records themselves say takes
    precedence.
    """
    clocks = state.clocks
    again = numbers[-1] <= clocks.highest
    clocks.highest = max(clocks.highest, numbers[-1])
    after, before = between
    if before is None:
        return
    since = before if after is None else min(after, before)
    for index, removal in enumerate(rebalance.removals):
        member_id = removal.who.member_id
        near = _near(lines.get(member_id, ()), since, before)
        if removal.settled or not near:
            continue
        named = [fitting for fitting in near if fitting.line.number in numbers]
        alone = [fitting for fitting in near if fitting.line.number is None]
        found, reason = named, ""
        if named and again:
            found, reason = _in_known_zones(clocks, named)
        elif not named:
            found, reason = _by_clock(clocks, alone, before - since)
        if found and not named:
            reason = _taken_before(state, member_id, found)
        if len({fitting.line.trigger for fitting in found}) > 1:
            reason = f"lines of the broker's log about {member_id} differ"
        if reason:
            rebalance.said.append(reason)
        elif found:
            if not named:
                clock_us = found[0].line.clock_us
                taken = SettledRemoval(rebalance.offset, index, clock_us, before, removal.possible)
                clocks.taken[member_id] = taken
            else:
                only_zones = {fitting.zones[0] for fitting in found if len(fitting.zones) == 1}
                clocks.zones += sorted(only_zones - {*clocks.zones})
            removal.possible, removal.settled = [found[0].line.trigger], True
            rebalance.said.append(_text(found, removal.who))


class _Near(NamedTuple):
    """A line whose clock fits."""

    line: Line
    zones: range
    """The zones in which it fits."""


def _near(lines: Sequence[Line], since: int, before: int) -> list[_Near]:
    near = [_Near(line, zones(line.clock_us, since, before)) for line in lines]
    return [fitting for fitting in near if fitting.zones]


def _in_known_zones(clocks: Clocks, named: list[_Near]) -> tuple[list[_Near], str]:
    """The lines that may be about this life of a group whose epochs or generations repeat; and the
    reason why there is none.
    """
    found = [fitting for fitting in named if not clocks.zones or {*fitting.zones} & {*clocks.zones}]
    return found, "" if found else _doubt(
        clocks, named[0], "its number was there in an earlier life of the group"
    )


def _by_clock(clocks: Clocks, alone: list[_Near], width_us: int) -> tuple[list[_Near], str]:
    """The lines that fit by their clocks alone, which takes a known zone; and the reason why there
    is none. A removal that may have been at any time of a quarter of an hour fits any clock.
    """
    if not alone or width_us + 2 * TOLERANCE_US >= QUARTER_US:
        return [], ""
    if len(clocks.zones) != 1:
        return [], _doubt(clocks, alone[0], "names no number")
    found = [fitting for fitting in alone if clocks.zones[0] in fitting.zones]
    return found, "" if found else _doubt(clocks, alone[0], "names no number")


def _doubt(clocks: Clocks, fitting: _Near, why: str) -> str:
    known = ", ".join(_zone(quarters) for quarters in sorted(clocks.zones))
    others = f"that of other lines is {known}" if known else "no other line tells it"
    return (
        f"{fitting.line.file} at {_clock(fitting.line)} may be about another removal of "
        f"{fitting.line.member_id}: it {why}, and its zone is not known ({others})"
    )


def _taken_before(state: State, member_id: str, found: list[_Near]) -> str:
    """Why a line decides nothing: it has already settled an earlier removal of the member by its
    clock alone. It then decides neither.
    """
    taken = state.clocks.taken.get(member_id)
    if taken is None or taken.clock_us not in {fitting.line.clock_us for fitting in found}:
        return ""
    line = found[0].line
    reason = f"{line.file} at {_clock(line)} fits several removals of {member_id}"
    if not _is_certain(taken, state.now):
        earlier = state.rebalances[taken.rebalance]
        removal = earlier.removals[taken.number]
        removal.possible, removal.settled = taken.possible, False
        earlier.said.append(reason)
    return reason


def zones(clock_us: int, since: int, before: int) -> range:
    """How many quarters of an hour a clock may be ahead of UTC, if it is read between two times in
    microseconds.
    """
    least = -((before + TOLERANCE_US - clock_us) // QUARTER_US)
    most = (clock_us - since + TOLERANCE_US) // QUARTER_US
    return range(max(least, WEST), min(most, EAST) + 1)


def may_change(state: State, rebalance: Rebalance) -> bool:
    """Whether a line may turn out to fit a later removal, too."""
    return any(
        taken.rebalance == rebalance.offset and not _is_certain(taken, state.now)
        for taken in state.clocks.taken.values()
    )


def _is_certain(taken: SettledRemoval, now: int | None) -> bool:
    """Whether it is too late for the line to fit another removal."""
    return now is not None and now > taken.at + 2 * TOLERANCE_US


def _text(found: list[_Near], who: Who) -> str:
    line, possible = found[0]
    reasons = {fitting.line.reason for fitting in found}
    reason = f" ({line.reason})" if len(reasons) == 1 and line.reason else ""
    zone = _zone(possible[0]) if len(possible) == 1 else ""
    how = "" if line.number is not None else ", known by its clock alone"
    said = f"{line.trigger} of {who.in_words}"
    return f"{line.file} says at {_clock(line)}{zone}: {said}{reason}{how}"


def _clock(line: Line) -> str:
    return datetime.fromtimestamp(line.clock_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _zone(quarters: int) -> str:
    hours, rest = divmod(abs(quarters), 4)
    return f"{'-' if quarters < 0 else '+'}{hours:02}:{rest * 15:02}"
