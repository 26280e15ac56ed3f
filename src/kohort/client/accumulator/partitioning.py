# SPDX-License-Identifier: Apache-2.0
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


class StickyPartitioner:
    """Keeps to a partition for a batch's worth of bytes, then takes another one by chance.

    `chance` gives numbers from 0 to below 1. A partition with a longer queue has a smaller chance.
    `left` is how many bytes may still go to `partition`: whoever sends some counts them.
    """

    __slots__ = ("_batch_bytes", "_chance", "left", "partition")

    def __init__(self, batch_bytes: int, chance: Callable[[], float]) -> None:
        self.partition = -1
        self.left = 0
        self._batch_bytes = batch_bytes
        self._chance = chance

    def move(self, available: Sequence[int], queued: Callable[[int], int]) -> None:
        """Choose the partition of the next records. `queued` says how many batches one has to
        send.
        """
        loads = [queued(partition) for partition in available]
        most = max(loads) + 1
        number = self._chance() * sum(most - load for load in loads)
        self.left = self._batch_bytes
        for partition, load in zip(available, loads, strict=True):
            self.partition = partition
            number -= most - load
            if number < 0:
                return
