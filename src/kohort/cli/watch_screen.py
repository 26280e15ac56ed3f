# SPDX-License-Identifier: Apache-2.0
"""What `kohort groups watch` shows on a terminal: as many groups as fit, from where a person has
scrolled to, and the last events. It says how many groups there are and which of them are shown.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kohort.cli.describe import LAG_TIME
from kohort.cli.group_changes import GroupRow
from kohort.cli.lags import time_text
from kohort.cli.render import name_text, printable
from kohort.figures import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

HEADERS = ("GROUP", "STATE", "MEMBERS", "EPOCH", "LAG", "LAG/S")
_KEY = re.compile(rb"\x1b[\[O](?:[ABHF]|[156]~|4~)|.", re.DOTALL)
_KEYS = {  # what a terminal sends, and where to
    **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), "up"),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), "down"),
    **dict.fromkeys((b"\x1b[5~", b"b"), "page up"),
    **dict.fromkeys((b"\x1b[6~", b" "), "page down"),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"g"), "first"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"G"), "last"),
    **dict.fromkeys((b"q", b"Q"), "quit"),
}


def keys_of(typed: bytes) -> list[str]:
    """What was typed, in words; what is no key of ours is left out."""
    return [_KEYS[key] for key in _KEY.findall(typed) if key in _KEYS]


class WatchScreen:
    """The rows and events of the last look, and the first row that is shown."""

    def __init__(self, console: "Console", order: str, headers: Sequence[str] = HEADERS) -> None:
        self._console = console
        self._order = ORDERS[order]
        self._headers = headers
        self._rows: list[GroupRow] = []
        self._first = 0
        self.title = ""
        self.trouble = ""
        self.events: Sequence[str] = ()

    def update(self, rows: Sequence[GroupRow]) -> None:
        """Show these rows from now on. Who has scrolled stays at the same line."""
        self._rows = sorted(rows, key=self._order)
        self._go(self._first)

    def move(self, key: str) -> None:
        """Scroll, as far as there are rows."""
        page = max(1, self._room - 1)
        steps = {"up": -1, "down": 1, "page up": -page, "page down": page}
        ends = {"first": 0, "last": len(self._rows)}
        self._go(ends[key] if key in ends else self._first + steps.get(key, 0))

    def _go(self, first: int) -> None:
        self._first = max(0, min(first, len(self._rows) - self._room))

    @property
    def _for_events(self) -> int:
        return min(len(self.events), max(3, max(8, self._console.height) // 3))

    @property
    def _room(self) -> int:
        """Lines for groups."""
        return max(1, max(8, self._console.height) - self._for_events - 6)

    def drawn(self) -> "RenderableType":
        """All of it, with a third for the last events at most."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        self._go(self._first)  # the terminal may have another height now
        table = Table(box=None, pad_edge=False, header_style="bold")
        for index, header in enumerate(self._headers):
            table.add_column(header, justify="left" if index < 2 else "right", no_wrap=True)
        for row in self._rows[self._first : self._first + self._room]:
            table.add_row(*(Text(cell, overflow="ellipsis") for cell in _cells(row, self._headers)))
        parts: list[RenderableType] = [Text(self.title, style="dim", no_wrap=True), table]
        if self.trouble:
            trouble = Text(printable(self.trouble), style="red", no_wrap=True, overflow="ellipsis")
            parts.insert(1, trouble)
        parts.append(Text(self._position(), style="dim", no_wrap=True, overflow="ellipsis"))
        parts.append(Text())
        shown = [Text(printable(one), no_wrap=True, overflow="ellipsis") for one in self.events]
        parts += shown[len(shown) - self._for_events :]
        return Group(*parts)

    def _position(self) -> str:
        """`1-12 of 240 groups, 31 others have members; arrows and PgDn scroll`."""
        count, last = len(self._rows), self._first + self._room
        if count <= self._room:
            return counted(count, "group")
        others = [*self._rows[: self._first], *self._rows[last:]]
        live = sum(bool(row.group.members) for row in others)
        have = "has" if live == 1 else "have"
        more = f", {counted(live, 'other')} {have} members" if live else ""
        where = f"{self._first + 1:,}-{min(last, count):,} of {count:,} groups"
        return f"{where}{more}; arrows, PgUp and PgDn scroll"


def _cells(row: GroupRow, headers: Sequence[str]) -> Iterator[str]:
    group = row.group
    yield printable(name_text(group.group_id))
    if group.error is not None:
        yield printable(group.error)
        yield from [""] * (len(headers) - 2)
        return
    yield group.state
    yield f"{len(group.members):,}"
    if group.epoch is None:
        yield "-"
    else:
        target = "" if group.target_epoch == group.epoch else f" ({group.target_epoch})"
        yield f"{group.epoch}{target}"
    yield "-" if group.lag is None else group.lag.text or "-"
    yield "-" if row.per_second is None else f"{row.per_second:+,.0f}"
    if LAG_TIME in headers:
        yield (time_text(group.time_lag) if group.time_lag else None) or "-"


def _records(row: GroupRow) -> int:
    return row.group.lag.records if row.group.lag else 0


def _seconds(row: GroupRow) -> float:
    return (row.group.time_lag.value if row.group.time_lag else None) or 0.0


ORDERS: Mapping[str, Callable[[GroupRow], Any]] = {
    "lag": lambda row: (row.group.error is None, -_records(row), row.group.group_id),
    "lag-seconds": lambda row: (row.group.error is None, -_seconds(row), row.group.group_id),
    "group": lambda row: row.group.group_id,
    "state": lambda row: (row.group.error is None, row.group.state, row.group.group_id),
    "members": lambda row: (-len(row.group.members), row.group.group_id),
}
"""By the word of `--sort`: groups that cannot be looked at stand first where their lag or state
would, since nobody knows it.
"""
