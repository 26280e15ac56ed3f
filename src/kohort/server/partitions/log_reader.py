# SPDX-License-Identifier: Apache-2.0
"""Reads what a log says of something, in slices, and goes on where it has ended.

What must be read before somebody can be answered, and is too much for one turn, is a `PendingRead`.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from kohort.storage.log import EVERY_BATCH, StoredLog
from kohort.terms import Offset
from kohort.wire.batch import BatchHeader


class LogReader:
    """It has taken in the headers up to the offset `seen`. A subclass says what it keeps."""

    __slots__ = ("_unread", "seen")

    def __init__(self, seen: Offset) -> None:
        self.seen = seen
        self._unread: Iterator[BatchHeader] | None = None  # what follows

    def catch_up(self, log: StoredLog, most: int = EVERY_BATCH) -> bool:
        """Take in at most so many batches that are in the log and were not told of; true while
        there are more. Raises Broken, or WireError, where they cannot be read.
        """
        unread = self._unread or log.headers(self.seen)
        self._unread = None
        for header in unread:
            self._take(header, log)
            self.seen = Offset(header.last_offset + 1)
            most -= 1
            if not most:
                break
        else:
            self.seen = log.end
        if self.seen == log.end:
            return False
        self._unread = unread
        return True

    def _take(self, header: BatchHeader, log: StoredLog) -> None:
        raise NotImplementedError


AT_ONCE_BATCHES = 16
"""So many headers of a log are read at once, and then nobody waits: a request may name a thousand
logs. Whoever needs more of them waits for `log_reads.py`.
"""


class PendingRead(Protocol):
    """A part of a log. Two that are equal are the same part: it is read once for all who wait."""

    @property
    def partition(self) -> object: ...
    def read_on(self, most: int) -> bool:
        """Read at most so many batches; true while there may be more. Raises ApiError where the log
        cannot be read.
        """

    def __hash__(self) -> int: ...


class PendingReadError(Exception):
    """Nothing has been done: something must be read first, or nothing but that others wait to write
    there already. Try again when it is your turn (`LogReadQueue.wait_to_write`).
    """

    def __init__(self, partition: Any, unread: PendingRead | None = None) -> None:
        super().__init__(f"{partition} must be read first")
        self.partition = partition
        self.unread = unread
