# SPDX-License-Identifier: Apache-2.0
"""Lines for the log of the broker, each of them one line, and bounded: a client must not write it.

A line has a kilobyte at most, and of each kind some are written in a second. How many were left out
is told afterwards. A kind is the place in the code that tells of it, so nothing that a client sends
makes a kind. Lines about groups may come in larger numbers, since a restart of many consumers
changes many groups at once.
"""

import logging
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from kohort.escaping import visible
from kohort.runtime.observers import Observer

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


LINE_BYTES = 900  # with the time, the level and what is told of the rest: below a kilobyte
LINES_A_SECOND = 10
GROUP_LINES_A_MINUTE = 3000
TRACEBACK_LINES = 100
SAMPLE_BYTES = 120
_SECOND, _MINUTE = (LINES_A_SECOND, 1.0), (GROUP_LINES_A_MINUTE, 60.0)
_OF_GROUPS = "kohort.runtime.driver"  # what it tells at INFO are changes of groups


class _Kind:
    """The lines of one place: when the latest were written, and how many were left out since."""

    __slots__ = ("last", "left_out", "most", "seconds", "times", "write")

    def __init__(self, write: Callable[[str], None], most: int, seconds: float) -> None:
        self.write = write
        self.most = most
        self.seconds = seconds
        self.times: deque[float] = deque(maxlen=most)
        self.left_out = 0
        self.last = ""

    def full(self, now: float) -> bool:
        return len(self.times) == self.most and now - self.times[0] < self.seconds


class BoundedLines:
    """An Observer that passes on to another one what it may write. `now` is seconds."""

    def __init__(self, observe: Observer, now: Callable[[], float]) -> None:
        self._observe = observe
        self._now = now
        self._kinds: dict[tuple[str, int, str], _Kind] = {}  # by file, line in it, and level
        self._left_out = 0  # of all kinds, and not told yet

    def info(self, text: str, /) -> None:
        self._tell("info", self._observe.info, text)

    def warning(self, text: str, /) -> None:
        self._tell("warning", self._observe.warning, text)

    def error(self, text: str, /) -> None:
        self._tell("error", self._observe.error, text)

    def tell_left_out(self, *, at_once: bool = False) -> None:
        """Tell how many lines were left out, of each kind that may be written again. Call this now
        and then, and `at_once` at the end.
        """
        now = self._now()
        for kind in self._kinds.values() if self._left_out else ():
            if kind.left_out and (at_once or not kind.full(now)):
                count, kind.left_out = kind.left_out, 0
                self._left_out -= count
                kind.write(f"left out {count:,} lines like this one: {kind.last}")

    def _tell(self, level: str, write: Callable[[str], None], text: str) -> None:
        caller = sys._getframe(2)  # noqa: SLF001  (the place is the kind)
        place = caller.f_code.co_filename, caller.f_lineno, level
        kind = self._kinds.get(place)
        if kind is None:
            groups = level == "info" and caller.f_globals.get("__name__") == _OF_GROUPS
            kind = self._kinds[place] = _Kind(write, *(_MINUTE if groups else _SECOND))
        now = self._now()
        if kind.full(now):
            kind.left_out += 1
            self._left_out += 1
            kind.last = bounded(text.partition("\n")[0], SAMPLE_BYTES)
            return
        if self._left_out:
            self.tell_left_out()
        kind.times.append(now)
        write(_with_traceback(text) if level == "error" else bounded(text))


def _with_traceback(text: str) -> str:
    message, found, trace = text.partition(TRACEBACK)
    return bounded(message) + (found and found + _bounded_traceback(trace))


def bounded(text: str, limit_bytes: int = LINE_BYTES) -> str:
    """The text, or as much of its beginning as takes so many bytes of UTF-8 once it is escaped."""
    if len(text) <= limit_bytes and text.isascii() and text.isprintable():
        return text
    size = 0
    for end, character in enumerate(text[: limit_bytes + 1]):
        size += len(visible(character).encode())
        if size > limit_bytes:
            return f"{text[:end]}... and {len(text) - end:,} characters more"
    return text


def _bounded_traceback(text: str) -> str:
    """The first and the last lines: the last ones say what has happened."""
    lines = text.rstrip("\n").split("\n")
    more = len(lines) - TRACEBACK_LINES
    if more > 0:
        half = TRACEBACK_LINES // 2
        lines = [*lines[:half], f"... and {more:,} lines more ...", *lines[-half:]]
    return "\n".join(map(bounded, lines)) + "\n"
