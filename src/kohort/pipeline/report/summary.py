# SPDX-License-Identifier: Apache-2.0
"""What stands on top: how many groups, who is in trouble, how far the history reaches back."""

from collections import Counter
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from kohort.figures import Bound, beside, duration, figure
from kohort.pipeline.format.arrow_reader import all_of
from kohort.pipeline.report import page, picks
from kohort.pipeline.report.page import Heading, Html, Section, Tile
from kohort.pipeline.report.picks import Groups, Read

_ROWS = 20
_OURS = pc.field("rules") == "kohort"
_HISTORIES = {"rebalances": "started_before", "members": "valid_from"}
_TIMES = (
    ("status", "at"),
    ("lag", "at"),
    ("rebalances", "ended_at"),
    ("members", "valid_from"),
    ("members", "valid_to"),
)
_UNKNOWN = "UNKNOWN"
_FINE = ("OK", _UNKNOWN)
_MARKS = {"ERR": "bad", "STOP": "bad", "STALL": "bad", "LOST": "bad", "REWIND": "warn"}
_HEADINGS = (
    Heading("group", "name"),
    Heading("status"),
    Heading("rule"),
    Heading("behind", "number"),
    Heading("records", "number"),
    Heading("last commit (UTC)", "time"),
)
_LAG = ("lag_seconds", "lag_records")
_STATUS = (
    *("group_id", "at", "status", "rule", "last_commit_at"),
    *(*_LAG, *beside("status", _LAG)),
)


def until(read: Read) -> datetime | None:
    """The moment for which the tables were computed, as far as they tell; None for empty ones."""
    times = []
    for name, column in _TIMES:
        times.append(pc.max(picks.select(read(name), [column]).column(column)).as_py())
    return picks.latest(times)


def figures(read: Read, groups: Groups) -> Html:
    """The figures of the page."""
    alive = all_of(pc.field("state") != "Dead", picks.among(groups))
    there = picks.select(read("group_state"), ["state", "members"], alive).to_pylist()
    states = Counter(row["state"] for row in there)
    by_state = ", ".join(f"{number} {state}" for state, number in states.most_common(3))
    idle = picks.select(read("deletable_groups"), ["deletable"], picks.among(groups))
    deletable = pc.sum(idle.column("deletable")).as_py() or 0
    statuses = picks.select(read("status"), _STATUS, _groups(groups)).to_pylist()
    rebalances = picks.select(read("rebalances"), ["trigger"], picks.among(groups))
    causes = Counter(rebalances.column("trigger").to_pylist()).most_common(1)
    most = f", most by {causes[0][0]}" if causes else ""
    return page.tiles(
        [
            _tile(len(there), "group", f": {by_state}" if by_state else ""),
            _tile(sum(row["members"] or 0 for row in there), "member", " now"),
            _tile(rebalances.num_rows, "rebalance", most),
            _worst(statuses),
            _trouble(statuses),
            _tile(deletable, "group", " may be deleted", "warn" if deletable else ""),
        ]
    )


def status(read: Read, groups: Groups) -> Section:
    """The groups that do not keep up, by the set of rules without Burrow's false alarms."""
    rows = picks.select(read("status"), _STATUS, _groups(groups)).to_pylist()
    bad = [row for row in rows if row["status"] not in _FINE]
    bad.sort(key=lambda row: (-(row["lag_seconds"] or 0), -(row["lag_records"] or 0)))
    unknown = sum(row["status"] == _UNKNOWN for row in rows)
    content = []
    if not rows:
        content.append(page.empty("No group has committed offsets that could be judged."))
    elif bad:
        content.append(page.table(_HEADINGS, [_row(row) for row in bad[:_ROWS]]))
    elif unknown < len(rows):
        content.append(page.empty("Every group that can be judged keeps up."))
    if len(bad) > _ROWS:
        content.append(page.paragraph(f"And {picks.counted(len(bad) - _ROWS)} more.", "quiet"))
    if unknown:
        text = f"{picks.several(unknown, 'group')} cannot be judged: no end offsets are known."
        content.append(page.paragraph(text, "quiet"))
    return Section("status", "Groups that do not keep up", tuple(content))


def origin(source: str, until: datetime | None) -> Html | None:
    """Where all this comes from, and how old it is."""
    if until is None:
        return None
    words = f"Read from {source}, as" if source else "As"
    return page.dated(f"{words} of {picks.when(until)} UTC", picks.milliseconds(until))


def completeness(read: Read) -> Html | None:
    """From when on nothing is missing; said loudly where older history is on the page."""
    marks: dict[int, datetime] = {}
    hidden = False
    for name, began in _HISTORIES.items():
        table = picks.select(read(name), ["partition", began, "complete_from"])
        known = table.group_by("partition").aggregate([("complete_from", "max")])
        for row in known.to_pylist():
            if row["complete_from_max"] is not None:
                marks[row["partition"]] = row["complete_from_max"]
        older = pc.less(table.column(began), table.column("complete_from"))
        hidden |= pc.any(older).as_py() or False
    if not marks:
        return None
    first, last = picks.when(min(marks.values())), picks.when(max(marks.values()))
    since = f"{last} UTC" if first == last else f"{first} to {last} UTC, by partition of the log,"
    text = f"The history is complete from {since} on."
    if not hidden:
        return page.paragraph(text, "quiet")
    return page.paragraph(
        f"{text} What is shown before it has gaps: compaction had removed records.", "note"
    )


def ended(log_end: datetime | None, until: datetime | None) -> Html | None:
    """That the log ends long before the moment of the page."""
    if log_end is None or until is None:
        return None
    before = picks.duration_text((until - log_end).total_seconds())
    text = (
        f"The log ends at {picks.when(log_end)} UTC, {before} before the moment of this page, and "
        "the charts end there. If it is a copy, `kohort pipeline run --as-of` with that time tells "
        "how things were at its end."
    )
    return page.paragraph(text, "note")


def later_end_notice(later_end: datetime | None, until: datetime | None) -> Html | None:
    """That the log was read further than to the moment of the page."""
    if later_end is None or until is None:
        return None
    text = (
        f"Lag and status are those of {picks.when(until)} UTC. The log was read on, so groups, "
        f"their members and their offsets are those of {picks.when(later_end)} UTC. `kohort "
        "pipeline run --to` with the earlier time, into another directory, tells all as it was."
    )
    return page.paragraph(text, "note")


def _groups(groups: Groups) -> pc.Expression:
    whole = _OURS & (pc.field("level") == "group")
    found = all_of(whole, picks.among(groups))
    assert found is not None
    return found


def _worst(statuses: list[dict[str, Any]]) -> Tile:
    """The group that is furthest behind, of those whose lag is known; others may be further."""
    known = [row for row in statuses if row["lag_records"] is not None]
    if not known:
        whys = ", ".join(sorted({row["reason"] for row in statuses if row["reason"]}))
        return Tile("\u2013", "lag is unknown" + (f" ({whys})" if whys else ""))
    dark = len(statuses) - len(known)
    rest = f"; lag of {picks.several(dark, 'group')} is not known" if dark else ""
    worst = max(known, key=lambda row: (row["lag_seconds"] or 0.0, row["lag_records"]))
    amount = figure("status", "lag_records", worst)
    is_bound = amount.bound is not Bound.EXACT
    if not amount.value and not is_bound:
        return Tile("0", f"records behind: no group has lag{rest}", "" if dark else "good")
    records = f"{amount.text(picks.counted)} records"
    seconds = figure("status", "lag_seconds", worst)
    if seconds.value is None:
        return Tile(records, f"behind at worst: {worst['group_id']}{rest}")
    text = f"behind at worst, {records}: {worst['group_id']}{rest}"
    return Tile(seconds.text(duration), text)


def _trouble(statuses: list[dict[str, Any]]) -> Tile:
    """Only groups that can be judged are counted, and only if all can be is nothing to see good."""
    bad = Counter(row["status"] for row in statuses if row["status"] not in _FINE)
    unknown = sum(row["status"] == _UNKNOWN for row in statuses)
    judged = len(statuses) - unknown
    if unknown and not judged:
        return Tile("\u2013", "no group can be judged: no end offsets are known")
    rest = f"; {picks.counted(unknown)} cannot be judged" if unknown else ""
    if not bad:
        fine = "good" if judged and not unknown else ""
        return _tile(0, "group", f" behind or stuck{rest}", fine)
    by_status = ", ".join(f"{number} {name}" for name, number in bad.most_common())
    return _tile(bad.total(), "group", f" behind or stuck: {by_status}{rest}", "bad")


def _tile(number: int, thing: str, text: str, style: str = "") -> Tile:
    figure, _, things = picks.several(number, thing).partition(" ")
    return Tile(figure, f"{things}{text}", style)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    style = _MARKS.get(row["status"], "warn")
    return (
        row["group_id"],
        page.tagged(row["status"], style),
        (row["rule"] or "").replace("_", " "),
        figure("status", "lag_seconds", row).text(duration),
        figure("status", "lag_records", row).text(picks.counted),
        picks.when(row["last_commit_at"]),
    )
