# SPDX-License-Identifier: Apache-2.0
"""Lag over time: in records, and in seconds with the band in which the truth lies."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.figures import beside, duration, figure
from kohort.pipeline.format.arrow_reader import all_of
from kohort.pipeline.report import charts, page, picks
from kohort.pipeline.report.page import Html, Section
from kohort.pipeline.report.picks import Groups, Read

_GROUPS = 8
_SAMPLES = (
    "A line takes two: `kohort pipeline snapshot --every 30s` takes samples, and each run adds "
    "what they tell."
)
_POINTS = 240
_PLACE = ("group_id", "at")
_NOW = ("lag_records", "lag_seconds")
_RECORDS, _SECONDS = "lag_records_max", "lag_seconds_max"
_COLUMNS = (*_PLACE, *_NOW, *beside("lag", _NOW))
_HISTORY = (*_PLACE, _RECORDS, _SECONDS, *beside("lag_history", (_RECORDS, _SECONDS)))


def section(read: Read, groups: Groups, log_end: datetime | None = None) -> Section:
    """Two charts of the groups that are, or were, furthest behind; they end where the log does."""
    where = all_of(pc.field("level") == "group", picks.among(groups))
    table = _with_history(read, picks.select(read("lag"), _COLUMNS, where), where)
    if log_end is not None:
        table = _until(table, log_end)
    return Section("lag", "Lag over time", tuple(_content(table, groups)))


def _with_history(read: Read, now: pa.Table, where: pc.Expression | None) -> pa.Table:
    """The rows of `lag`, as those of `lag_history`, and behind them those of `lag_history`. Where a
    row stands for several moments it is the most of them that counts.
    """
    now = _as_history(now)
    history = picks.select(read("lag_history"), _HISTORY, where)
    until = pc.max(now["at"])
    if not history.num_rows or not until.is_valid:
        return now
    earlier = history.cast(now.schema).filter(pc.field("at") <= until)
    known = pc.is_in(now["at"], pc.unique(earlier["at"]))
    return pa.concat_tables([earlier, now.filter(pc.invert(known))])


def _as_history(now: pa.Table) -> pa.Table:
    """Rows of `lag` with the columns of `lag_history`, each about one moment."""
    columns = {
        **{name: now[name] for name in now.column_names},
        _RECORDS: now["lag_records"],
        _SECONDS: now["lag_seconds"],
        "moments": pa.repeat(pa.scalar(1, pa.int32()), now.num_rows),
        "moments_unknown": now["lag_records"].is_null().cast(pa.int32()),
        "moments_timeless": now["lag_seconds"].is_null().cast(pa.int32()),
    }
    return pa.table({name: columns[name] for name in _HISTORY})


def _content(table: pa.Table, groups: Groups) -> list[Html]:
    if not table.num_rows:
        return [page.empty("No group has committed an offset.")]
    shown = _most_behind(table, groups)
    series = picks.by_group(table.filter(pc.field("group_id").isin(shown)), ["at"])
    rows = [row for group in shown for row in _points(series[group])]
    there = pc.count_distinct(table.column("group_id")).as_py()
    text = (
        "How far each group is behind the end of what it reads. In seconds: for how long the next "
        "record to be read has been waiting; the band is where the truth lies. Of the past it is "
        "the largest of every five minutes, and of every hour."
        + picks.left_out(len(shown), there, "the largest lag")
    )
    content = [page.paragraph(text, "quiet")]
    for key, caption, field, nothing in (
        ("lag-records", "Lag in records", "records", "No end offsets are known, so no lag is."),
        ("lag-seconds", "Lag in seconds", "seconds", "Lag in seconds is not known."),
    ):
        known = [row for row in rows if row[field] is not None]
        moments = {row["when"] for row in known}
        if len(moments) == 1:
            content.append(
                page.empty(f"{caption} is known of one moment only, {moments.pop()}. {_SAMPLES}")
            )
        elif known:
            content.append(page.figure(key, caption, _chart(rows, shown, field)))
        else:
            content.append(page.empty(f"{nothing} {_reasons(table)}"))
    return content


def _until(table: pa.Table, end: datetime) -> pa.Table:
    """The rows up to a moment; all of them where there are none."""
    found = table.filter(pc.field("at") <= pa.scalar(end, table.schema.field("at").type))
    return found if found.num_rows else table


def _most_behind(table: pa.Table, groups: Groups) -> list[str]:
    """Those behind now first, by seconds and then records; after them those that were."""
    grouped = table.sort_by("at").group_by("group_id", use_threads=False)
    ranks = grouped.aggregate([(_SECONDS, "last"), (_RECORDS, "last"), (_RECORDS, "max")])
    scores = {
        row["group_id"]: (
            row[f"{_SECONDS}_last"] or 0.0,
            row[f"{_RECORDS}_last"] or 0.0,
            row[f"{_RECORDS}_max"] or 0.0,
        )
        for row in ranks.to_pylist()
    }
    return picks.top(scores, groups, _GROUPS)


def _points(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    points = [
        _point(row) for row in picks.downsample(rows, _POINTS, lambda row: row[_RECORDS] or 0)
    ]
    if len(points) == 1:
        points[0]["alone"] = True  # no line goes through it
    return points


def _point(row: dict[str, Any]) -> dict[str, Any]:
    seconds = figure("lag_history", _SECONDS, row)
    point = {
        "group": row["group_id"],
        "at": picks.milliseconds(row["at"]),
        "when": picks.when(row["at"]),
        "records": row[_RECORDS],
        "amount": figure("lag_history", _RECORDS, row).text(picks.counted),
        "seconds": None if seconds.value is None else round(seconds.value, 3),
        "text": seconds.text(duration),
    }
    if seconds.low is not None and seconds.high is not None and seconds.value is not None:
        # What nobody has seen yet is no lag to draw.
        high = seconds.high if seconds.value else 0.0
        point["low"], point["high"] = round(seconds.low, 3), round(high, 3)
    return point


def _reasons(table: pa.Table) -> str:
    found = sorted({reason for reason in table.column("reason").to_pylist() if reason})
    return f"Reason: {', '.join(found)}." if found else ""


def _span(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """From the first moment to the last; around it, where there is only one."""
    first, last = min(row["at"] for row in rows), max(row["at"] for row in rows)
    return (first, last) if first < last else (first - 60_000, last + 60_000)


def _chart(rows: list[dict[str, Any]], shown: Sequence[str], field: str) -> dict[str, Any]:
    picked = alt.selection_point(fields=["group"], bind="legend", name=f"picked_{field}")
    colour = alt.Color(
        "group:N", sort=list(shown), scale=alt.Scale(domain=list(shown), scheme=charts.SEVERAL)
    )
    if field == "seconds":
        axis = charts.durations(max(row.get("high") or row["seconds"] or 0 for row in rows))
    else:
        axis = charts.amounts(max(row["records"] or 0 for row in rows))
    value = alt.Y(f"{field}:Q", axis=axis, scale=alt.Scale(domainMin=0, nice=True))
    base = alt.Chart().encode(x=charts.times("at", _span(rows)), color=colour)
    line = base.mark_line(strokeWidth=2, interpolate="linear").encode(
        y=value, opacity=alt.condition(picked, alt.value(1), alt.value(0.08))
    )
    spots = base.mark_point(filled=True, size=90).encode(
        y=value,
        opacity=alt.condition("datum.alone", alt.value(1), alt.value(0.001)),
        tooltip=charts.tooltip(
            {"group": "group", "when": "at (UTC)", "amount": "records", "text": "behind by"}
        ),
    )
    layers = [line.add_params(picked), spots]
    if field == "seconds":
        band = base.mark_area(strokeWidth=0).encode(
            y=alt.Y("low:Q", axis=axis),
            y2="high:Q",
            opacity=alt.condition(picked, alt.value(0.22), alt.value(0.02)),
        )
        layers.insert(0, band)
    return charts.finished(alt.layer(*layers), rows, 260)
