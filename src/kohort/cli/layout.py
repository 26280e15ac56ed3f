"""Which columns of a table a terminal has room for. Words and numbers are never broken.

Prose gives way first, down to its longest word. Then columns go, those first that the caller can do
without best. What still does not fit is no table: it is shown as a list of fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

PROSE = 32  # cells that are longer, and have spaces, may be laid out over several lines
NARROWEST_PROSE = 24
FEWEST = 2


@dataclass(slots=True)
class Column:
    """A column as text. `width` is what its longest cell takes, until `fitting` decides on less."""

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
    """The columns that are shown, with their widths; None when no table fits into `room`.

    `spare` has the headers that may be left out, the first one first. Without it the columns on the
    right are spared, but for the first two.
    """
    shown = list(columns)
    order = [one.header for one in reversed(columns[FEWEST:])] if spare is None else spare
    left = [header for header in order if any(one.header == header for one in columns)]
    while _size(shown, gap, [one.least for one in shown]) > room:
        if not left:
            return None
        header = left.pop(0)
        shown = [one for one in shown if one.header != header]
    _share(shown, room - _size(shown, gap, [one.least for one in shown]))
    return shown


def _size(columns: Sequence[Column], gap: int, widths: Sequence[int]) -> int:
    return sum(widths) + gap * (len(columns) - 1)


def _share(columns: Sequence[Column], room: int) -> None:
    """Give prose what is left over, the same to each as far as it can use it."""
    greedy = sorted((one for one in columns if one.width > one.least), key=lambda one: one.width)
    for index, one in enumerate(greedy):
        wanted = min(one.width, one.least + room // (len(greedy) - index))
        room -= wanted - one.least
        one.wraps = wanted < one.width
        one.width = wanted
