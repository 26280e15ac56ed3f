# SPDX-License-Identifier: Apache-2.0
"""The partition of another cluster, and the ids of producers there: a model without a network."""

from collections.abc import Iterator

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Producer
from kohort.server.partitions.producers import Producers
from kohort.terms import Millis, Offset
from kohort.wire import batch
from kohort.wire.batch import BatchHeader


class RemotePartition:
    """Batches in order, compacted now and then, and what is remembered of their producers."""

    def __init__(self, expiration_ms: int) -> None:
        self.end = Offset(0)
        self.batches: list[bytes] = []
        self._expiration_ms = expiration_ms
        self._producers = Producers(whole=False)

    def produce(self, data: bytes, now: Millis) -> tuple[ErrorCode, int]:
        """The answer to a Produce request with acks=all: a code and a base offset."""
        header = batch.header_at(data)
        if header.base_offset:
            return ErrorCode.INVALID_RECORD, -1
        self._producers.expire(Millis(now - self._expiration_ms))
        if header.producer_id >= 0:
            try:
                before = self._producers.admit(header)
            except ApiError as error:
                return error.code, -1
            if before is not None:
                return ErrorCode.NONE, before.base_offset
        return ErrorCode.NONE, self._append(data, header, now)

    def end_transaction(self, producer: Producer, now: Millis, *, commit: bool) -> None:
        """Write the marker that ends the transaction of a client of the cluster."""
        data = batch.build_marker(
            commit=commit,
            timestamp=now,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            coordinator_epoch=0,
        )
        self._append(data, batch.header_at(data), now)

    def _append(self, data: bytes, header: BatchHeader, now: Millis) -> Offset:
        base = self.end
        self.batches.append(batch.stamp(data, base, 0))
        if header.producer_id >= 0:
            self._producers.written(header, base, now)
        self.end = Offset(base + header.last_offset_delta + 1)
        return base

    def read(self, offset: Offset) -> Iterator[tuple[BatchHeader, bytes]]:
        """All batches from an offset on, with their headers."""
        for data in self.batches:
            header = batch.header_at(data)
            if header.last_offset >= offset:
                yield header, data

    def compact(self, sheltered: Offset) -> None:
        """Remove the batches before `sheltered` whose keys all come again, but for the last one
        there of each producer: that one says what its sequence is. A replica that leads after an
        unclean election has compacted its own log, which ends earlier, so what it may lose has not
        counted.
        """
        last_of_key: dict[bytes, int] = {}
        last_of_producer: dict[int, int] = {}
        headers = [batch.header_at(data) for data in self.batches]
        for header, data in zip(headers, self.batches, strict=True):
            if header.base_offset < sheltered:
                last_of_producer[header.producer_id] = header.base_offset
            if not header.is_control:
                for offset, _, key, _ in batch.entries(data):
                    last_of_key[key or b""] = offset
        self.batches = [
            data
            for header, data in zip(headers, self.batches, strict=True)
            if header.base_offset >= sheltered
            or header.base_offset == last_of_producer.get(header.producer_id)
            or (
                not header.is_control
                and any(last_of_key[key or b""] == at for at, _, key, _ in batch.entries(data))
            )
        ]

    def truncate(self, end: Offset) -> None:
        """Lose what was acknowledged: an unclean election."""
        self.batches = [data for data in self.batches if batch.header_at(data).base_offset < end]
        self.end = end
        self._producers = Producers(whole=False)
        for data in self.batches:
            header = batch.header_at(data)
            if header.producer_id >= 0:
                self._producers.written(
                    header, Offset(header.base_offset), Millis(header.max_timestamp)
                )


class ProducerIds:
    """What the transaction coordinator of the cluster knows of one transactional id."""

    def __init__(self, expiration_ms: int, last_epoch: int) -> None:
        self._expiration_ms = expiration_ms
        self._last_epoch = last_epoch
        self._producer: Producer | None = None
        self._before: Producer | None = None  # who had it, and has asked for the next epoch
        self._used_at = Millis(0)
        self._given = 0

    def init(self, before: Producer | None, now: Millis) -> Producer | ErrorCode:
        """The answer to InitProducerId, from whoever says that it is `before` (KIP-360)."""
        known = self._producer
        if known is not None and now - self._used_at > self._expiration_ms:
            known = None
        if known is not None and before is not None and before == self._before:
            return known  # the answer was lost, and it asks again
        if before is not None and known != before:
            return ErrorCode.PRODUCER_FENCED
        if known is None or known.epoch >= self._last_epoch:
            self._given += 1
            known = Producer(self._given, -1)
        self._before = before
        self._producer = Producer(known.id, known.epoch + 1)
        self._used_at = now
        return self._producer
