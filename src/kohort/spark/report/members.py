"""How many members groups had over time."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

import altair as alt
import pyarrow.compute as pc

from kohort.spark.report import charts, page, picks
from kohort.spark.report.page import Section
from kohort.spark.report.picks import Groups, Read

_GROUPS = 8
_POINTS = 300


def section(read: Read, groups: Groups, until: datetime) -> Section:
    """The groups whose membership changed most. With members, a line goes on to `until`."""
    rows = read("members")
    counted = picks.select(rows, ["group_id"], picks.among(groups)).column("group_id")
    if not len(counted):
        return Section("members", "Members over time", (page.empty("No group had a member."),))
    counts = {one["values"]: (one["counts"],) for one in counted.value_counts().to_pylist()}
    shown = picks.top(counts, groups, _GROUPS)
    columns = ("group_id", "valid_from", "valid_to")
    timed = pc.field("group_id").isin(shown) & pc.field("valid_from").is_valid()
    table = picks.select(rows, columns, timed)
    series = picks.by_group(table, ["valid_from"])
    points = [point for one in shown for point in steps(one, series.get(one, []), until)]
    text = "Members of each group, from the records that add and remove them." + picks.left_out(
        len(shown), len(counts), "the most changes"
    )
    figure = page.figure("members-over-time", "Members", _chart(points, shown))
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
    kept = picks.thinned(found, _POINTS, lambda step: step["members"])
    if times[-1] < until and kept[-1]["members"]:
        kept.append({**kept[-1], "at": picks.milliseconds(until), "when": picks.when(until)})
    return kept


def _chart(points: Sequence[dict[str, Any]], shown: Sequence[str]) -> dict[str, Any]:
    picked = alt.selection_point(fields=["group"], bind="legend", name="picked_members")
    scale = alt.Scale(domain=list(shown), scheme=charts.SEVERAL)
    most = max(point["members"] for point in points)
    value = alt.Y("members:Q", axis=charts.amounts(most))
    base = alt.Chart().encode(
        x=charts.times("at"), y=value, color=alt.Color("group:N", scale=scale)
    )
    line = base.mark_line(strokeWidth=2, interpolate="step-after").encode(
        opacity=alt.condition(picked, alt.value(1), alt.value(0.08))
    )
    spots = base.mark_point(filled=True, size=90).encode(
        opacity=alt.value(0.001),
        tooltip=charts.tooltip({"group": "group", "when": "from (UTC)", "members": "members"}),
    )
    return charts.finished(alt.layer(line.add_params(picked), spots), points, 220)
