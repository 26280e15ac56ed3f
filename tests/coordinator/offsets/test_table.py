"""The arrays that hold the offsets of a topic."""

import pytest
from tests.coordinator.committed import value
from tests.coordinator.desk import topic_id

from kohort.coordinator.offsets.table import TopicOffsets
from kohort.errors import Broken


def test_the_arrays_grow_and_remember_what_is_absent():
    table = TopicOffsets(topic_id("orders"))
    table.put(3, value(30))
    assert list(table.partitions()) == [3]
    assert [index in table for index in (-1, 0, 3, 4)] == [False, False, True, False]
    table.put(3, value(31))
    assert table.count == 1
    table.remove(0)
    table.remove(3)
    table.remove(9)
    assert (table.count, list(table.partitions())) == (0, [])


def test_an_impossible_partition_is_broken_and_takes_no_memory():
    table = TopicOffsets(topic_id("orders"))
    with pytest.raises(Broken, match="partition 2147483647"):
        table.put(2**31 - 1, value(1))
    assert len(table.offsets) == 0
