"""How long the broker remembers idempotent producers, and how many of them.

Each costs about half a kilobyte in each partition that it writes to. It is forgotten when it has
been silent for producer.id.expiration.ms, as upstream has it. A client that begins as a new
producer again and again could fill the memory within that time, so there is a bound as well: those
that have been silent longest go first, of the partitions that have most. A producer that is
forgotten may go on writing; a batch that it sends again is not known any more.
"""

from collections.abc import Collection

from kohort.runtime.observers import Observer
from kohort.server.partitions import Partition
from kohort.terms import Millis

PRODUCERS_MAX = 300_000  # of all partitions together: about 150 MB


class ProducerExpiration:
    """`count` is how many were remembered at the last look."""

    def __init__(self, observe: Observer) -> None:
        self.count = 0
        self._observe = observe

    def look(self, partitions: Collection[Partition], silent_since: Millis) -> None:
        """Forget those that are silent since then, and those that are too many."""
        count = sum(partition.expire_producers(silent_since) for partition in partitions)
        if count > PRODUCERS_MAX:
            left = self._forget(partitions, count - PRODUCERS_MAX)
            self._observe.warning(
                f"{count - left} of {count} producers are forgotten before their time, expected at "
                f"most {PRODUCERS_MAX} within producer.id.expiration.ms"
            )
            count = left
        self.count = count

    @staticmethod
    def _forget(partitions: Collection[Partition], over: int) -> int:
        """Forget so many; how many are left."""
        by_count = sorted(partitions, key=lambda partition: -partition.producer_count)
        for partition in by_count:
            if over > 0:
                over -= partition.forget_producers(over)
        return sum(partition.producer_count for partition in partitions)
