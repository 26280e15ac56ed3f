# SPDX-License-Identifier: Apache-2.0
"""Tables for people, plain columns for pipes, documents for programs.

A terminal shows the columns that it has room for. A pipe gets all of them, aligned,
whatever any width is: scripts may rely on that. Control characters in what brokers send are
escaped.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from kohort.cli.layout import Column

Cell = str | int | None
NOTHING = "-"
TABLE, JSON, JSON_LINES, CSV = FORMATS = ("table", "json", "jsonl", "csv")
ERASE = "\r\x1b[K"  # back to the start of the line, and nothing on it


class _Escaping:
    """A terminal, for lines that have names as they are: a program would read those, a person who
    looks at them must not have the terminal do what a name says.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("\n".join(map(printable, text.split("\n"))))


class Output:
    """Where a command's results go, in the format that was asked for. Call `end` after the last."""

    def __init__(self, stream: TextIO, form: str = TABLE) -> None:
        self._stream = stream
        self._form = form
        self._terminal = stream.isatty()
        self._left_out: dict[str, None] = {}
        self.is_table = form == TABLE
        self.has_document = False
        self.doing = "asking the cluster"  # what a line of progress shows; see progress.py
        self.is_changing = False  # whether that may change something before it is answered
        self.has_changed = False  # whether such work was answered

    @contextmanager
    def changing(self, doing: str) -> Iterator[None]:
        """The work of this block changes the cluster: an interrupt then says so."""
        self.doing, self.is_changing = doing, True
        yield
        self.is_changing, self.has_changed = False, True

    def json(self, value: object) -> None:
        """One JSON document."""
        from kohort.cli.documents import write_json

        erase_progress()
        self.has_document = True
        write_json(self._stream, value)

    def error(self, fields: Mapping[str, Any]) -> None:
        """What a program gets for an answer that there is none of, unless it has a part of one: a
        document of JSON. Lines and CSV have no place for it.
        """
        if self._form == JSON and not self.has_document:
            self.json(fields)

    def rows(
        self,
        name: str,
        rows: Iterable[Mapping[str, Any]],
        columns: Sequence[str],
        *,
        nested: str | None = None,
        **beside: object,
    ) -> None:
        """Rows for a program, in the format that it asked for: all of one JSON document, under
        their `name` and with what is `beside` them; or a document for each; or the `columns` of
        them in CSV, with a line for each that is `nested` in them under a name.
        """
        from kohort.cli import documents

        erase_progress()
        self.has_document = True
        if self._form == CSV:
            stream = _Escaping(self._stream) if self._terminal else self._stream
            documents.write_csv(stream, columns, rows, nested)
        elif self._form == JSON_LINES:
            documents.write_json_lines(self._stream, rows)
        else:
            documents.write_json_rows(self._stream, name, rows, beside)

    def line(self, text: str = "") -> None:
        """A line between tables."""
        erase_progress()
        self._stream.write(printable(text) + "\n")

    def text(self, text: str) -> None:
        """Text of our own, unchanged, with its line ends."""
        erase_progress()
        self._stream.write(text)

    def csv(self, text: str) -> None:
        """Lines of CSV in UTF-8, for a program: what reads an escape takes it for another name. On
        a terminal names in them control nothing.
        """
        erase_progress()
        if isinstance(self._stream, TextIOWrapper):
            self._stream.reconfigure(encoding="utf-8", errors="strict")
        (_Escaping(self._stream) if self._terminal else self._stream).write(text)

    def table(
        self,
        headers: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        *,
        spare: Sequence[str] | None = None,
    ) -> None:
        """A table. None is shown as `-`; numbers are aligned to the right.

        On a terminal that is too narrow the columns of `spare` are left out, the first one first;
        by default those on the right. On one that is narrower still it becomes a list of fields.
        """
        erase_progress()
        all_rows = list(rows)
        if self._terminal:
            self._drawn(headers, all_rows, spare)
        else:
            self._stream.write("\n".join(columns(headers, all_rows)) + "\n")

    def end(self) -> None:
        """Say what was left out of the tables, if anything was."""
        if self._left_out:
            self.line(f"(too narrow for {', '.join(self._left_out)})")

    def _drawn(
        self, headers: Sequence[str], rows: Sequence[Sequence[Cell]], spare: Sequence[str] | None
    ) -> None:
        from kohort.cli.layout import Column, fitting
        from kohort.cli.terminal import GAP, draw, terminal_width

        texts = [
            Column(header, *_texts(cells))
            for header, cells in zip(headers, _turned(headers, rows), strict=True)
        ]
        shown = fitting(texts, terminal_width(), GAP, spare)
        if shown is None:
            self._listed(texts, len(rows))
            return
        kept = {column.header for column in shown}
        self._left_out.update(dict.fromkeys(header for header in headers if header not in kept))
        draw(self._stream, shown)

    def _listed(self, texts: "Sequence[Column]", count: int) -> None:
        """A line for each field. A value that is wider than the terminal is kept whole."""
        width = max(len(text.header) for text in texts)
        for row in range(count):
            if row:
                self._stream.write("\n")
            for text in texts:
                self._stream.write(f"{text.header.ljust(width)}  {text.cells[row]}\n")


def erase_progress() -> None:
    """Remove the line of progress, if there may be one, before something else is written."""
    if sys.stderr.isatty():
        sys.stderr.write(ERASE)
        sys.stderr.flush()


def columns(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A header and rows as aligned text, two spaces between columns."""
    shown, formats = [], []
    for header, cells in zip(headers, _turned(headers, rows), strict=True):
        texts, is_numeric = _texts(cells)
        width = max(len(header), *map(len, texts)) if texts else len(header)
        formats.append(f"%{width}s" if is_numeric else f"%-{width}s")
        shown.append(texts)
    form = "  ".join(formats)
    return [(form % line).rstrip() for line in (tuple(headers), *zip(*shown, strict=True))]


def _turned(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Sequence[Sequence[Cell]]:
    """The cells by column."""
    return [*zip(*rows, strict=True)] if rows else [()] * len(headers)


def _texts(cells: Sequence[Cell]) -> tuple[Sequence[str], bool]:
    """The cells of a column, and whether they are numbers. A cluster has thousands of tables, so
    what the cells of a column have in common is looked at once.
    """
    kinds = {*map(type, cells)}
    if kinds == _NUMBERS:
        return [*map(str, cells)], True
    if kinds == _MISSING:
        return [NOTHING] * len(cells), False
    texts = [NOTHING if cell is None or cell == "" else str(cell) for cell in cells]
    has_text = any(issubclass(kind, str) for kind in kinds)
    if has_text:
        together = "".join(texts)
        if printable(together) != together:
            texts = [*map(printable, texts)]
    return texts, not has_text and bool(kinds)


_NUMBERS, _MISSING = {int}, {type(None)}


def name_text(name: str) -> str:
    """A name in a table: the empty one, which a group may have, is no missing one."""
    return name or '""'


def printable(text: str) -> str:
    """The text with escapes for what would not be seen: a group id must not move the cursor."""
    if text.isascii() and text.isprintable():
        return text
    from kohort.escaping import visible

    return visible(text)


def partitions_text(assignment: Mapping[str, Sequence[int]] | None) -> str | None:
    """`orders:0-2,5 payments:1`; `-` for None (unknown), `nothing` for nothing assigned."""
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
