# SPDX-License-Identifier: Apache-2.0
"""Groups that nobody seems to need: which may be deleted, and what speaks against the others."""

from typing import Any

from kohort.figures import duration
from kohort.pipeline.report import page, picks
from kohort.pipeline.report.page import Heading, Html, Section
from kohort.pipeline.report.picks import Groups, Read

_ROWS = 50
_COLUMNS = (
    "group_id",
    "type",
    "state",
    "deletable",
    "reason",
    "members",
    "last_commit_at",
    "days_idle",
    "expires_at",
)
_HEADINGS = (
    Heading("group", "name"),
    Heading("idle", "number"),
    Heading("last commit (UTC)", "time"),
    Heading("expires (UTC)", "time"),
    Heading("why"),
)


def section(read: Read, groups: Groups) -> Section:
    """A table of the groups that may go, and one of those that are idle but may not."""
    table = picks.select(read("deletable_groups"), _COLUMNS, picks.among(groups))
    rows = sorted(table.to_pylist(), key=lambda row: (-(row["days_idle"] or 0), row["group_id"]))
    return Section("stale", "Stale groups", tuple(_content(rows)))


def _content(rows: list[dict[str, Any]]) -> list[Html]:
    deletable = [row for row in rows if row["deletable"]]
    kept = [row for row in rows if not row["deletable"] and not row["members"]]
    content = []
    if deletable:
        text = (
            f"{picks.several(len(deletable), 'group')} may be deleted. `kohort pipeline show "
            "deletable --format json` lists them for `kohort groups delete --from`, which looks at "
            "each again before it deletes it."
        )
        content += [page.paragraph(text, "quiet"), _table(deletable)]
    else:
        content.append(page.empty("No group may be deleted."))
    if kept:
        content += [page.heading("Without members, but to be kept"), _table(kept)]
    return content


def _idle(days: float | None) -> str:
    return "unknown" if days is None else duration(days * 86400)


def _table(rows: list[dict[str, Any]]) -> Html:
    table: str = page.table(
        _HEADINGS,
        (
            (
                row["group_id"],
                _idle(row["days_idle"]),
                picks.when(row["last_commit_at"]),
                picks.when(row["expires_at"]),
                row["reason"] or "",
            )
            for row in rows[:_ROWS]
        ),
    )
    more = len(rows) - _ROWS
    if more > 0:
        table += page.paragraph(f"And {picks.counted(more)} more, idle for less long.", "quiet")
    return Html(table)
