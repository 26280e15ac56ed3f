# SPDX-License-Identifier: Apache-2.0
"""How applications name partitions, in one form: a pair of topic and number will do."""

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, TypeAlias, TypeVar

from kohort.escaping import visible
from kohort.terms import TopicPartition, topic_name_fault

Value = TypeVar("Value")

Partition: TypeAlias = tuple[str, int]
"""topic, index: a TopicPartition is one"""
ByPartition: TypeAlias = Mapping[TopicPartition, Value] | Mapping[Partition, Value]
"""What an application says of partitions: to a type checker a mapping has keys of one kind."""


def topic_partition_of(given: object) -> TopicPartition:
    """The partition that an application means: a TopicPartition, or a pair of topic and number.

    Raises TypeError for anything else: a text would fall apart into its letters, and a number that
    is a text is the number of no partition.
    """
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str):
        try:
            number = index(given[1])
        except TypeError:
            number = None
        if number is not None and not isinstance(given[1], bool):
            return TopicPartition(given[0], number)
    raise TypeError(
        f"{given!r} is no partition, expected a TopicPartition or a pair of topic and number"
    )


def topic_partitions_of(given: Iterable[object]) -> list[TopicPartition]:
    """The same of several. Raises TypeError for what holds no partitions."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{given!r} holds no partitions, expected some, such as [('orders', 0)]")
    return [topic_partition_of(place) for place in given]


def readable_partitions(given: Iterable[object]) -> list[TopicPartition]:
    """The same of some to read. Raises ValueError for a name that no topic can have."""
    places = topic_partitions_of(given)
    for place in places:
        check_topic("partitions", place.topic)
    return places


def check_topic(what: str, name: str) -> None:
    """Raises ValueError for a name that no topic can have: it would be waited for in vain."""
    fault = topic_name_fault(name)
    if fault is not None:
        raise ValueError(f"{what} has {name!r}, expected the name of a topic: {visible(fault)}")


def by_topic_partition(name: str, given: Mapping[Any, Value]) -> dict[TopicPartition, Value]:
    """What an application says of each partition. `name` is what the error calls it."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} is {given!r}, expected a mapping by partition")
    return {topic_partition_of(place): value for place, value in given.items()}
