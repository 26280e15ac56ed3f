# SPDX-License-Identifier: Apache-2.0
"""A batch of records for one partition, from the first record until everybody knows its fate."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from kohort.errors import ApiError
from kohort.terms import TopicPartition
from kohort.wire.batch import HEADER_SIZE, TRANSACTIONAL, BatchBuilder, records, seal
from kohort.wire.batch.reading import Record
from kohort.wire.compression import compress

Headers = Iterable[tuple[str, bytes | None]]
SEQUENCES = 0x7FFFFFFF
"""Sequences are numbers of 31 bits; 0 follows the last one."""


class ProducerId(NamedTuple):
    """Who writes: an id and its epoch, as the cluster has given them."""

    id: int
    epoch: int


NOBODY = ProducerId(-1, -1)


class Batch(BatchBuilder):
    """`deliveries` are what the caller gave with each record, in their order.

    `producer` and `sequence` are set when it is first sent. `maybe_written` says that the log may
    have it, because an answer was lost. `settled` says that its deliveries know their fate, though
    the answer may still come. Times are those of the queue.
    """

    __slots__ = (
        *("attempts", "charge", "codec", "created", "deliveries", "expires", "last_error"),
        *("limit", "maybe_written", "not_before", "number", "on_wire", "pinned", "place"),
        *("producer", "sealed_body", "sequence", "settled", "timestamps"),
    )

    def __init__(
        self,
        place: TopicPartition,
        number: int,
        *,
        limit: int,
        codec: int,
        created: int,
        expires: int,
    ) -> None:
        super().__init__()
        self.place = place
        self.number = number  # those that come later have higher ones
        self.limit = limit - HEADER_SIZE
        self.codec = codec
        self.created = created
        self.expires = expires
        self.sealed_body: bytes | None = None  # from when no more records come
        self.deliveries: list[Any] = []
        self.timestamps: list[int] = []
        self.charge = 0
        self.producer = NOBODY
        self.sequence = -1
        self.attempts = 0
        self.not_before = created
        self.on_wire = False
        self.maybe_written = False
        self.settled = False
        self.last_error: ApiError | None = None
        self.pinned: set[int] | None = None  # records whose partition the application chose

    @property
    def size(self) -> int:
        """How many bytes it takes in a request."""
        return HEADER_SIZE + len(self.body if self.sealed_body is None else self.sealed_body)

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record."""
        return (self.sequence + self.count - 1) & SEQUENCES

    @property
    def next_sequence(self) -> int:
        """The sequence of the record after its last."""
        return (self.sequence + self.count) & SEQUENCES

    def take(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        delivery: Any,
        charge: int,
        *,
        pinned: bool = False,
    ) -> None:
        """Take a first record, or one that has room."""
        taken = self.add(timestamp, key, value, headers, self.limit)
        assert taken
        self.deliveries.append(delivery)
        self.timestamps.append(timestamp)
        self.charge += charge
        if pinned:
            self.pin()

    def pin(self) -> None:
        """The last record belongs to this partition and to no other."""
        if self.pinned is None:
            self.pinned = set()
        self.pinned.add(len(self.deliveries) - 1)

    def is_pinned(self, at: int) -> bool:
        """Whether the application chose the partition of a record."""
        return self.pinned is not None and at in self.pinned

    def contents(self) -> list[Record]:
        """Its records as they were taken."""
        return list(records(self.sealed(transactional=False), 0))

    def close(self) -> None:
        """Take no more records, and compress those that are there."""
        if self.sealed_body is None:
            self.sealed_body = compress(self.codec, bytes(self.body))
            self.body = bytearray()
            self.limit = -1

    def sealed(self, *, transactional: bool) -> bytes:
        """Its bytes, by the producer and the sequence that it has now."""
        self.close()
        assert self.sealed_body is not None
        return seal(
            self.sealed_body,
            self.count,
            attributes=self.codec | (TRANSACTIONAL if transactional else 0),
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            base_sequence=self.sequence,
        )

    def halves(self) -> tuple["Batch", "Batch"]:
        """Two batches with its records, and with its sequences where it has some."""
        middle = self.count // 2
        parts = (self._part(0, middle), self._part(middle, self.count))
        charge = self.charge // self.count
        for at, record in enumerate(self.contents()):
            part = parts[at >= middle]
            part.take(
                *(record.timestamp, record.key, record.value, record.headers),
                *(self.deliveries[at], charge),
                pinned=self.is_pinned(at),
            )
        parts[1].charge += self.charge - charge * self.count
        return parts

    def _part(self, first: int, end: int) -> "Batch":
        part = Batch(
            self.place,
            self.number,
            limit=1 << 31,
            codec=self.codec,
            created=self.created,
            expires=self.expires,
        )
        part.attempts = self.attempts
        part.maybe_written = self.maybe_written
        part.last_error = self.last_error
        part.producer = self.producer
        if self.sequence >= 0:
            part.sequence = (self.sequence + first) & SEQUENCES
        assert end > first
        return part
