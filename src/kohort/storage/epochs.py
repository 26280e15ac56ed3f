# SPDX-License-Identifier: Apache-2.0
"""Which leader epoch of a partition began where: `leader-epoch-checkpoint`, as one asks it."""

from bisect import bisect_right
from collections.abc import Iterable

from kohort.terms import Offset
from kohort.wire.batch import BatchHeader

UNKNOWN_EPOCH = -1


class LeaderEpochs:
    """Epochs and where each begins, both rising. It ends where the next one begins."""

    def __init__(self, entries: Iterable[tuple[int, Offset]]) -> None:
        self._entries = list(entries)

    @classmethod
    def of_batches(cls, headers: Iterable[BatchHeader]) -> "LeaderEpochs":
        """What the batches of a log tell, in their order."""
        found = cls([])
        for header in headers:
            if header.partition_leader_epoch > found.latest:
                found._entries.append((header.partition_leader_epoch, Offset(header.base_offset)))
        return found

    @property
    def entries(self) -> tuple[tuple[int, Offset], ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """Or -1, when none is known."""
        return self._entries[-1][0] if self._entries else UNKNOWN_EPOCH

    def begin(self, epoch: int, end: Offset) -> None:
        """A new leader's, whose first record will be the next one of the log."""
        # An epoch without records begins nowhere.
        self._entries = [entry for entry in self._entries if entry[1] < end]
        self._entries.append((epoch, end))

    def at(self, offset: Offset) -> int:
        """Of the record at an offset; -1 before all that are known."""
        place = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[place - 1][0] if place else UNKNOWN_EPOCH

    def end_of(self, epoch: int, start: Offset, end: Offset) -> tuple[int, Offset] | None:
        """The largest epoch up to this one, and where it ended, in a log from `start` to `end`
        (KIP-101, KIP-320): the epoch itself when it is older than all that are there; None when it
        is newer than all.
        """
        if epoch == self.latest:
            return epoch, end
        place = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        if place == len(self._entries):
            return None
        behind = max(self._entries[place][1], start)
        known = place > 0 and behind > start  # what has no record left is as good as unknown
        return (self._entries[place - 1][0] if known else epoch), min(behind, end)
