"""Tables for people, plain columns for pipes, JSON for programs.

On a terminal rich draws the table; into a pipe go aligned columns that do not depend on a width, so
that scripts may rely on them. What brokers send is shown with control characters escaped.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

Cell = str | int | None
NOTHING = "-"
ERASE = "\r\x1b[K"  # back to the start of the line, and nothing on it


class Output:
    """Where a command's results go, in the format that was asked for."""

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self.as_json = as_json
        self.doing = "asking the cluster"  # what a line of progress says; see progress.py

    def json(self, value: object) -> None:
        """One JSON document."""
        erase_progress()
        self._stream.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def line(self, text: str = "") -> None:
        """A line between tables."""
        erase_progress()
        self._stream.write(printable(text) + "\n")

    def text(self, text: str) -> None:
        """Text of our own as it is, with its line ends."""
        erase_progress()
        self._stream.write(text)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """A table; None shows as `-`, numbers stand at the right of their column."""
        erase_progress()
        all_rows = list(rows)
        if self._terminal:
            self._drawn(headers, all_rows)
        else:
            for line in columns(headers, all_rows):
                self._stream.write(line + "\n")

    def _drawn(self, headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        from rich import box  # noqa: PLC0415  (imported only where it draws)
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for index, header in enumerate(headers):
            right = _is_numeric(rows, index)
            table.add_column(header, justify="right" if right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_text(cell), style=_style(cell)) for cell in row))
        Console(file=self._stream).print(table)


def erase_progress() -> None:
    """Take the line of progress away, where there may be one, before something else is written."""
    if sys.stderr.isatty():
        sys.stderr.write(ERASE)
        sys.stderr.flush()


def columns(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A header and rows as aligned text, two spaces between columns."""
    texts = [list(headers), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in texts) for index in range(len(headers))]
    numeric = [_is_numeric(rows, index) for index in range(len(headers))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in texts
    ]


def _is_numeric(rows: Sequence[Sequence[Cell]], index: int) -> bool:
    cells = [row[index] for row in rows]
    return any(isinstance(cell, int) for cell in cells) and not any(
        isinstance(cell, str) for cell in cells
    )


def _text(cell: Cell) -> str:
    return NOTHING if cell is None or cell == "" else printable(str(cell))


_STYLES = {
    "Stable": "green",
    "Empty": "dim",
    "Dead": "dim",
    "deleted": "green",
    "created": "green",
    "failed": "red",
}


def _style(cell: Cell) -> str:
    return _STYLES.get(cell, "") if isinstance(cell, str) else ""


def printable(text: str) -> str:
    """The text with control characters escaped: a group id must not move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def partitions_text(assignment: Mapping[str, Sequence[int]] | None) -> str | None:
    """`orders:0-2,5 payments:1`; None for nothing known, `nothing` for nothing assigned."""
    if assignment is None:
        return None
    return (
        " ".join(f"{topic}:{runs(indexes)}" for topic, indexes in sorted(assignment.items()))
        or "nothing"
    )


def runs(indexes: Iterable[int]) -> str:
    """Numbers in short: `0-2,5`."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
