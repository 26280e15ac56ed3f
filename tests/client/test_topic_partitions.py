# SPDX-License-Identifier: Apache-2.0
"""Partitions as applications name them."""

import asyncio

import pytest

from kohort import Consumer
from kohort.client.topic_partitions import (
    by_topic_partition,
    check_topic,
    topic_partition_of,
    topic_partitions_of,
)
from kohort.terms import TopicPartition


class Index:
    """A number as numpy has them: no int, but it stands for one."""

    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (TopicPartition("orders", 0), ("orders", 0)),
        (("orders", 1), ("orders", 1)),
        (["orders", 2], ("orders", 2)),
        (("orders", Index()), ("orders", 3)),
    ],
)
def test_a_partition_is_a_pair_of_topic_and_number(given: object, expected: object) -> None:
    place = topic_partition_of(given)
    assert place == expected
    assert isinstance(place, TopicPartition)
    assert type(place.partition) is int


@pytest.mark.parametrize(
    "given",
    [
        *("orders", "ab", b"ab", 5, None, {"orders": 0}),
        *(("orders",), ("orders", 0, 1), (0, "orders")),
        *(("orders", "0"), ("orders", True), ("orders", 1.0), ("orders", None)),
    ],
)
def test_what_is_no_partition_is_named(given: object) -> None:
    with pytest.raises(TypeError, match="no partition, expected a TopicPartition or a pair") as why:
        topic_partition_of(given)
    assert repr(given) in str(why.value)


def test_several_are_not_one() -> None:
    assert topic_partitions_of([("orders", 0), ("audit", 1)]) == [("orders", 0), ("audit", 1)]
    with pytest.raises(TypeError, match="'orders' is no partition"):
        topic_partitions_of(("orders", 0))
    with pytest.raises(TypeError, match="'orders' holds no partitions, expected some, such as"):
        topic_partitions_of("orders")
    with pytest.raises(TypeError, match="5 holds no partitions"):
        topic_partitions_of(5)  # type: ignore[arg-type]  (as an application without types may)


def test_values_are_by_partition() -> None:
    assert by_topic_partition("times", {("orders", 0): 7}) == {TopicPartition("orders", 0): 7}
    with pytest.raises(TypeError, match="times is 0, expected a mapping by partition"):
        by_topic_partition("times", 0)  # type: ignore[arg-type]  (the same)
    with pytest.raises(TypeError, match="'orders' is no partition"):
        by_topic_partition("times", {"orders": 0})


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "\u00e9", "a\n", "x" * 250])
def test_a_name_that_no_topic_can_have_is_refused_at_once(name: str) -> None:
    """It would be waited for in vain: no cluster has such a topic, nor ever will."""
    with pytest.raises(ValueError, match=r"topics has .*, expected the name of a topic: ") as why:
        check_topic("topics", name)
    assert str(why.value).isprintable()
    with pytest.raises(ValueError, match="topics has"):
        Consumer("orders", name, group_id="g")
    with pytest.raises(ValueError, match="topics has"):
        Consumer(group_id="g").subscribe(name)
    with pytest.raises(ValueError, match="partitions has"):
        asyncio.run(Consumer().assign([("orders", 0), (name, 0)]))


def test_any_name_of_a_topic_will_do() -> None:
    for name in ("a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"):
        check_topic("topics", name)
