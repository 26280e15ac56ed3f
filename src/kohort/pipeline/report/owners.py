# SPDX-License-Identifier: Apache-2.0
"""Who owned which partition from when to when: a Gantt chart for each group."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.figures import duration, of_partition
from kohort.pipeline.format.arrow_reader import all_of
from kohort.pipeline.report import charts, page, picks, rebalances
from kohort.pipeline.report.page import Html, Section
from kohort.pipeline.report.picks import Groups, Read

_GROUPS = 6
_ROWS = 40
_BARS = 500
_NAMED = 20
"""Members in a legend: so many colours there are."""
_COLUMNS = (
    "group_id",
    "topic",
    "topic_id",
    "topic_partition",
    "member_id",
    "valid_from",
    "valid_to",
    "epoch",
    "last_epoch",
)

_OF_UNREAD = ("group_id", "unread", "moves", "trigger", "possible", "likely")
_UNREAD: dict[str, Any] = {"color": page.HATCHED, "stroke": "#d9443f", "strokeWidth": 1}
_TOOLTIP_OF_UNREAD: dict[str, Any] = {
    "place": "partition",
    "unread": "unread for",
    "why": "why",
    "since": "from (UTC)",
    "till": "to (UTC)",
}

_NAMES = ("member_id", "group_instance_id", "client_id", "client_host")


class _ChartContext(NamedTuple):
    """What all charts share: names of clients by member, and the time from first to last."""

    clients: Mapping[str, str]
    begin: datetime
    until: datetime


def section(read: Read, groups: Groups, until: datetime) -> Section:
    """The groups whose partitions moved most. What is owned still reaches `until`."""
    rows = read("assignments")
    timed = pc.field("valid_from").is_valid()
    counted = picks.select(rows, ["group_id"], all_of(timed, picks.among(groups)))
    counts = Counter(counted.column("group_id").to_pylist())
    if not counts:
        text = "The log does not tell who owned which partition."
        return Section("owners", "Ownership", (page.empty(text),))
    shown = picks.top({group: (number,) for group, number in counts.items()}, groups, _GROUPS)
    of_shown = pc.field("group_id").isin(shown)
    table = picks.select(rows, _COLUMNS, of_shown & timed)
    series = picks.by_group(table, ["topic", "topic_partition", "valid_from"])
    clients = _clients(picks.select(read("members"), _NAMES, of_shown))
    begin = pc.min(table.column("valid_from")).as_py()
    end = pc.max(pc.fill_null(table.column("valid_to"), until)).as_py()
    known = _ChartContext(clients, begin, max(begin, end))
    text = (
        "A row is a partition, a bar the time for which one member owned it, a gap the time for "
        "which nobody did. Where it is hatched, nobody read the partition, as its commits tell: "
        "before the coordinator noticed that its owner was gone, and until the next one was at "
        "work. A touch says why. Touch a name below a chart to see only its bars."
        + picks.left_out(len(shown), len(counts), "the most changes")
    )
    silent = _unread(read, of_shown)
    charts_of = (
        _group(f"owners-{index}", group, series[group], silent.get(group, []), known)
        for index, group in enumerate(shown)
    )
    return Section("owners", "Ownership", (page.paragraph(text, "quiet"), *charts_of))


def _unread(read: Read, of_shown: pc.Expression) -> dict[str, list[dict[str, Any]]]:
    """Group -> the times in which nobody read one of its partitions, and why."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in picks.select(read("rebalances"), _OF_UNREAD, of_shown).to_pylist():
        owners = {_place(move): move["from_member_id"] for move in row["moves"] or ()}
        for silence in row["unread"] or ():
            if silence["seconds"]:
                why = _fate(row, owners.get(_place(silence)))
                found.setdefault(row["group_id"], []).append({**silence, "why": why})
    return found


def _fate(row: dict[str, Any], owner: str | None) -> str:
    """Why a rebalance took a partition from its owner: of several that are gone, that one."""
    guesses = row["likely"] or ()
    mine = [guess for guess in guesses if guess["member_id"] == owner]
    return rebalances.why({**row, "likely": mine or guesses})


def _clients(members: pa.Table) -> dict[str, str]:
    """Member id -> what people know the client by, and where it runs."""
    return {
        row["member_id"]: " ".join(
            part
            for part in (row["group_instance_id"] or row["client_id"], row["client_host"])
            if part
        )
        for row in members.to_pylist()
    }


def _group(
    key: str,
    group: str,
    rows: Sequence[dict[str, Any]],
    unread: Sequence[dict[str, Any]],
    known: _ChartContext,
) -> Html:
    moves = Counter(_place(row) for row in rows)
    places = sorted(sorted(moves, key=lambda move: (-moves[move], move))[:_ROWS])
    chosen = set(places)
    drawn = [row for row in rows if _place(row) in chosen]
    latest = sorted(drawn, key=lambda row: row["valid_to"] or known.until)[-_BARS:]
    caption = group
    if len(places) < len(moves):
        caption += f" ({len(places)} of {len(moves)} partitions, those that moved most)"
    if len(latest) < len(drawn):
        caption += f" (the latest {len(latest)} of {len(drawn)} changes)"
    bars = [_bar(row, known) for row in latest]
    first = min(bar["from"] for bar in bars)
    silent = [_silence(silence) for silence in unread if _place(silence) in chosen]
    silent = [silence for silence in silent if silence["to"] >= first]
    named = _owners(bars)
    for bar in bars:
        bar["owner"] = named[bar["member"]]
    labels = [_label(place) for place in places]
    return page.figure(key, caption, _chart(bars, silent[-_BARS:], labels, known))


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["topic"] or row["topic_id"] or "unknown topic", row["topic_partition"]


def _label(place: tuple[str, int]) -> str:
    return f"{place[0]}-{place[1]}"


def _bar(row: dict[str, Any], known: _ChartContext) -> dict[str, Any]:
    end = row["valid_to"] or known.until
    return {
        "place": _label(_place(row)),
        "from": picks.milliseconds(row["valid_from"]),
        "to": picks.milliseconds(max(end, row["valid_from"])),
        "member": row["member_id"],
        "owner": row["member_id"],
        "client": known.clients.get(row["member_id"]) or "unknown",
        "since": picks.when(row["valid_from"]),
        "till": picks.when(row["valid_to"]) or "still",
        "for": picks.duration_text((end - row["valid_from"]).total_seconds()),
        "epoch": _epochs(row["epoch"], row["last_epoch"]),
    }


def _owners(bars: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Member id -> its name in the legend, in the order of their first partitions: the client that
    people know, and as much of the id as it takes where several have one name.
    """
    first = sorted(bars, key=lambda bar: bar["from"])
    clients = {bar["member"]: bar["client"] for bar in first}
    often = Counter(clients.values())
    named: dict[str, str] = {}
    for member, client in clients.items():
        name = client if often[client] == 1 else f"{client} {member[-6:]}"
        named[member] = name if name not in named.values() else f"{client} {member}"
    return named


def _silence(silence: dict[str, Any]) -> dict[str, Any]:
    return {
        "place": _label(_place(silence)),
        "from": picks.milliseconds(silence["since"]),
        "to": picks.milliseconds(silence["until"]),
        "since": picks.when(silence["since"]),
        "till": picks.when(silence["until"]),
        "unread": of_partition(silence).text(duration),
        "why": silence["why"],
    }


def _epochs(first: int | None, last: int | None) -> str:
    return str(first) if last is None or last == first else f"{first} to {last}"


def _chart(
    bars: Sequence[dict[str, Any]],
    silent: Sequence[dict[str, Any]],
    places: Sequence[str],
    known: _ChartContext,
) -> dict[str, Any]:
    owners = list(dict.fromkeys(bar["owner"] for bar in sorted(bars, key=lambda bar: bar["from"])))
    picked = alt.selection_point(fields=["owner"], bind="legend", name="picked_owner")
    domain = (picks.milliseconds(known.begin), picks.milliseconds(known.until))
    colour = alt.Color(
        "owner:N",
        scale=alt.Scale(domain=owners, scheme=charts.MANY),
        legend=alt.Legend(values=owners[:_NAMED]),
    )
    tooltip = charts.tooltip(
        {
            "place": "partition",
            "member": "member",
            "client": "client",
            "since": "from (UTC)",
            "till": "to (UTC)",
            "for": "for",
            "epoch": "epoch",
        }
    )
    base = alt.Chart().encode(
        x=charts.times("from", domain), x2="to:T", y=charts.names("place", places)
    )
    owned = (
        base.transform_filter("!datum.unread")
        .mark_bar(height=charts.ROW_PX - 8, cornerRadius=2)
        .encode(
            color=colour,
            tooltip=tooltip,
            opacity=alt.condition(picked, alt.value(1), alt.value(0.15)),
        )
    )
    unread = (
        base.transform_filter("datum.unread")
        .mark_bar(height=charts.ROW_PX - 8, **_UNREAD)
        .encode(tooltip=charts.tooltip(_TOOLTIP_OF_UNREAD))
    )
    rows = [*bars, *silent]
    layers = alt.layer(owned.add_params(picked), unread)
    return charts.finished(layers, rows, charts.ROW_PX * max(2, len(places)))
