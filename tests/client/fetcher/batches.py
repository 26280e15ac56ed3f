# SPDX-License-Identifier: Apache-2.0
"""Batches as a broker's log has them, and what a broker answers with them."""

from collections.abc import Iterable
from typing import Any

from kohort.terms import TopicPartition
from kohort.wire.batch import Record, build_marker, build_records
from kohort.wire.messages.fetch import AbortedTransaction, PartitionData

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
TRANSACTIONAL, CONTROL, APPEND_TIME = 0x10, 0x20, 0x08


def batch(*offsets: int, value: bytes = b"v", epoch: int = 0, **fields: Any) -> bytes:
    """A batch with a record at each offset; compaction may have taken those between."""
    some = [Record(offset, 1000 + offset, None, value) for offset in offsets]
    return build_records(some, leader_epoch=epoch, **fields)


def emptied(first: int, last: int, epoch: int = 0) -> bytes:
    """What compaction leaves of a batch to remember its producer by."""
    return build_records([], base_offset=first, last_offset=last, leader_epoch=epoch)


def of_transaction(producer: int, *offsets: int) -> bytes:
    return batch(*offsets, producer_id=producer, producer_epoch=0, attributes=TRANSACTIONAL)


def marker(producer: int, offset: int, *, commit: bool) -> bytes:
    return build_marker(
        commit=commit,
        timestamp=0,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=offset,
    )


def damaged(data: bytes, position: int) -> bytes:
    """One byte is another one."""
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def answer(
    *batches: bytes, aborted: Iterable[tuple[int, int]] | None = (), **fields: Any
) -> PartitionData:
    """A partition's part of an answer; `aborted` are producers and first offsets."""
    told = (
        None
        if aborted is None
        else [AbortedTransaction(producer_id=who, first_offset=first) for who, first in aborted]
    )
    return PartitionData(records=b"".join(batches), aborted_transactions=told, **fields)
