# SPDX-License-Identifier: Apache-2.0
"""A terminal: how wide it is, which styles it has, and how a table is drawn on it.

A command that shows a table in a shell is waited for, so this needs no library but for text beyond
ASCII, and writes the table of a large cluster as quickly as a pipe gets it.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TextIO

from kohort.cli.layout import Column, cell_width

GAP = 3  # characters between two columns
_WITHOUT_STYLES = ("dumb", "unknown")
_BOLD = 1
_STYLES = {"Stable": 32, "Empty": 2, "Dead": 2, "deleted": 32, "created": 32, "failed": 31}
"""Cells that have a style, and its number (ECMA-48, SGR): green, dim, red."""


def terminal_width() -> int:
    """Its columns; COLUMNS of the environment counts first, and 80 where nobody knows."""
    from shutil import get_terminal_size

    return get_terminal_size().columns


def draw(stream: TextIO, columns: Sequence[Column]) -> None:
    """A table with the widths of its columns, and a rule below its headers."""
    styled = os.environ.get("TERM") not in _WITHOUT_STYLES and not os.environ.get("NO_COLOR")
    is_unicode = (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")
    width = sum(column.width for column in columns) + GAP * (len(columns) - 1)
    lines = [_styled(line, _BOLD if styled else None) for line in _headings(columns)]
    lines.append(("─" if is_unicode else "-") * width)
    lines += _rows(columns, styled=styled)
    stream.write("\n".join(lines) + "\n")


def _headings(columns: Sequence[Column]) -> Iterator[str]:
    """Those of several lines end in the last one."""
    headings = [column.heading.split("\n") for column in columns]
    most = max(map(len, headings))
    filled = [[""] * (most - len(heading)) + heading for heading in headings]
    return _joined([_padded(column, cells) for column, cells in zip(columns, filled, strict=True)])


def _rows(columns: Sequence[Column], *, styled: bool) -> Iterator[str]:
    texts = [[column.text(row) for row in range(len(column.cells))] for column in columns]
    if any(column.wraps for column in columns):
        texts = _wrapped(columns, texts)
    cells = []
    for column, own in zip(columns, texts, strict=True):
        padded = _padded(column, own)
        if styled:
            pairs = zip(padded, own, strict=True)
            padded = [_styled(cell, _STYLES.get(text)) for cell, text in pairs]
        cells.append(padded)
    return _joined(cells)


def _wrapped(columns: Sequence[Column], texts: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells line by line: a row is as many lines as its longest cell."""
    found: list[list[str]] = [[] for _ in columns]
    for row in zip(*texts, strict=True):
        cells = [
            _lines(cell, column.width) if column.wraps else [cell]
            for column, cell in zip(columns, row, strict=True)
        ]
        most = max(map(len, cells))
        for own, lines in zip(found, cells, strict=True):
            own.extend(lines + [""] * (most - len(lines)))
    return found


def _lines(text: str, width: int) -> list[str]:
    """As many words in each line as fit. Only a very long name is wider than its column: it goes on
    in the next line.
    """
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if not lines[-1] or cell_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
        while cell_width(lines[-1]) > width:
            fits = _fitting(lines[-1], width)
            lines[-1:] = [lines[-1][:fits], lines[-1][fits:]]
    return lines


def _fitting(text: str, width: int) -> int:
    """How many characters of a text fit; one at least."""
    fits = min(len(text), width)
    while fits > 1 and cell_width(text[:fits]) > width:
        fits -= 1
    return fits


def _padded(column: Column, cells: Sequence[str]) -> list[str]:
    """The cells of a column, as wide as it is."""
    pad = str.rjust if column.is_numeric else str.ljust
    return [pad(cell, column.width + len(cell) - cell_width(cell)) for cell in cells]


def _joined(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    gap = " " * GAP
    return (gap.join(row).rstrip() for row in zip(*cells, strict=True))


def _styled(text: str, style: int | None) -> str:
    return text if style is None else f"\x1b[{style}m{text}\x1b[0m"
