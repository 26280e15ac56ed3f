# SPDX-License-Identifier: Apache-2.0
"""The order of rows, where it is that of a hash table in the Java tools.

It is the same in every run, so that scripts may have come to rely on it.
"""

from collections.abc import Iterable

from kohort.java import hash_order, text_hash
from kohort.terms import TopicPartition, java_order


def by_name(names: Iterable[str]) -> list[str]:
    """Names in the order of a table whose keys they are."""
    return hash_order(names, text_hash)


def by_partition(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions in the order of a table whose keys they are."""
    return hash_order(partitions, _partition_hash)


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names as Java sorts them: by UTF-16 units."""
    return sorted(names, key=java_order)


def _partition_hash(partition: TopicPartition) -> int:
    return 31 * (31 + partition.partition) + text_hash(partition.topic)
