# SPDX-License-Identifier: Apache-2.0
"""Bugs of our own Consumer and Producer, of the part that is no pure machine above all."""

from collections.abc import Iterator
from typing import Any

from kohort.client.accumulator import accumulator
from kohort.client.accumulator.accumulator import RecordAccumulator
from kohort.client.accumulator.batch import Batch
from kohort.client.accumulator.partition_queue import PartitionQueue
from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.member import Member
from kohort.client.consumer.ownership import Ownership
from kohort.client.fetcher import Fetcher, OffsetAndEpoch
from kohort.client.fetcher.decoding import AbortedBatchFilter
from kohort.client.fetcher.partition_state import TopicPartitionState
from kohort.client.members.events import PartitionsLost
from kohort.client.producer.transaction_client import TransactionClient
from kohort.errors import ApiError, ErrorCode
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.terms import TopicPartition


def deaf_owner() -> Iterator[None]:
    """Who has lost its partitions goes on with them, until it gets them again."""

    async def lost(_self: Ownership, _partitions: Any, _error: ApiError) -> None:
        return

    def unwanted(_self: Ownership, _partitions: Any, **_: bool) -> None:
        return

    with (
        replace_attribute(Ownership, "lost", lost),
        replace_attribute(Ownership, "unwanted", unwanted),
    ):
        yield


def commit_ahead() -> Iterator[None]:
    """What is committed by itself is the position, not what is processed."""

    def processed(
        self: InFlightRecords, partition: TopicPartition, fetched: OffsetAndEpoch
    ) -> OffsetAndEpoch:
        return self.position(partition, fetched)

    with replace_attribute(InFlightRecords, "processed", processed):
        yield


def dropped_buffer() -> Iterator[None]:
    """When the leader is looked up anew, what was fetched and not handed out is thrown away."""
    look_up = TopicPartitionState.look_up

    def dropping(self: TopicPartitionState, later: float) -> None:
        if self.buffer is not None:
            self.buffer._answers.clear()  # noqa: SLF001
        look_up(self, later)

    with replace_attribute(TopicPartitionState, "look_up", dropping):
        yield


def unpaused() -> Iterator[None]:
    """A rebalance makes a consumer forget what its application has paused."""
    assigned = Ownership.assigned

    async def forgetful(self: Ownership, *args: Any, **more: Any) -> None:
        await assigned(self, *args, **more)
        self._fetcher.resume(self.owned)

    with replace_attribute(Ownership, "assigned", forgetful):
        yield


def stay_outside() -> Iterator[None]:
    """A member that has lost its place does not ask for another one."""
    take = Member._take  # noqa: SLF001

    def resigned(self: Member, events: Any) -> None:
        take(self, events)
        if any(isinstance(event, PartitionsLost) for event in events):
            self.protocol.machine.next = lambda _now: None
            self.protocol.machine.wake_at = lambda: None

    with replace_attribute(Member, "_take", resigned):
        yield


def aborted_too() -> Iterator[None]:
    """Readers of committed records are given what was aborted, too."""
    with replace_attribute(
        AbortedBatchFilter, "drops", lambda _self, _data, _position, header: header.is_control
    ):
        yield


def sequence_anew() -> Iterator[None]:
    """What is sent again gets a new sequence."""
    leave = PartitionQueue.leave

    def anew(self: PartitionQueue, batch: Batch) -> None:
        if batch.attempts and batch.sequence >= 0:
            batch.sequence = self.next_sequence
            self.next_sequence = batch.next_sequence
        leave(self, batch)

    with replace_attribute(PartitionQueue, "leave", anew):
        yield


def silent_expiry() -> Iterator[None]:
    """Nobody hears of a record that is given up because its time is over."""
    expire = RecordAccumulator.expire

    def silent(self: RecordAccumulator, now: int, why: str = "") -> list[Any]:
        expire(self, now, why)
        return []

    with replace_attribute(RecordAccumulator, "expire", silent):
        yield


def certainly() -> Iterator[None]:
    """A record whose answer was lost counts as certainly not written."""
    told = accumulator._delivery_error  # noqa: SLF001

    def sure(batch: Batch, code: ErrorCode, why: str, *, maybe: bool) -> Exception:
        del maybe
        return told(batch, code, why, maybe=False)

    with replace_attribute(accumulator, "_delivery_error", sure):
        yield


def untaken_offsets() -> Iterator[None]:
    """The offsets that were given to a transaction are never sent."""

    async def untaken(_self: TransactionClient, *_: Any) -> None:
        return

    with replace_attribute(TransactionClient, "_offer", untaken):
        yield


def unclosed_fetcher() -> Iterator[None]:
    """A consumer that is closed goes on fetching."""

    async def close(_self: Fetcher) -> None:
        return

    with replace_attribute(Fetcher, "close", close):
        yield
