# SPDX-License-Identifier: Apache-2.0
"""Transactions and old records, as a log of another broker tells them."""

from tests.coordinator.committed import FIRST, G, Log, delete, fetched
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.coordinator.offsets.delete import of_group_deleted
from kohort.records.codec import Record
from kohort.records.schemas import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from kohort.wire.messages.delete_groups import DeleteGroupsRequest


def test_an_offset_in_a_transaction_waits_for_its_end():
    """K709-12."""
    log = Log()
    log.put(5)
    log.put(9, producer_id=1)
    assert (log.committed, log.unstable) == (5, True)
    log.marker(1)
    assert (log.committed, log.unstable) == (9, False)


def test_an_aborted_transaction_never_was():
    log = Log()
    log.put(9, producer_id=1)
    assert log.unstable
    assert log.desk.shard.groups.classic(G) is not None
    log.marker(1, commit=False)
    assert (log.committed, log.unstable) == (-1, False)


def test_the_order_of_records_decides_not_that_of_markers():
    log = Log()
    log.put(1, producer_id=1)
    log.put(2, producer_id=2)
    log.marker(2)
    assert (log.committed, log.unstable) == (2, True)
    log.marker(1)
    assert (log.committed, log.unstable) == (2, False)


def test_a_later_transaction_wins_over_an_earlier_one():
    log = Log()
    log.put(1, producer_id=1)
    log.put(2, producer_id=2)
    log.marker(1)
    assert log.committed == 1
    log.marker(2)
    assert log.committed == 2


def test_a_plain_commit_overtakes_what_is_pending():
    log = Log()
    log.put(1, producer_id=1)
    log.put(5)
    assert log.unstable
    log.marker(1)
    assert log.committed == 5


def test_the_last_value_within_a_transaction_counts():
    log = Log()
    log.put(1, producer_id=1)
    log.put(2, producer_id=1)
    log.put(7, producer_id=1, partition=1)
    log.marker(1)
    assert log.committed == 2
    assert fetched(log.desk)["orders", 1][0] == 7


def test_a_tombstone_removes_what_is_pending_too():
    log = Log()
    log.put(1, producer_id=1)
    log.put(None)
    assert not log.unstable
    log.marker(1)
    assert log.committed == -1


def test_a_marker_of_nobody():
    log = Log()
    log.marker(77)
    assert log.committed == -1


def test_a_group_of_the_same_id_begins_anew():
    """K229-14: what ends later brings nothing back."""
    log = Log()
    log.put(5)
    log.put(9, producer_id=1)
    deletion = DeleteGroupsRequest(groups_names=["g"])
    assert [one.error_code for one in log.desk.told(deletion, 2).results] == [0]
    assert beat(log.desk, "m", 0).member_epoch == 2
    log.marker(1)
    assert (log.committed, log.unstable) == (-1, False)


def test_pending_offsets_are_deleted_with_the_others():
    log = Log()
    log.put(1, partition=2)
    log.put(1, producer_id=1)
    assert [record.key.partition for record in of_group_deleted(log.desk.shard, G)] == [
        2,
        0,
    ]
    assert delete(log.desk, FIRST) == {FIRST: 0}
    assert not log.unstable


def test_offsets_of_the_oldest_key_are_read():
    desk = Desk()
    desk.write(
        Record(
            LegacyOffsetCommitKey(group="g", topic="orders", partition=0),
            LegacyOffsetCommitValue(offset=5, metadata="old", commit_timestamp=1),
        ),
        live=False,
    )
    desk.restart()
    assert fetched(desk) == {FIRST: (5, -1, "old", 0)}
