# SPDX-License-Identifier: Apache-2.0
"""When groups rebalanced, why, and what each rebalance cost."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt

from kohort.figures import duration, figure, longest_unowned
from kohort.history import rows as causes
from kohort.history import undecided_or_none
from kohort.pipeline.report import charts, page, picks
from kohort.pipeline.report.page import Heading, Html, Section
from kohort.pipeline.report.picks import Groups, Read

COLOURS = {
    causes.JOIN: "#2e9e6b",
    causes.LEAVE: "#4c8dd6",
    causes.SESSION_TIMEOUT: "#d9443f",
    causes.REBALANCE_TIMEOUT: "#e8833a",
    causes.SUBSCRIPTION_CHANGE: "#9b6fd0",
    causes.METADATA_CHANGE: "#22a7b5",
    causes.ASSIGNOR_CHANGE: "#cf6fa5",
    causes.MIGRATION: "#b5952b",
    causes.FOLLOW_UP: "#8a7668",
    causes.REJOIN: "#6f8f3f",
    causes.UNKNOWN: "#8b95a3",
}
"""Trigger -> its colour, on light paper and on dark."""

_GROUPS = 20
_BARS = 1000
_ROWS = 12
_LATEST = 200
_EVIDENCE = 240
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    "group_id",
    "epoch",
    "started_at",
    "started_before",
    "assigned_at",
    "ended_at",
    "seconds",
    "seconds_at_least",
    "seconds_at_most",
    "outcome",
    "trigger",
    "possible",
    "likely",
    "evidence",
    "joined",
    "gone",
    "changed",
    "partitions_moved",
    "moves",
    "unowned",
    "unread",
    "unread_seconds",
    "longest_unread_seconds",
)
_HEADINGS = (
    Heading("group", "name"),
    Heading("began (UTC)", "time"),
    Heading("unread in all", "number"),
    Heading("longest", "number"),
    Heading("cause"),
    Heading("who", "name"),
    Heading("no owner", "number"),
    Heading("took", "number"),
    Heading("moved", "number"),
)


def section(read: Read, groups: Groups) -> Section:
    """A timeline by group, the causes, and the costliest rebalances as a table."""
    table = picks.select(read("rebalances"), COLUMNS, picks.among(groups))
    return Section("rebalances", "Rebalances", tuple(_content(table.to_pylist(), groups)))


def _content(rows: list[dict[str, Any]], groups: Groups) -> list[Html]:
    if not rows:
        return [page.empty("No rebalance is in the log.")]
    counts = Counter(row["group_id"] for row in rows)
    shown = picks.top({group: (number,) for group, number in counts.items()}, groups, _GROUPS)
    chosen = set(shown)
    timed = [row for row in rows if row["group_id"] in chosen and _began(row) is not None]
    drawn = sorted(timed, key=lambda row: _began(row) or row["ended_at"])[-_BARS:]
    found = Counter(row["trigger"] for row in rows)
    text = (
        "In the timeline, a mark is where a rebalance began, a bar how long it took, and the "
        "colour what caused it, as in the chart of causes."
        + picks.left_out(len(shown), len(counts), "the most rebalances")
    )
    if len(drawn) < len(timed):
        text += f" Of their {picks.counted(len(timed))} rebalances, the latest {_BARS} are drawn."
    undecided = undecided_or_none(rows)
    content = [
        page.paragraph(text, "quiet"),
        *([page.paragraph(f"{undecided}.", "note")] if undecided else []),
        page.figure("rebalance-causes", "Causes, all groups", _causes(found)),
    ]
    if drawn:
        content.append(
            page.figure("rebalance-timeline", "Timeline", _timeline(drawn, shown, found))
        )
    costliest = sorted(rows, key=_cost, reverse=True)[:_ROWS]
    unread = (
        "Ordered by how long partitions went unread: from the last commit before to the first "
        "after, less the usual distance of the commits; in all, and of the one unread longest. "
        "Where commits do not tell of all partitions it is a lower bound, or unknown. Beside it "
        "stands what the coordinator saw: for how long a partition had no owner, at worst."
    )
    return [
        *content,
        page.heading("The costliest"),
        page.paragraph(unread, "quiet"),
        table(costliest),
        _in_order(rows),
    ]


def _in_order(rows: Sequence[dict[str, Any]]) -> Html:
    """All of them, the latest first, for who opens it."""
    latest = sorted(rows, key=lambda row: _began(row) or _NEVER)[-_LATEST:]
    summary = f"In the order of time, the latest first: {picks.several(len(rows), 'rebalance')}"
    if len(latest) < len(rows):
        summary += f", of which the latest {len(latest)} are here"
    return page.fold(summary, [table(latest[::-1])])


def _began(row: dict[str, Any]) -> datetime | None:
    """When it began; in a classic group at the latest."""
    began: datetime | None = row["started_at"] or row["started_before"] or row["ended_at"]
    return began


def _cost(row: dict[str, Any]) -> tuple[float, float, float, int]:
    """What people feel, as far as commits tell; then what the coordinator knows."""
    longest = longest_unowned(row)
    idle = 0.0 if longest is None else longest.value or 0.0
    known = (row["seconds_at_least"] or 0.0, row["partitions_moved"] or 0)
    return row["unread_seconds"] or 0.0, idle, *known


def _idle(row: dict[str, Any]) -> str:
    """For how long a partition had no owner, at worst; nothing where each kept one."""
    longest = longest_unowned(row)
    return "" if longest is None else longest.text(duration)


def took(row: dict[str, Any]) -> str:
    """How long it took, as far as that is known; what came of it where nothing is."""
    duration_text = figure("rebalances", "seconds", row)
    return str(row["outcome"]) if duration_text.value is None else duration_text.text(duration)


def _unread(row: dict[str, Any], column: str) -> str:
    return figure("rebalances", column, row).text(duration)


def who(row: dict[str, Any]) -> str:
    """The clients that came, went or changed; ids of members where they have no other name."""
    parts = []
    for word in ("joined", "gone", "changed"):
        names = Counter(
            member["group_instance_id"] or member["client_id"] or member["member_id"]
            for member in row[word] or ()
        )
        members = [
            f"{name} \u00d7{number}" if number > 1 else name for name, number in names.items()
        ]
        if len(members) > 5:
            members = [*members[:4], f"{len(members) - 4} more"]
        if members:
            parts.append(f"{word} {', '.join(members)}")
    return "; ".join(parts)


def why(row: dict[str, Any]) -> str:
    """The trigger, and what is possible and likely where that is not all."""
    possible, found = ", ".join(row["possible"] or ()), likely(row)
    reasons = [f"perhaps {possible}"] if possible else []
    reasons += [f"likely {found}"] if found else []
    return f"{row['trigger']} ({'; '.join(reasons)})" if reasons else str(row["trigger"])


def likely(row: dict[str, Any]) -> str:
    """What is likely to have become of those that are gone."""
    found = Counter(guess["likely"] for guess in row["likely"] or () if guess["likely"])
    return ", ".join(
        f"{name} \u00d7{number}" if number > 1 else name for name, number in found.items()
    )


def _ordered(found: Counter[str]) -> list[str]:
    """The causes that are there, in the order of their colours; others behind them."""
    return [cause for cause in COLOURS if cause in found] + sorted(found.keys() - COLOURS.keys())


def _colour(found: Counter[str]) -> alt.Color:
    there = _ordered(found)
    scale = alt.Scale(
        domain=there,
        range=[COLOURS.get(cause, COLOURS[causes.UNKNOWN]) for cause in there],
    )
    return alt.Color("cause:N", scale=scale, legend=None)


def _timeline(
    rows: Sequence[dict[str, Any]], shown: Sequence[str], found: Counter[str]
) -> dict[str, Any]:
    points = [_point(row) for row in rows]
    tooltip = charts.tooltip(
        {
            "group": "group",
            "why": "cause",
            "who": "who",
            "when": "began (UTC)",
            "took": "took",
            "moved": "partitions moved",
            "unread": "unread in all",
            "longest": "longest unread",
            "idle": "longest without owner",
            "evidence": "evidence",
        }
    )
    base = alt.Chart().encode(y=charts.names("group", shown), color=_colour(found), tooltip=tooltip)
    bars = base.mark_bar(height=10, cornerRadius=2, opacity=0.55).encode(
        x=charts.times("from"), x2="to:T"
    )
    marks = base.mark_point(filled=True, size=55, opacity=0.95).encode(x=charts.times("from"))
    return charts.finished(alt.layer(bars, marks), points, charts.ROW_PX * max(2, len(shown)))


def _point(row: dict[str, Any]) -> dict[str, Any]:
    began = _began(row)
    assert began is not None
    ended = row["ended_at"] or row["assigned_at"] or began
    evidence = row["evidence"] or ""
    return {
        "group": row["group_id"],
        "from": picks.milliseconds(began),
        "to": picks.milliseconds(max(began, ended)),
        "cause": row["trigger"],
        "why": why(row),
        "who": who(row) or "nobody",
        "when": ("" if row["started_at"] else "at the latest ") + picks.when(began),
        "took": took(row),
        "moved": row["partitions_moved"],
        "unread": _unread(row, "unread_seconds"),
        "longest": _unread(row, "longest_unread_seconds"),
        "idle": _idle(row) or "none",
        "evidence": evidence if len(evidence) <= _EVIDENCE else f"{evidence[:_EVIDENCE]}\u2026",
    }


def _causes(found: Counter[str]) -> dict[str, Any]:
    rows = [{"cause": cause, "count": found[cause]} for cause in _ordered(found)]
    order = [cause for cause, _ in found.most_common()]
    chart = (
        alt.Chart()
        .mark_bar(cornerRadius=2, height=12)
        .encode(
            x=alt.X("count:Q", axis=alt.Axis(title=None, tickMinStep=1, format="~s")),
            y=charts.names("cause", order, label_px=150),
            color=_colour(found),
            tooltip=charts.tooltip({"cause": "cause", "count": "rebalances"}),
        )
    )
    return charts.finished(chart, rows, charts.ROW_PX * len(rows))


def table(rows: Sequence[dict[str, Any]], *, named: bool = True) -> Html:
    """A row for each rebalance; with `named`, the first column is its group."""
    return page.table(
        _HEADINGS if named else _HEADINGS[1:],
        (
            (
                *([row["group_id"]] if named else []),
                picks.when(_began(row)),
                _unread(row, "unread_seconds"),
                _unread(row, "longest_unread_seconds"),
                why(row),
                who(row),
                _idle(row),
                took(row),
                picks.counted(row["partitions_moved"]),
            )
            for row in rows
        ),
    )
