# SPDX-License-Identifier: Apache-2.0
"""Offsets in transactions as a shard takes them, and what is left of them after a restart."""

import pytest
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.coordinator.offsets.transactional import EndOffsets
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Marker, Producer
from kohort.wire import batch
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def commit(desk, offset, *, producer=(1, 0), partition=0, metadata="", **more):
    one = TxnOffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[one])],
        **more,
    )
    return desk.told(request, 3).topics[0].partitions[0].error_code


def end(desk, *, ok=True, producer=(1, 0)):
    return desk.ask(EndOffsets(Producer(*producer), Marker(ok, 0)), 0).answer


def committed(desk, *, stable=True):
    wanted = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id="g", topics=[wanted])
    answer = desk.told(OffsetFetchRequest(groups=[group], require_stable=stable), 9)
    one = answer.groups[0].topics[0].partitions[0]
    return -one.error_code or one.committed_offset


@pytest.mark.parametrize("crash", ["", "pending", "ended"])
@pytest.mark.parametrize("ok", [True, False], ids=["commit", "abort"])
def test_the_marker_decides_also_after_a_crash(ok, crash):
    """K709-12: live state is replayed state."""
    desk = Desk()
    assert commit(desk, 9) == 0
    if crash == "pending":
        desk.restart()
    assert committed(desk) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert committed(desk, stable=False) == -1

    assert end(desk, ok=ok) is None

    if crash == "ended":
        desk.restart()
    assert committed(desk) == (9 if ok else -1)


def test_several_producers_may_have_the_same_partition_pending():
    """KAFKA-19163: the order of the records decides."""
    desk = Desk()
    commit(desk, 1, producer=(1, 0))
    commit(desk, 2, producer=(2, 0))
    end(desk, producer=(2, 0))
    assert committed(desk) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    end(desk, producer=(1, 0))
    assert committed(desk) == 2
    desk.restart()
    assert committed(desk) == 2


def test_a_batch_of_a_transaction_is_as_upstream_writes_it():
    """Records with the producer and sequence 0, then a marker with -1."""
    desk = Desk()
    commit(desk, 9, producer=(7, 3))
    end(desk, producer=(7, 3))
    headers = [batch.header_at(data) for data in desk.driver.log.read(0, 1 << 62)]

    assert [
        (one.producer_id, one.producer_epoch, one.base_sequence, one.is_transactional)
        for one in headers
    ] == [(7, 3, 0, True), (7, 3, -1, True)]
    assert [one.is_control for one in headers] == [False, True]


def test_who_may_commit_in_a_consumer_group():
    """K848-187: fenced by member id and epoch, under the code that producers know."""
    desk = Desk()
    assert beat(desk, "m", 0, names=["orders"]).member_epoch == 2

    assert commit(desk, 5, generation_id=2, member_id="m") == 0
    assert commit(desk, 5, generation_id=1, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert commit(desk, 5, generation_id=3, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert commit(desk, 5, generation_id=2, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(desk, 5, generation_id=-1, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(desk, 5) == 0


def test_metadata_that_is_too_long_is_refused_for_its_partition():
    desk = Desk(offset_metadata_max_bytes=4)

    assert commit(desk, 5, metadata="12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(desk, 5, metadata="1234") == 0


def test_a_marker_that_cannot_be_written_is_told_as_an_error():
    error = ApiError(ErrorCode.NOT_COORDINATOR)
    assert EndOffsets(Producer(1, 0), Marker(True, 0)).refused(error) is error
