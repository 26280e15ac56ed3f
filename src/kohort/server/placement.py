"""Which partition of __consumer_offsets a group lives in."""

from functools import lru_cache

_INT_BITS = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, wrapped to a signed 32-bit integer."""
    result = 0
    if text.isascii():
        for unit in text.encode():
            result = (31 * result + unit) & _INT_BITS
    else:
        data = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(data), 2):
            result = (31 * result + (data[index] << 8 | data[index + 1])) & _INT_BITS
    return result - (1 << 32) if result & 0x80000000 else result


@lru_cache(maxsize=65536)
def coordinator_partition(group_id: str, partitions: int) -> int:
    """The partition that holds a group, as upstream computes it: abs(hash) mod partitions.

    The absolute value of the smallest integer is taken as 0.
    """
    value = java_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partitions
