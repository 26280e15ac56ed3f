# SPDX-License-Identifier: Apache-2.0
"""The arrays that hold the offsets of a topic."""

import pytest
from tests.coordinator.committed import value
from tests.coordinator.desk import topic_id

from kohort.coordinator.offsets.table import ABSENT, TopicOffsets
from kohort.errors import Broken
from kohort.records.schemas import OffsetCommitValue
from kohort.terms import Millis


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


def test_an_offset_expires_by_its_own_time_or_by_its_age():
    table = TopicOffsets(topic_id("orders"))
    for partition, (committed, expires) in enumerate([(1, -1), (2, -1), (1, 5), (9, 4)]):
        one = OffsetCommitValue(
            offset=0, metadata="", commit_timestamp=committed, expire_timestamp=expires
        )
        table.put(partition, one)
    table.remove(1)
    table.put(1, value(1))
    table.put(6, OffsetCommitValue(offset=0, metadata="", commit_timestamp=2))
    assert list(table.expired(Millis(1), Millis(4))) == [0, 1, 3]
    assert list(table.expired(Millis(2), Millis(5))) == [0, 1, 2, 3, 6]
    assert list(table.expired(Millis(ABSENT), Millis(5))) == [2, 3]


def test_it_is_known_at_a_glance_that_nothing_has_expired():
    table = TopicOffsets(topic_id("orders"))
    assert not table.may_have_expired(Millis(5))
    for partition, committed in enumerate((7, 3, 9)):
        one = OffsetCommitValue(offset=0, metadata="", commit_timestamp=committed)
        table.put(partition, one)
    assert [table.may_have_expired(Millis(until)) for until in (2, 3)] == [False, True]
    table.put(1, OffsetCommitValue(offset=0, metadata="", commit_timestamp=8))
    assert table.may_have_expired(Millis(3)), "it does not know better until it has looked"
    assert list(table.expired(Millis(3), Millis(9))) == []
    assert [table.may_have_expired(Millis(until)) for until in (6, 7)] == [False, True]
    table.put(0, OffsetCommitValue(offset=0, metadata="", commit_timestamp=9, expire_timestamp=20))
    assert table.may_have_expired(Millis(0))


def test_an_impossible_partition_is_broken_and_takes_no_memory():
    table = TopicOffsets(topic_id("orders"))
    with pytest.raises(Broken, match="partition 2147483647"):
        table.put(2**31 - 1, value(1))
    assert len(table.offsets) == 0
