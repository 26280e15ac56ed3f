# SPDX-License-Identifier: Apache-2.0
"""What a broker written in Java shows of Java: its hashes, and the order of its hash tables.

They decide which partition of the internal topic a group lives in, which protocol wins a tied vote,
and who gets the odd partition.
"""

import codecs
from collections.abc import Callable, Iterable
from functools import lru_cache
from struct import unpack
from typing import TypeVar

from kohort.terms import PartitionIndex

Key = TypeVar("Key")

codecs.lookup("utf-16-be")  # Python imports it at its first use: not in a request
_INT_BITS = 0xFFFFFFFF
_LONG_BITS = 0xFFFFFFFFFFFFFFFF
_FIBONACCI = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio
_LEAST_TABLE = 16
_LANE_BITS, _LANE_BYTES = 64, 8
_SHORT = 100  # longer texts are not remembered: a client could fill the memory with them


def text_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, wrapped to a signed 32-bit integer."""
    return _known_hash(text) if len(text) <= _SHORT else _hash_of_long(text)


def _hash(text: str) -> int:
    result = 0
    if text.isascii():
        for unit in text.encode():
            result = (31 * result + unit) & _INT_BITS
    else:
        data = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(data), 2):
            result = (31 * result + (data[index] << 8 | data[index + 1])) & _INT_BITS
    return _signed(result)


def _hash_of_long(text: str) -> int:
    """The same, four times as fast: a group may be named by 32,767 bytes, and by them again and
    again. The text is one large integer whose lanes hold a unit each. Neighbours are joined, so
    that there are half as many lanes of twice the width, until a lane has 64 bits. It has room for
    what its units make together; their sum is taken modulo 2**32 at the end.
    """
    bits, data = 8, b""
    if text.isascii():
        data = text.encode()
    else:
        bits, data = 16, text.encode("utf-16-be", "surrogatepass")
    lanes = -(-len(data) // _LANE_BYTES)
    whole, power = int.from_bytes(data), 31
    while bits < _LANE_BITS:
        width = bits // 8
        last = b"\xff" * width  # of each two neighbours
        mask = int.from_bytes(last.rjust(2 * width, b"\0") * (lanes * _LANE_BYTES // width // 2))
        whole = (whole >> bits & mask) * power + (whole & mask)
        power *= power
        bits *= 2
    result = 0
    for lane in unpack(f">{lanes}Q", whole.to_bytes(lanes * _LANE_BYTES)):
        result = (power * result + lane) & _INT_BITS
    return _signed(result)


_known_hash = lru_cache(maxsize=65536)(_hash)  # ids of members are asked for again and again


def coordinator_partition(group_id: str, partitions: int) -> PartitionIndex:
    """The partition that holds a group or a transactional id, as upstream computes it: abs(hash)
    mod partitions.

    The absolute value of the smallest integer is taken as 0.
    """
    value = text_hash(group_id)
    return PartitionIndex(0 if value == -(1 << 31) else abs(value) % partitions)


def id_hash(value: bytes) -> int:
    """The hashCode of a topic's id: the exclusive or of its four 32-bit words."""
    whole = int.from_bytes(value[:8]) ^ int.from_bytes(value[8:])
    return _signed((whole >> 32 ^ whole) & _INT_BITS)


def hash_order(
    keys: Iterable[Key], hash_of: Callable[[Key], int], table: int = _LEAST_TABLE
) -> list[Key]:
    """The order of a HashMap or HashSet into which these keys were put, one after the other.

    `table` is the size of the table, where upstream's holds more than these keys. A table doubles
    when it is more than three quarters full. Keys of one bucket stay in the order in which they
    came. Java makes a tree of a bucket with eight keys, and this does not.
    """
    known = list(keys)
    size = table
    while len(known) > size * 3 // 4:
        size *= 2
    mask = size - 1

    def bucket(key: Key) -> int:
        value = hash_of(key) & _INT_BITS
        return (value ^ value >> 16) & mask

    known.sort(key=bucket)
    return known


def timeline_order(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """The order of upstream's table with snapshots, into which these keys were put one after the
    other: it holds the members of a group.

    It begins with two slots and doubles once three quarters of its keys are more than its slots;
    then all go over, one slot after the other. A slot is the highest bits of a Fibonacci hash, and
    is read from its last key on.
    """
    coming = list(keys)
    known: list[Key] = []
    size = 2
    while len(coming) > size * 4 // 3:
        known += coming[len(known) : size * 4 // 3]
        known.sort(key=_slots(hash_of, size))
        size *= 2
    known += coming[len(known) :]
    known.reverse()
    known.sort(key=_slots(hash_of, size))
    return known


def _slots(hash_of: Callable[[Key], int], size: int) -> Callable[[Key], int]:
    shift = 65 - size.bit_length()
    return lambda key: (hash_of(key) * _FIBONACCI & _LONG_BITS) >> shift


def copied_table(count: int) -> int:
    """The size of the table of a HashSet made from a collection of this many."""
    size = _LEAST_TABLE
    while size < count * 4 // 3 + 1:
        size *= 2
    return size


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value
