# SPDX-License-Identifier: Apache-2.0
"""How many members groups had over time."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

import altair as alt
import pyarrow.compute as pc

from kohort.pipeline.report import charts, page, picks
from kohort.pipeline.report.page import Section
from kohort.pipeline.report.picks import Groups, Read

_GROUPS = 20
_POINTS = 300


def section(read: Read, groups: Groups, until: datetime) -> Section:
    """The groups whose membership changed most. With members, a line goes on to `until`."""
    rows = read("members")
    counted = picks.select(rows, ["group_id"], picks.among(groups)).column("group_id")
    if not len(counted):
        return Section("members", "Members over time", (page.empty("No group had a member."),))
    counts = {entry["values"]: (entry["counts"],) for entry in counted.value_counts().to_pylist()}
    shown = picks.top(counts, groups, _GROUPS)
    columns = ("group_id", "valid_from", "valid_to")
    timed = pc.field("group_id").isin(shown) & pc.field("valid_from").is_valid()
    table = picks.select(rows, columns, timed)
    series = picks.by_group(table, ["valid_from"])
    spans = [
        span
        for group in shown
        for span in _spans(steps(group, series.get(group, []), until), until)
    ]
    text = (
        "A row is a group: the darker it is, the more members it had, and where it is empty it "
        "had none." + picks.left_out(len(shown), len(counts), "the most changes")
    )
    figure = page.figure("members-over-time", "Members", _chart(spans, shown))
    return Section("members", "Members over time", (page.paragraph(text, "quiet"), figure))


def steps(group: str, rows: Sequence[dict[str, Any]], until: datetime) -> list[dict[str, Any]]:
    """The number after each change: what begins when something else of it ends is no change."""
    changes: Counter[datetime] = Counter()
    for row in rows:
        changes[row["valid_from"]] += 1
        if row["valid_to"] is not None:
            changes[row["valid_to"]] -= 1
    times = sorted(changes)
    numbers = accumulate(changes[at] for at in times)
    found = [
        {"group": group, "at": picks.milliseconds(at), "when": picks.when(at), "members": number}
        for at, number in zip(times, numbers, strict=True)
    ]
    if not found:
        return []
    kept = picks.downsample(found, _POINTS, lambda step: step["members"])
    if times[-1] < until and kept[-1]["members"]:
        kept.append({**kept[-1], "at": picks.milliseconds(until), "when": picks.when(until)})
    return kept


def _spans(points: Sequence[dict[str, Any]], until: datetime) -> list[dict[str, Any]]:
    """From each change to the next, but for the time without members."""
    ends = [*(point["at"] for point in points[1:]), picks.milliseconds(until)]
    return [
        {**point, "to": max(end, point["at"])}
        for point, end in zip(points, ends, strict=False)
        if point["members"]
    ]


def _chart(spans: Sequence[dict[str, Any]], shown: Sequence[str]) -> dict[str, Any]:
    most = max((span["members"] for span in spans), default=1)
    colour = alt.Color(
        "members:Q",
        scale=alt.Scale(domain=[0, most], range=["#cfe3f7", "#1d5a9e"]),
        legend=alt.Legend(type="gradient", values=[1, most], gradientLength=120, format="d"),
    )
    bars = (
        alt.Chart()
        .mark_bar(height=charts.ROW_PX - 8)
        .encode(
            x=charts.times("at"),
            x2="to:T",
            y=charts.names("group", shown),
            color=colour,
            tooltip=charts.tooltip({"group": "group", "when": "from (UTC)", "members": "members"}),
        )
    )
    return charts.finished(bars, spans, charts.ROW_PX * max(2, len(shown)))
