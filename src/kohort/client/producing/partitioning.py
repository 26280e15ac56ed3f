"""Where a record goes: by the hash of its key, or where the records without a key go at the moment.

Java's producer does the same (KIP-794), so that both write a key to the same partition.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, as Java's producer chooses it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=4096)
def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 that Java's client uses, unsigned."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    size = len(data)
    value = 0x9747B28C ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ word
    if size > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


class Sticky:
    """Keeps to a partition for a batch's worth of bytes, then takes another one by chance.

    `chance` gives numbers from 0 to below 1. A partition with a longer queue has a smaller chance.
    """

    def __init__(self, batch_bytes: int, chance: Callable[[], float]) -> None:
        self._batch_bytes = batch_bytes
        self._chance = chance
        self._partition: int | None = None
        self._left = 0

    def current(self, available: Callable[[], Sequence[int]], queued: Callable[[int], int]) -> int:
        """Where the next record goes. `available` are the partitions to choose from, and `queued`
        says how many batches one has to send.
        """
        if self._partition is None or self._left <= 0:
            self._partition = self._pick(available(), queued)
            self._left = self._batch_bytes
        return self._partition

    def took(self, size: int) -> None:
        """A record of so many bytes went to the current partition."""
        self._left -= size

    def move(self) -> None:
        """The batch of the current partition is full: the next record goes elsewhere."""
        self._left = 0

    def _pick(self, available: Sequence[int], queued: Callable[[int], int]) -> int:
        loads = [queued(partition) for partition in available]
        most = max(loads) + 1
        number = self._chance() * sum(most - load for load in loads)
        for partition, load in zip(available, loads, strict=True):
            number -= most - load
            if number < 0:
                return partition
        return available[-1]
