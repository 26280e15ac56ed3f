# SPDX-License-Identifier: Apache-2.0
"""Partitions as events name them."""

from kohort.client.members.events import TopicIdPartition, in_order
from kohort.terms import PartitionIndex, TopicId

ONE, TWO = TopicId(bytes(15) + b"\x01"), TopicId(bytes(15) + b"\x02")


def at(topic: TopicId, index: int) -> TopicIdPartition:
    return TopicIdPartition(topic, PartitionIndex(index))


def test_partitions_are_named_once_and_ascending() -> None:
    mixed = [at(TWO, 0), at(ONE, 10), at(ONE, 9), at(TWO, 0)]
    assert in_order(mixed) == (at(ONE, 9), at(ONE, 10), at(TWO, 0))


def test_a_partition_is_written_with_the_id_of_its_topic() -> None:
    assert str(at(ONE, 3)) == "AAAAAAAAAAAAAAAAAAAAAQ:3"
