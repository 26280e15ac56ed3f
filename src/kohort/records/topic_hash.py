# SPDX-License-Identifier: Apache-2.0
"""The hash that shows a group whether its topics have changed, without a copy of them.

It is upstream's hash, so that a group that moves to another broker does not rebalance for nothing.
It has signed 64 bits, as in the records; 0 says that there is no topic.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from xxhash import xxh3_64_intdigest

from kohort.terms import TopicId, java_order

_INT32 = Struct("<i")
_INT64 = Struct("<q")

NO_RACKS: Mapping[int, Sequence[str]] = {}


def hash_of_topic(
    topic_id: TopicId,
    name: str,
    partitions: int,
    racks: Mapping[int, Sequence[str]] = NO_RACKS,
) -> int:
    """One topic: its id, its name, how many partitions it has, and the racks of their replicas."""
    parts = [b"\x00", topic_id[7::-1], topic_id[:7:-1], _text(name), _INT32.pack(partitions)]
    for partition in range(partitions):
        parts.append(_INT32.pack(partition))
        for rack in sorted(racks.get(partition, ()), key=java_order):
            parts += (_INT32.pack(_units(rack)), _text(rack))
    return _digest(b"".join(parts))


def hash_of_group(topics: Iterable[tuple[str, int]]) -> int:
    """All topics that a group reads and that exist, in any order: names, each with its hash."""
    in_order = sorted(topics, key=lambda topic: java_order(topic[0]))
    if not in_order:
        return 0
    return _digest(b"".join(_INT64.pack(hashed) for _, hashed in in_order))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _INT32.pack(_units(text))


def _units(text: str) -> int:
    """How many UTF-16 code units the text has: its length in Java."""
    return len(java_order(text)) // 2


def _digest(data: bytes) -> int:
    hashed: int = xxh3_64_intdigest(data)
    return hashed - (1 << 64) if hashed >> 63 else hashed
