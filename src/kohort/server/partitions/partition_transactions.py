# SPDX-License-Identifier: Apache-2.0
"""What a partition knows of transactions: where open ones begin, and which were aborted (KIP-98).

Consumers that read committed records read up to the first record of an open transaction, and are
told which of the records before it were aborted. All of this is in the log: `catch_up` reads it,
in slices if that is wanted.
"""

from bisect import bisect_left
from typing import NamedTuple

from kohort.server.partitions.log_reader import LogReader
from kohort.storage.log import StoredLog
from kohort.terms import Offset
from kohort.wire import batch as batches
from kohort.wire.batch import BatchHeader


class AbortedTxn(NamedTuple):
    """An aborted transaction: its first record, its marker, and what was stable at that."""

    producer_id: int
    first: Offset
    last: Offset
    stable: Offset


class PartitionTransactions(LogReader):
    """The transactions of one log, up to the offset `seen`."""

    __slots__ = ("_aborted", "_ended", "_open")

    def __init__(self, seen: Offset) -> None:
        super().__init__(seen)
        self._open: dict[int, Offset] = {}  # the first record by producer, in the order of the log
        self._ended: list[tuple[Offset, Offset]] = []  # first record and marker, not yet durable
        self._aborted: list[AbortedTxn] = []  # in the order of their markers

    @classmethod
    def of(cls, log: StoredLog) -> "PartitionTransactions":
        """Those of a whole log. Raises Broken where it cannot be read."""
        made = cls(log.start)
        made.catch_up(log)
        return made

    def _take(self, header: BatchHeader, log: StoredLog) -> None:
        if not header.is_transactional or header.last_offset < log.start:
            return
        base = Offset(header.base_offset)
        if not header.is_control:  # then the header is enough
            if header.count:  # the cleaner has emptied it otherwise: its transaction has ended
                self.wrote(header.producer_id, base)
            return
        data = log.fetch(base, 1)
        if batches.peek(data).base_offset != base:  # cleaned away meanwhile, behind all its records
            self.ended(header.producer_id, base, commit=True)
            return
        for _, _, key, _ in batches.entries(data):
            self.ended(header.producer_id, base, commit=batches.marker_commits(key))

    @property
    def producers(self) -> dict[int, Offset]:
        """The producers with an open transaction here, and its first record. Not to be changed."""
        return self._open

    def wrote(self, producer_id: int, base_offset: Offset) -> None:
        """A batch of a transaction begins here."""
        self._open.setdefault(producer_id, base_offset)

    def ended(self, producer_id: int, marker: Offset, *, commit: bool) -> None:
        """A marker is written. One without a transaction ends nothing."""
        first = self._open.pop(producer_id, None)
        if first is None:
            return
        self._ended.append((first, marker))
        if not commit:
            stable = next(iter(self._open.values()), Offset(marker + 1))
            self._aborted.append(AbortedTxn(producer_id, first, marker, stable))

    def stable(self, high_watermark: Offset) -> Offset:
        """Everything before is decided, durably: the last stable offset."""
        if self._ended:
            self._ended = [ended for ended in self._ended if ended[1] >= high_watermark]
        firsts = [first for first, _ in self._ended]
        if self._open:
            firsts.append(next(iter(self._open.values())))
        return min(high_watermark, *firsts) if firsts else high_watermark

    def aborted(self, start: Offset, end: Offset) -> list[AbortedTxn]:
        """The aborted transactions that may have records at `start` or behind it, before `end`."""
        found = []
        at = bisect_left(self._aborted, start, key=lambda aborted: aborted.last)
        for transaction in self._aborted[at:]:
            if transaction.first < end:
                found.append(transaction)
            if transaction.stable >= end:
                break  # those that were aborted later begin behind it
        return found

    def forget_before(self, start: Offset) -> None:
        """The log begins here now: nobody reads what was aborted before."""
        at = bisect_left(self._aborted, start, key=lambda aborted: aborted.last)
        if at:
            del self._aborted[:at]
