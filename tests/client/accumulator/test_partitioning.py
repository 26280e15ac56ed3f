# SPDX-License-Identifier: Apache-2.0
"""Where records go: by the hash of Java's client, or one partition for a batch."""

from collections import Counter
from collections.abc import Callable

import pytest
from tests.client.test_topic_writer import test_a_key_goes_where_java_puts_it as by_java

from kohort.client.accumulator.partitioning import StickyPartitioner, murmur2, partition_of


def test_a_key_goes_where_java_puts_it() -> None:
    """The vectors of Apache Kafka's own tests."""
    (mark,) = by_java.pytestmark
    for key, hashed in mark.args[1]:
        assert murmur2(key) == hashed & 0xFFFFFFFF
        assert partition_of(key, 50) == (hashed & 0x7FFFFFFF) % 50


def chances(*numbers: float) -> Callable[[], float]:
    given = iter(numbers)
    return lambda: next(given)


def alike(_partition: int) -> int:
    return 0


def test_it_keeps_to_a_partition_for_a_batch_of_bytes() -> None:
    sticky = StickyPartitioner(100, chances(0.0, 0.5, 0.99))
    found = []
    for _ in range(7):
        if sticky.left <= 0:
            sticky.move([3, 5, 8], alike)
        found.append(sticky.partition)
        sticky.left -= 40
    assert found == [3, 3, 3, 5, 5, 5, 8]


@pytest.mark.parametrize(
    ("loads", "expected"),
    [((0, 0), {0: 50, 1: 50}), ((9, 0), {0: 9, 1: 91}), ((3, 1), {0: 25, 1: 75})],
)
def test_a_longer_queue_has_a_smaller_chance(
    loads: tuple[int, ...], expected: dict[int, int]
) -> None:
    sticky = StickyPartitioner(1, chances(*(number / 100 + 0.001 for number in range(100))))
    found: Counter[int] = Counter()
    for _ in range(100):
        sticky.move([0, 1], loads.__getitem__)
        found[sticky.partition] += 1
    assert found == pytest.approx(expected, abs=1)
