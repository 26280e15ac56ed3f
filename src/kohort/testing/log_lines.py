# SPDX-License-Identifier: Apache-2.0
"""The lines of a broker under test: kept for `Broker.log`, and passed on to the program's log.

The test may disable logging, patch the time of its records, and have handlers that fail. The lines
are kept all the same, and a handler that fails costs only its own line.
"""

import logging
from contextlib import suppress
from copy import copy

from kohort.runtime import clocks
from kohort.server.log_lines import one_line

LINES_MAX = 10_000
_RECORD = logging.LogRecord("kohort", logging.INFO, __file__, 0, "", (), None)


class LogLines:
    """Takes what a broker reports, as an Observer; keeps the latest lines in a list."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def info(self, text: str, /) -> None:
        self._add(logging.INFO, text)

    def warning(self, text: str, /) -> None:
        self._add(logging.WARNING, text)

    def error(self, text: str, /) -> None:
        self._add(logging.ERROR, text)

    def _add(self, level: int, text: str) -> None:
        seconds = clocks.wall()
        at = clocks.strftime("%Y-%m-%d %H:%M:%S", clocks.localtime(seconds))
        name = _NAMES[level]
        self._lines.append(f"{at},{int(seconds % 1 * 1000):03} {name} {one_line(text)}")
        del self._lines[:-LINES_MAX]
        program = logging.getLogger("kohort")
        with suppress(Exception):  # the handlers are the test's
            if program.isEnabledFor(level):
                program.handle(_record(level, name, text, seconds))


_NAMES = {logging.INFO: "INFO", logging.WARNING: "WARNING", logging.ERROR: "ERROR"}


def _record(level: int, name: str, text: str, seconds: float) -> logging.LogRecord:
    """A record of the module logging. Its own constructor asks `time.time`, which may be a mock
    that counts its calls.
    """
    record = copy(_RECORD)
    record.levelno, record.levelname, record.msg = level, name, text
    record.created, record.msecs = seconds, seconds % 1 * 1000
    return record
