# SPDX-License-Identifier: Apache-2.0
"""The producers of a partition as its log has them: `read_on` reads it, in slices.

A start does not pay for them: most partitions never see a producer of this kind. They are read when
the first of them writes, from the first file on that is not older than producer.id.expiration.ms.
"""

from collections.abc import Callable

from kohort.server.partitions.log_reader import LogReader
from kohort.server.partitions.producers import Producers
from kohort.storage.log import StoredLog
from kohort.terms import Millis, Offset
from kohort.wire import batch as batches
from kohort.wire.batch import BatchHeader


class PartitionProducers(LogReader):
    """`producers` are those of the log up to the offset `seen`.

    `now` is the time at which a batch counts that is read: how long its producer has been silent
    before that start is not known.
    """

    __slots__ = ("_begun", "_note", "_since", "now", "producers")

    def __init__(
        self, start: Offset, note: Callable[[int], None], now: Millis, expiration_ms: int
    ) -> None:
        super().__init__(start)
        self.producers = Producers(whole=start == 0, note=note)
        self.now = now
        self._note = note
        self._since = Millis(now - expiration_ms)
        self._begun = False

    def read_on(self, log: StoredLog, most: int) -> bool:
        """Take in at most so many batches; true while there are more. Raises Broken, or WireError,
        where they cannot be read.
        """
        if not self._begun:
            first = log.first_since(self._since, most)
            if first is None:
                return True
            self.producers = Producers(whole=first == 0, note=self._note)
            self.seen, self._begun = first, True
        return self.catch_up(log, most)

    def _take(self, header: BatchHeader, log: StoredLog) -> None:
        if header.producer_id >= 0:
            base = Offset(header.base_offset)
            whose = _coordinator_epoch(base, log) if header.is_control else -1
            self.producers.written(header, base, self.now, whose)


def _coordinator_epoch(marker: Offset, log: StoredLog) -> int:
    """Of the marker at an offset. The cleaner may have left its header only, or nothing."""
    data = log.fetch(marker, 1)
    if not data or batches.peek(data).base_offset != marker:
        return -1
    entries = batches.entries(data)
    return batches.marker_coordinator_epoch(entries[0][3]) if entries else -1
