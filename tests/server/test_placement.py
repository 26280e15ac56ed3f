"""Which partition has a group, and which node has the partition."""

import pytest

from kohort.java import text_hash
from kohort.server.placement import coordinator_partition

SMALLEST = "polygenelubricants"  # its hash has no absolute value


@pytest.mark.parametrize(
    ("group_id", "partitions", "partition"),
    [
        ("", 50, 0),
        ("a", 50, 97 % 50),
        ("hello", 50, 99162322 % 50),
        ("hello", 1, 0),
        ("gr\u00f6\u00dfe \u2603", 50, 38),
        (SMALLEST, 50, 0),
    ],
)
def test_a_group_lives_where_kafka_looks_for_it(group_id, partitions, partition):
    assert coordinator_partition(group_id, partitions) == partition


def test_the_smallest_hash_is_counted_as_zero():
    assert text_hash(SMALLEST) == -(2**31)
