# SPDX-License-Identifier: Apache-2.0
"""Columns as the Java tools lay them out: filled on the right, as wide as Java counts."""

from collections.abc import Iterable, Sequence

MISSING = "-"


def width(text: str) -> int:
    """The length of a text in Java: of UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def widest(least: int, texts: Iterable[str]) -> int:
    """The width of a column that is at least so wide."""
    return max([least, *map(width, texts)])


def filled(cells: Sequence[object], widths: Sequence[int]) -> str:
    """A row. Cells beyond the widths are as wide as they are."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    if not "".join(texts).isascii():
        pairs = zip(widths, texts, strict=False)
        widths = [wanted + len(text) - width(text) for wanted, text in pairs]
    return " ".join([*map(str.ljust, texts, widths), *texts[len(widths) :]])


def shown(value: object) -> str:
    """A cell; `-` where there is nothing."""
    return MISSING if value is None else str(value)
