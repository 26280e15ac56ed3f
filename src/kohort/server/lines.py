"""A line of the broker's log, as `kohort serve` and a broker under test write it."""

import logging
from typing import Any

# What is taken for printable and has no width: joiners, fillers, selectors of variants.
_IGNORABLE = (
    range(0x34F, 0x350),
    range(0x115F, 0x1161),
    range(0x17B4, 0x17B6),
    range(0x180B, 0x1810),
    range(0x3164, 0x3165),
    range(0xFE00, 0xFE10),
    range(0xFFA0, 0xFFA1),
    range(0xE0100, 0xE01F0),
)


class _Codes:
    """A table for `str.translate`. What cannot be printed becomes its code: what ends a line, has
    no width, or turns the direction of what follows. It keeps nothing: names are chosen by clients.
    """

    def __getitem__(self, code: int) -> int | str:
        seen = chr(code).isprintable() and not any(code in part for part in _IGNORABLE)
        return code if seen else f"\\x{code:02x}"


_CODES = _Codes()
_TRACEBACK = "\nTraceback (most recent call last):\n"
_INDENT = "    "


def visible(line: str) -> str:
    """A line in which every character is seen, and where it stands: others are escaped."""
    if line.isascii() and line.isprintable():
        return line
    return line.translate(_CODES)


def one_line(text: str) -> str:
    """The text with what is not seen escaped: a name that a client chose must not begin a line of
    the log, nor look like another name. A traceback keeps its lines, with some room in front of
    each, as it may hold such names as well.
    """
    message, found, rest = text.partition(_TRACEBACK)
    lines = f"{found}{rest}".strip("\n").split("\n") if found else []
    return f"\n{_INDENT}".join(visible(line) for line in [message, *lines])


class OneLine(logging.Formatter):
    """Formats a record by `one_line`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (its name there)
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802  (its name there)
        lines = super().formatException(ei).split("\n")
        return "\n".join(_INDENT + visible(line) for line in lines)
