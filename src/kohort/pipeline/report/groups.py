# SPDX-License-Identifier: Apache-2.0
"""A fold for each group: how it stands, who is in it, and its latest rebalances."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from kohort.figures import Bound, beside, duration, figure
from kohort.pipeline.format.arrow_reader import all_of
from kohort.pipeline.report import page, picks, rebalances
from kohort.pipeline.report.page import Heading, Html, Section
from kohort.pipeline.report.picks import Groups, Read

_GROUPS = 50
_SEARCHED = 10  # more folds than one looks through
_REBALANCES = 10
_MEMBERS = 50
_STATE = ("group_id", "state", "members")
_LAG = ("lag_seconds", "lag_records")
_STATUS = ("group_id", "status", *_LAG, *beside("status", _LAG))
_NAMES = ("group_id", "member_id", "group_instance_id", "client_id", "client_host")
_OWNED = ("group_id", "member_id", "topic", "topic_id", "topic_partition")
_HEADINGS = (
    Heading("client", "name"),
    Heading("host"),
    Heading("member", "name"),
    Heading("partitions", "number"),
    Heading("owns", "name"),
)


def section(read: Read, groups: Groups) -> Section:
    """The groups with the most members and rebalances."""
    alive = all_of(pc.field("state") != "Dead", picks.among(groups))
    states = picks.select(read("group_state"), _STATE, alive).to_pylist()
    if not states:
        return Section("groups", "Group by group", (page.empty("The log tells of no group."),))
    counted = picks.select(read("rebalances"), ["group_id"], picks.among(groups))
    often = {
        entry["values"]: entry["counts"]
        for entry in counted.column("group_id").value_counts().to_pylist()
    }
    scores = {
        row["group_id"]: (row["members"] or 0, often.get(row["group_id"], 0)) for row in states
    }
    shown = picks.top(scores, groups, _GROUPS)
    of_shown = pc.field("group_id").isin(shown)
    found = _GroupTables(read, of_shown)
    known = {row["group_id"]: row for row in states}
    folds = [_fold(known[group], often.get(group, 0), found) for group in shown]
    text = "How each group stands, who is in it, and when it rebalanced lately." + picks.left_out(
        len(shown), len(scores), "the most members and rebalances"
    )
    found_by = [page.search("find a group")] if len(folds) > _SEARCHED else []
    return Section("groups", "Group by group", (page.paragraph(text, "quiet"), *found_by, *folds))


class _GroupTables:
    """What the tables have of some groups, by group."""

    def __init__(self, read: Read, of_shown: pc.Expression) -> None:
        whole = of_shown & (pc.field("rules") == "kohort") & (pc.field("level") == "group")
        self.statuses = {
            row["group_id"]: row for row in picks.select(read("status"), _STATUS, whole).to_pylist()
        }
        now = of_shown & pc.field("valid_to").is_null()
        self.members = picks.by_group(
            picks.select(read("members"), _NAMES, now), ["client_id", "member_id"]
        )
        self.owned = picks.by_group(
            picks.select(read("assignments"), _OWNED, now), ["topic", "topic_partition"]
        )
        self.rebalances = picks.by_group(
            picks.select(read("rebalances"), rebalances.COLUMNS, of_shown), ["ended_at"]
        )


def _fold(state: Mapping[str, Any], often: int, found: _GroupTables) -> Html:
    group = state["group_id"]
    facts = [str(state["state"] or "state unknown")]
    facts.append(picks.several(state["members"] or 0, "member"))
    facts.append(picks.several(often, "rebalance"))
    status = found.statuses.get(group)
    if status is not None:
        facts.append(_behind(status))
    content = []
    members = found.members.get(group, [])
    if members:
        owned = found.owned.get(group, [])
        content.append(page.table(_HEADINGS, _members(members[:_MEMBERS], owned)))
        if len(members) > _MEMBERS:
            rest = picks.counted(len(members) - _MEMBERS)
            content.append(page.paragraph(f"And {rest} members more.", "quiet"))
    latest = found.rebalances.get(group, [])[-_REBALANCES:][::-1]
    if latest:
        caption = "Its rebalances" if len(latest) == often else f"Its latest {len(latest)}"
        content += [page.heading(caption), rebalances.table(latest, named=False)]
    if not content:
        content.append(page.empty("It has no members, and no rebalance is in the log."))
    return page.fold(f"{group}: {', '.join(facts)}", content)


def _behind(status: Mapping[str, Any]) -> str:
    records = figure("status", "lag_records", status)
    if records.value is None:
        return f"{status['status']}, lag {records.text(picks.counted)}"
    things = "record" if records.value == 1 else "records"
    text = f"{status['status']}, {records.text(picks.counted)} {things} behind"
    seconds = figure("status", "lag_seconds", status)
    if not records.value and seconds.bound is Bound.EXACT:
        return text
    return f"{text}, {seconds.text(duration)}"


def _members(
    members: Sequence[Mapping[str, Any]], owned: Sequence[Mapping[str, Any]]
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for member in members:
        topics: dict[str, list[int]] = {}
        for place in owned:
            if place["member_id"] == member["member_id"]:
                topic = place["topic"] or place["topic_id"] or "unknown topic"
                topics.setdefault(topic, []).append(place["topic_partition"])
        rows.append(
            (
                member["group_instance_id"] or member["client_id"] or "",
                member["client_host"] or "",
                member["member_id"],
                picks.counted(sum(map(len, topics.values()))),
                "; ".join(f"{topic} {_ranges(indexes)}" for topic, indexes in topics.items()),
            )
        )
    return rows


def _ranges(indexes: Sequence[int]) -> str:
    """`0-3, 7` for 0, 1, 2, 3 and 7."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
