# SPDX-License-Identifier: Apache-2.0
"""The one writer of a log that is a partition of another cluster: in order, each batch once, alone.

It predicts where each batch will stand. An answer that names another offset means that somebody
else has written, and the writer ends: what it has acknowledged stays right even where fencing has
failed. Only the markers of the cluster's transactions may stand in between, for they take offsets
as well; so the offsets of the machine and those of the partition may differ until the next load.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from kohort.errors import Broken, ErrorCode, FencedError
from kohort.machines.effects import Producer
from kohort.terms import Millis, Offset
from kohort.wire.batch import BatchHeader, with_producer

IN_FLIGHT = 5  # a partition knows the last five batches of a producer again (KIP-98)
_SEQUENCES = 1 << 31
_NEVER = Millis(1 << 62)
_FENCING = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,  # of the first one without an answer: others wrote
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class _Batch(Struct, frozen=True):
    data: bytes
    count: int
    end: Offset  # of the machine, behind it


class Gap(NamedTuple):
    """Offsets that our batches do not have: from `start` up to `end`, which is one of ours."""

    start: int
    end: int


class PartitionWriter:
    """Writes one partition. The caller sends what `to_send` gives on one connection, in order, and
    brings each answer to `answered`. Everything up to `acknowledged` is written and replicated.

    `lost` says why the writer has ended: FencedError where somebody else writes, Broken where the
    cluster refuses a batch for good.
    """

    def __init__(self, name: str, producer: Producer, end: Offset, sequence: int) -> None:
        self.name = name
        self.producer = producer
        self.end = end
        self.acknowledged = end
        self.lease_until = _NEVER
        self.lost: Broken | None = None
        self.gap: Gap | None = None
        """Offsets that the caller must read, and bring to `gap_read`: nothing goes on before."""
        self.must_reconnect = False
        """The connection has to be closed: what was sent behind a refused batch may be refused for
        its sequence alone.
        """
        self.shift = 0
        """How many offsets the partition is ahead of the machine."""
        self._sequence = sequence
        self._base = int(end)  # where the first batch without an answer must stand
        self._waiting: deque[tuple[bytes, int, Offset]] = deque()
        self._in_flight: deque[_Batch] = deque()  # have their sequence, and no answer that counts
        self._on_wire = 0  # so many of them were sent on this connection
        self._answers: deque[tuple[ErrorCode, int]] = deque()  # of the first of them
        self.is_renewing = False
        self._is_known = True  # by its claim

    @property
    def is_idle(self) -> bool:
        """No batch has a sequence and waits for its answer."""
        return not self._in_flight

    @property
    def waits(self) -> bool:
        """Whether something is not acknowledged."""
        return bool(self._in_flight or self._waiting)

    def append(self, data: bytes, count: int) -> Offset:
        """Have a batch written that takes `count` offsets; the machine's end behind it. Raises
        `lost`.
        """
        if self.lost is not None:
            raise self.lost
        self.end = Offset(self.end + count)
        self._waiting.append((data, count, self.end))
        return self.end

    def to_send(self, now: Millis) -> list[bytes]:
        """The batches to send now, behind those before. Whoever has no lease sends nothing: the
        caller sends them in the same step.
        """
        if self.lost is not None or self.must_reconnect or self.gap is not None:
            return []
        if now >= self.lease_until:
            return []
        sent = self._on_wire
        # A partition takes any sequence of a producer that it does not know: the first goes alone.
        most = IN_FLIGHT if self._is_known else 1
        while self._waiting and len(self._in_flight) < most and not self.is_renewing:
            data, count, end = self._waiting.popleft()
            self._in_flight.append(_Batch(self._numbered(data, count), count, end))
        self._on_wire = len(self._in_flight)
        return [batch.data for batch in list(self._in_flight)[sent:]]

    def _numbered(self, data: bytes, count: int) -> bytes:
        numbered = with_producer(data, self.producer.id, self.producer.epoch, self._sequence)
        self._sequence = (self._sequence + count) % _SEQUENCES
        return numbered

    def answered(self, code: ErrorCode, base_offset: int) -> None:
        """The next batch on the wire has its answer."""
        if self.lost is None and not self.must_reconnect:
            self._answers.append((code, base_offset))
            self._take_answers()

    def disconnected(self) -> None:
        """The connection is gone: what has no answer is sent again, the same bytes in order."""
        self.must_reconnect = False
        self._on_wire = len(self._answers)  # these came before it went, and still count

    def gap_read(self, headers: Iterable[BatchHeader]) -> None:
        """The batches that stand in the gap, and perhaps more behind it."""
        gap = self.gap
        if gap is None:
            return
        at = gap.start
        for header in headers:
            if header.last_offset < gap.start or header.base_offset >= gap.end:
                continue
            if not header.is_control or header.base_offset != at:
                self._lose(
                    FencedError(
                        f"{self.name} has a batch of producer {header.producer_id} at offset "
                        f"{header.base_offset}: somebody else writes it"
                    )
                )
                return
            at = header.last_offset + 1
        if at != gap.end:
            self._lose(
                FencedError(
                    f"{self.name} lacks offset {at}, and nobody knows what was written there"
                )
            )
            return
        self.gap = None
        self.shift += gap.end - gap.start
        self._base = gap.end
        self._take_answers()

    def begin_renewal(self) -> None:
        """Send no new batch until `renewed`: its epoch would be over. Once `is_idle`, the next
        epoch may be asked for (KIP-360).
        """
        self.is_renewing = True

    def renewed(self, producer: Producer) -> None:
        """Go on at another epoch, which begins at sequence 0."""
        if not self.is_idle:
            raise Broken(f"{self.name} gets epoch {producer.epoch} while batches are under way")
        self.producer = producer
        self._sequence = 0
        self.is_renewing = self._is_known = False

    def _take_answers(self) -> None:
        while self._answers and self.gap is None and self.lost is None:
            code, base_offset = self._answers[0]
            if code in _FENCING:
                self._lose(FencedError(f"{self.name} is taken over: {code.name}"))
            elif code is ErrorCode.NONE:
                self._written(base_offset)
            elif code.retriable:
                self.must_reconnect = True
                self._answers.clear()
            else:
                self._lose(Broken(f"{self.name} cannot be written: {code.name}"))

    def _written(self, base_offset: int) -> None:
        if base_offset < self._base:
            text = f"{self.name} has offset {base_offset} free again: the cluster has lost records"
            self._lose(FencedError(f"{text} that it had acknowledged up to {self._base}"))
        elif base_offset > self._base:
            self.gap = Gap(self._base, base_offset)
        else:
            self._answers.popleft()
            batch = self._in_flight.popleft()
            self._on_wire -= 1
            self._base += batch.count
            self._is_known = True
            self.acknowledged = batch.end

    def _lose(self, error: Broken) -> None:
        self.lost = error
        self.gap = None
        self._answers.clear()
        self._in_flight.clear()
        self._waiting.clear()
        self._on_wire = 0
