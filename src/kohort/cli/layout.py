# SPDX-License-Identifier: Apache-2.0
"""The columns of a table that a terminal has room for. Words and numbers are never broken, but for
names that are longer than any usual one: these go on in the next line of their cell.

Prose gives way first, down to its longest word, and headers are laid out over several lines. Times
lose their milliseconds, and long ids their middle. Then columns are left out, in the order that the
caller gives. A table that still does not fit is shown as a list of fields.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kohort.figures import FIGURES

_FIGURES = (name.upper() for columns in FIGURES.values() for name in columns)
PHRASES = frozenset([*_FIGURES, "TRIGGER", "POSSIBLE", "LIKELY"])
"""Headers of columns of few words that may take several lines: `at least 82.0 (no_end)`."""
NARROWEST_PHRASE = 12
IDS = frozenset({"MEMBER", "MEMBER_ID"})  # headers of columns whose values may lose their middle
NARROWEST_ID = 17
ID_ENDS = 4  # letters of an id that tell it from others like it
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?P<fraction>\.\d{3})")
PROSE = 32  # cells that are longer, and have spaces, may be laid out over several lines
NARROWEST_PROSE = 24
NAME = 40  # cells that are longer are laid out over several lines, wherever they can be cut
NARROWEST_NAME = 24  # of those, where nothing else makes room
FEWEST = 2


def cell_width(text: str) -> int:
    """How many cells of a terminal a text takes: some characters take two, some none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


@dataclass(slots=True)
class Column:
    """A column as text. `width` is that of its longest cell, until `fitting` lowers it."""

    header: str
    cells: Sequence[str]
    is_numeric: bool
    width: int = field(init=False)
    least: int = field(init=False)
    wraps: bool = False

    def __post_init__(self) -> None:
        widths = [*map(cell_width, self.cells)]
        head = max(map(cell_width, _words(self.header)))
        longest = max(widths, default=0)
        self.width = max(cell_width(self.header), longest)
        self.least = max(head, longest)
        if self.header in IDS and all(map(str.isascii, self.cells)):
            self.least = max(head, min(longest, NARROWEST_ID))
        elif self.header in PHRASES:
            words = [cell_width(word) for cell in self.cells for word in cell.split()]
            self.least = max([head, min(longest, NARROWEST_PHRASE), *words])
        elif any(map(TIME.fullmatch, self.cells)):
            self.least = max([head, *(cell_width(_in_seconds(cell)) for cell in self.cells)])
        elif any(
            width > PROSE and " " in cell for cell, width in zip(self.cells, widths, strict=True)
        ):
            words = [cell_width(word) for cell in self.cells for word in cell.split()]
            self.least = min(self.least, max([head, NARROWEST_PROSE, *words]))
        self.narrow(NAME)

    def narrow(self, width: int) -> None:
        """Let a column with a cell longer than any usual name have this width, or its header's."""
        if not self.is_numeric and self.width > NAME:
            head = max(map(cell_width, _words(self.header)))
            self.least = min(self.least, max(head, width))

    @property
    def heading(self) -> str:
        """The header in lines that fit."""
        lines = [""]
        for word in _words(self.header):
            if len(lines[-1]) + len(word) > self.width:
                lines.append("")
            lines[-1] += word
        return "\n".join(lines)

    def text(self, row: int) -> str:
        """A cell as the width has room for it: not all of a time, or of an id."""
        cell = self.cells[row]
        if len(cell) <= self.width:
            return cell
        if self.header in IDS and cell.isascii():
            return f"{cell[: self.width - ID_ENDS - 1]}…{cell[-ID_ENDS:]}"
        return _in_seconds(cell)


def _in_seconds(cell: str) -> str:
    """A time without its milliseconds; anything else unchanged."""
    found = TIME.fullmatch(cell)
    return cell if found is None else cell.removesuffix(found["fraction"])


def _words(header: str) -> list[str]:
    """`LAG_RECORDS` in the parts that may stand on lines of their own: `LAG_` and `RECORDS`."""
    *first, last = header.split("_")
    return [*(f"{word}_" for word in first), last]


def fitting(
    columns: Sequence[Column], room: int, gap: int, spare: Sequence[str] | None
) -> list[Column] | None:
    """The columns to show, with their widths; None when no table fits into `room`.

    `spare` has the headers that may be left out, the first one first. Without it all but the first
    two may be left out, from the right. Where a wide one had to go, narrow ones come back.
    """
    shown = list(columns)
    gone: list[Column] = []
    order = [column.header for column in reversed(columns[FEWEST:])] if spare is None else spare
    left = [header for header in order if any(column.header == header for column in columns)]
    while _size(shown, gap, [column.least for column in shown]) > room:
        if not left:
            for column in shown:
                column.narrow(NARROWEST_NAME)
            if _size(shown, gap, [column.least for column in shown]) > room:
                return None
            break
        header = left.pop(0)
        gone += [column for column in shown if column.header == header]
        shown = [column for column in shown if column.header != header]
    for left_out in reversed(gone):
        more = [
            column
            for column in columns
            if column is left_out or any(column is kept for kept in shown)
        ]
        if _size(more, gap, [column.least for column in more]) <= room:
            shown = more
    _share(shown, room - _size(shown, gap, [column.least for column in shown]))
    return shown


def _size(columns: Sequence[Column], gap: int, widths: Sequence[int]) -> int:
    return sum(widths) + gap * (len(columns) - 1)


def _share(columns: Sequence[Column], room: int) -> None:
    """Share the remaining room equally among the columns that can use it, as far as they can."""
    greedy = sorted(
        (column for column in columns if column.width > column.least),
        key=lambda column: column.width,
    )
    for index, column in enumerate(greedy):
        wanted = min(column.width, column.least + room // (len(greedy) - index))
        room -= wanted - column.least
        column.wraps = wanted < column.width
        column.width = wanted
