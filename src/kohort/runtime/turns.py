# SPDX-License-Identifier: Apache-2.0
"""What one turn writes: the records of its steps, already true in the machine, as batches.

A batch has one producer and is small enough for a reader of the log. A larger step is cut between
two records; its answer waits for all of them.
"""

from collections.abc import Callable

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import BackgroundTask, Effects, Marker, Producer
from kohort.machines.machine import Headers, Machine
from kohort.terms import Millis
from kohort.wire import batch

Entry = tuple[bytes, bytes | None] | tuple[bytes, bytes | None, Headers]
"""Key and value of a record, and its headers where it has any."""
_HEADER_SIZE = 10  # what a header takes beside its name and value, at most
_NOT_A_PRODUCER = Producer(-1, -1)


class _Batch:
    """Records of one producer, or the marker that ends its transaction."""

    __slots__ = ("entries", "has_headers", "marker", "producer")

    def __init__(self, producer: Producer | None, marker: Marker | None) -> None:
        self.producer = producer
        self.marker = marker
        self.entries: list[Entry] = []
        self.has_headers = False

    def packed(self, now: Millis) -> tuple[bytes, int]:
        """The batch, and how many offsets it takes."""
        producer = self.producer or _NOT_A_PRODUCER
        if self.marker is not None:
            marker = batch.build_marker(
                commit=self.marker.commit,
                timestamp=now,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                coordinator_epoch=self.marker.coordinator_epoch,
            )
            return marker, 1
        base_sequence = 0 if self.producer is None else -1
        if self.has_headers:
            records = [
                batch.Record(offset, now, entry[0], entry[1], entry[2] if len(entry) == 3 else [])
                for offset, entry in enumerate(self.entries)
            ]
            data = batch.build_records(
                records,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=base_sequence,
                attributes=0 if self.producer is None else batch.TRANSACTIONAL,
            )
            return data, len(records)
        data = batch.build(
            self.entries,  # type: ignore[arg-type]  # none has headers
            now,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transactional=self.producer is not None,
        )
        return data, len(self.entries)


_FULL = _Batch(None, None)  # has room for nothing, and stands before the first batch of a turn


class Turn:
    """Steps in their order; `end` is the offset that the next record will have."""

    def __init__(self, machine: Machine, end: int, limit_bytes: Callable[[], int]) -> None:
        self.steps: list[Effects] = []
        self.end = end
        self.tasks: list[BackgroundTask] = []  # that the steps have asked for
        self.has_events = False
        self._machine = machine
        self._limit_bytes = limit_bytes
        self._room = 0  # for the records of a batch, once there are some
        self._size = 0  # of the step that was encoded last, at most
        self.batches: list[_Batch] = []  # to be appended, in order
        self._open = _FULL  # the batch that the next step of its producer goes into
        self._left = -1  # room in it

    def encoded(self, effects: Effects) -> list[Entry]:
        """The records of a step as bytes, for `take`. Raises whatever keeps one of them from being
        written, before any of them is true.
        """
        entries: list[Entry] = []
        if not self._room:
            self._room = self._limit_bytes() - batch.HEADER_SIZE
        encode, overhead = self._machine.encode, batch.RECORD_SIZE
        size = 0
        for record in effects.records:
            plain = key, value = encode(record)
            size += len(key) + overhead
            if value is not None:
                size += len(value)
            entries.append(plain)
        self._size = size
        if size > self._room:
            if _is_conversion(effects):
                self._check(size, "a conversion takes")
            for entry in entries:
                self._check(_size_of(entry))
        if effects.events:
            self._add_headers(effects, entries)
        return entries

    def _add_headers(self, effects: Effects, entries: list[Entry]) -> None:
        """Give records their headers. One that has no room for them goes without."""
        for place, headers in self._machine.headers(effects).items():
            key, value, *_ = entries[place]
            entry = key, value, headers
            size = _size_of(entry)
            together = self._size + size - _size_of(entries[place])
            if (together if _is_conversion(effects) else size) <= self._room:
                self._size = together
                entries[place] = entry

    def _check(self, size: int, what: str = "a record takes") -> None:
        if size > self._room:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{what} {size} bytes, expected at most {self._room}"
                " (max.message.bytes of the topic of the log)",
            )

    def take(self, effects: Effects, entries: list[Entry]) -> None:
        """Make the last encoded step true, and keep what it writes."""
        self.steps.append(effects)
        if effects.tasks:
            self.tasks += effects.tasks
        if effects.events:
            self.has_events = True
        transaction = effects.transaction
        producer = None if transaction is None else transaction.producer
        if entries:
            replay = self._machine.replay
            end = self.end
            for record in effects.records:
                replay(record, end, producer)
                end += 1
            self.end = end
            if self._size <= self._left and producer is self._open.producer:
                self._open.entries += entries
                self._left -= self._size
            elif self._size <= self._room:
                self._begin(producer).entries += entries
                self._left -= self._size
            else:
                self._split(entries, producer)
            if effects.events and any(len(entry) == 3 for entry in entries):
                self._open.has_headers = True
            then = None if effects.continuation is None else effects.continuation.then
            if then is not None:
                after = then()
                self.take(after, self.encoded(after))
        if transaction is not None and transaction.end is not None:
            self._machine.replay_marker(transaction.producer, commit=transaction.end.commit)
            self.batches.append(_Batch(transaction.producer, transaction.end))
            self._left = -1
            self.end += 1

    def packed(self, now: Millis) -> list[tuple[bytes, int]]:
        """Each batch to append, in order, and how many offsets it takes."""
        return [batch.packed(now) for batch in self.batches]

    def _begin(self, producer: Producer | None) -> _Batch:
        self._open = _Batch(producer, None)
        self._left = self._room
        self.batches.append(self._open)
        return self._open

    def _split(self, entries: list[Entry], producer: Producer | None) -> None:
        """Begin several batches for a step that does not fit into one."""
        self._left = -1
        for entry in entries:
            size = _size_of(entry)
            if size > self._left:
                self._begin(producer)
            if len(entry) == 3:
                self._open.has_headers = True
            self._open.entries.append(entry)
            self._left -= size


def _is_conversion(effects: Effects) -> bool:
    return effects.continuation is not None and effects.continuation.then is not None


def _size_of(entry: Entry) -> int:
    key, value, *rest = entry
    size = len(key) + batch.RECORD_SIZE + (0 if value is None else len(value))
    for headers in rest:
        size += sum(_HEADER_SIZE + len(name) * 4 + len(item or b"") for name, item in headers)
    return size
