"""What one turn writes: the records of its steps, already true in the machine, as batches.

A batch has one producer and is small enough for a reader of the log. A larger step is cut between
two records; its answer waits for all of them.
"""

from kohort.coordinator.effects import Effects, Marker, Producer
from kohort.errors import ApiError, ErrorCode
from kohort.runtime.machine import Machine
from kohort.terms import Millis
from kohort.wire import batch

Entry = tuple[bytes, bytes | None]
_NOT_A_PRODUCER = Producer(-1, -1)


class _Batch:
    """Records of one producer, or the marker that ends its transaction."""

    __slots__ = ("entries", "marker", "producer")

    def __init__(self, producer: Producer | None, marker: Marker | None) -> None:
        self.producer = producer
        self.marker = marker
        self.entries: list[Entry] = []

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
        data = batch.build(
            self.entries,
            now,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transactional=self.producer is not None,
        )
        return data, len(self.entries)


class Turn:
    """Steps in their order; `end` is the offset that the next record will have."""

    def __init__(self, machine: Machine, end: int, limit_bytes: int) -> None:
        self.steps: list[Effects] = []
        self.end = end
        self._machine = machine
        self._room = limit_bytes - batch.HEADER_SIZE  # for the records of a batch
        self._size = 0  # of the step that was encoded last, at most
        self._batches: list[_Batch] = []
        self._open = _Batch(None, None)  # the batch that the next step of its producer goes into
        self._left = -1  # room in it

    def encoded(self, effects: Effects) -> list[Entry]:
        """The records of a step as bytes, for `take`. Raises whatever keeps one of them from being
        written, before any of them is true.
        """
        encode, overhead = self._machine.encode, batch.RECORD_SIZE
        entries = []
        size = 0
        for record in effects.records:
            entry = key, value = encode(record)
            size += len(key) + overhead
            if value is not None:
                size += len(value)
            entries.append(entry)
        self._size = size
        if size > self._room:
            for entry in entries:
                self._check(_size_of(entry))
        return entries

    def _check(self, size: int) -> None:
        if size > self._room:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record takes {size} bytes, expected at most {self._room}"
                " (max.message.bytes of the topic of the log)",
            )

    def take(self, effects: Effects, entries: list[Entry]) -> None:
        """Make the last encoded step true, and keep what it writes."""
        self.steps.append(effects)
        producer = effects.producer
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
            else:
                self._keep(entries, producer)
        if effects.marker is not None:
            assert producer is not None
            self._machine.replay_marker(producer, commit=effects.marker.commit)
            self._batches.append(_Batch(producer, effects.marker))
            self._left = -1
            self.end += 1

    def batches(self, now: Millis) -> list[tuple[bytes, int]]:
        """Each batch to append, in order, and how many offsets it takes."""
        return [one.packed(now) for one in self._batches]

    def _keep(self, entries: list[Entry], producer: Producer | None) -> None:
        """Begin a batch, or several, for a step that does not fit into the last one."""
        self._left = -1
        for entry in entries:
            size = _size_of(entry)
            if size > self._left:
                self._open = _Batch(producer, None)
                self._left = self._room
                self._batches.append(self._open)
            self._open.entries.append(entry)
            self._left -= size


def _size_of(entry: Entry) -> int:
    key, value = entry
    return len(key) + batch.RECORD_SIZE + (0 if value is None else len(value))
