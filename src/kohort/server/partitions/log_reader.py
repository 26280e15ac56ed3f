"""Reads what a log says of something, in slices, and goes on where it has ended."""

from collections.abc import Iterator

from kohort.storage.log import EVERY_BATCH, Log
from kohort.terms import Offset
from kohort.wire.batch import BatchHeader


class LogReader:
    """It has taken in the headers up to the offset `seen`. A subclass says what it keeps."""

    __slots__ = ("_unread", "seen")

    def __init__(self, seen: Offset) -> None:
        self.seen = seen
        self._unread: Iterator[BatchHeader] | None = None  # what follows

    def catch_up(self, log: Log, most: int = EVERY_BATCH) -> bool:
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

    def _take(self, header: BatchHeader, log: Log) -> None:
        raise NotImplementedError
