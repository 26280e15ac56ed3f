"""A line of the broker's log, as `kohort serve` and a broker under test write it."""

import logging
from typing import Any

from kohort.escaping import visible

TRACEBACK = "\nTraceback (most recent call last):\n"
_INDENT = "    "


def one_line(text: str) -> str:
    """The text with what is not seen escaped: a name that a client chose must not begin a line of
    the log, nor look like another name. A traceback keeps its lines, with some room in front of
    each, as it may hold such names as well.
    """
    message, found, rest = text.partition(TRACEBACK)
    lines = f"{found}{rest}".strip("\n").split("\n") if found else []
    return f"\n{_INDENT}".join(visible(line) for line in [message, *lines])


class OneLineFormatter(logging.Formatter):
    """Formats a record by `one_line`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (its name there)
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802  (its name there)
        lines = super().formatException(ei).split("\n")
        return "\n".join(_INDENT + visible(line) for line in lines)
