# SPDX-License-Identifier: Apache-2.0
"""How long the broker remembers idempotent producers, and how many of them.

Each costs about half a kilobyte in each partition that it writes to. It is forgotten when it has
been silent for producer.id.expiration.ms, as upstream has it. A client that begins as a new
producer again and again could fill the memory within that time, so there is a bound as well: the
partitions that have most keep no more than others, and forget those that have been silent longest.
A producer that is forgotten may go on writing; a batch that it sends again is not known any more.
"""

from collections.abc import Collection

from kohort.runtime.observers import Observer
from kohort.server.partitions.partition import Partition
from kohort.terms import Millis

PRODUCERS_MAX = 300_000  # of all partitions together: about 150 MB


class ProducerExpiration:
    """`count` is how many were remembered at the last look."""

    def __init__(self, observe: Observer) -> None:
        self.count = 0
        self._observe = observe

    def look(self, partitions: Collection[Partition], silent_since: Millis) -> None:
        """Forget those that are silent since then, and those that are too many."""
        count = _expired(partitions, silent_since)
        while count > PRODUCERS_MAX and (left := _expired(partitions, silent_since)) < count:
            count = left
        if count > PRODUCERS_MAX:
            level = _level([partition.producer_count for partition in partitions], PRODUCERS_MAX)
            for partition in partitions:
                count -= partition.forget_producers(max(0, partition.producer_count - level))
            self._observe.warning(
                f"more than {PRODUCERS_MAX} producers have written within "
                "producer.id.expiration.ms: those that have been silent longest are forgotten, of "
                f"partitions with more than {level}"
            )
        self.count = count


def _expired(partitions: Collection[Partition], silent_since: Millis) -> int:
    """Forget some that are silent since then; how many are left."""
    return sum(partition.expire_producers(silent_since) for partition in partitions)


def _level(counts: list[int], most: int) -> int:
    """How many each may keep, so that all together are `most` at most."""
    left = len(counts)
    for count in sorted(counts):
        if count * left > most:
            break
        most -= count
        left -= 1
    return most // max(left, 1)
