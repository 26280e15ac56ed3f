"""The columns of a table that a terminal has room for. Words and numbers are never broken.

Prose gives way first, down to its longest word. Then columns are left out, in the order that the
caller gives. A table that still does not fit is shown as a list of fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

PROSE = 32  # cells that are longer, and have spaces, may be laid out over several lines
NARROWEST_PROSE = 24
FEWEST = 2


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
        from rich.cells import cell_len

        widths = [cell_len(cell) for cell in self.cells]
        head = cell_len(self.header)
        self.width = max([head, *widths])
        self.least = self.width
        if any(
            width > PROSE and " " in cell for cell, width in zip(self.cells, widths, strict=True)
        ):
            words = [cell_len(word) for cell in self.cells for word in cell.split()]
            self.least = min(self.width, max([head, NARROWEST_PROSE, *words]))


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
            return None
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
    """Share the remaining room equally among the columns of prose, as far as they can use it."""
    greedy = sorted(
        (column for column in columns if column.width > column.least),
        key=lambda column: column.width,
    )
    for index, column in enumerate(greedy):
        wanted = min(column.width, column.least + room // (len(greedy) - index))
        room -= wanted - column.least
        column.wraps = wanted < column.width
        column.width = wanted
