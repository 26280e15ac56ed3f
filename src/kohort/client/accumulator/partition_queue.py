# SPDX-License-Identifier: Apache-2.0
"""The order of one partition: which batch may be sent next, and by which sequence.

A broker takes the batches of a producer id and epoch in the order of their sequences, and knows the
last five again (KIP-98). So up to five are under way after a first one, what is sent again goes
first and alone, and where a sequence will never come, the queue goes on at a newer epoch from 0
(KIP-360).
"""

from collections import deque

from kohort.client.accumulator.batch import NOBODY, SEQUENCES, Batch, ProducerId
from kohort.terms import TopicPartition

AT_ONCE_MAX = 5  # what a broker knows again of a producer


class PartitionQueue:
    """`pending` was never sent, and its last batch may grow. `in_flight` was sent, and has no
    answer that ends it.

    `gap` is a sequence that the broker waits for and that will not come: what is before it goes on
    as it was, because the log may have it already, and nothing else is sent before
    `restart_sequences`. `unresolved` says that such a sequence may have been written: what follows
    it tells.
    """

    __slots__ = (
        *("in_flight", "pending", "gap", "last_acked", "next_sequence", "place", "producer"),
        "unresolved",
    )

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.pending: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.producer = NOBODY
        self.next_sequence = 0
        self.last_acked = -1
        self.gap: int | None = None
        self.unresolved = False

    @property
    def is_empty(self) -> bool:
        """Nothing is to be sent, and no answer is awaited."""
        return not self.pending and not self.in_flight

    @property
    def on_wire(self) -> bool:
        """Whether an answer is awaited."""
        return any(batch.on_wire for batch in self.in_flight)

    @property
    def needs_new_epoch(self) -> bool:
        """Nothing more can be sent by the sequences of now."""
        if self.gap is None:
            return False
        return not self.in_flight or not _is_before(self.in_flight[0].sequence, self.gap)

    def next_sendable(self, now: int, producer: ProducerId | None) -> Batch | None:
        """The batch that may be sent next, if one may. `producer` is who writes now: NOBODY
        without idempotence, None where that is not known yet.
        """
        if producer is None or self.needs_new_epoch:
            return None
        for batch in self.in_flight:
            if not batch.on_wire:
                first = batch is self.in_flight[0]
                return batch if first and now >= batch.not_before else None
        if not self.pending or self.unresolved or self.gap is not None:
            return None
        if len(self.in_flight) >= AT_ONCE_MAX:
            return None
        if self.in_flight and self.last_acked < 0 and self.producer != NOBODY:
            return None  # a broker that knows nothing of a producer takes any sequence of it
        if self.producer != producer:
            if self.in_flight:
                return None
            self.restart_sequences(producer)
        batch = self.pending[0]
        return batch if now >= batch.not_before else None

    def leave(self, batch: Batch) -> None:
        """The candidate is sent: it gets its sequence the first time."""
        if self.pending and batch is self.pending[0]:
            self.pending.popleft()
            self.in_flight.append(batch)
            batch.producer = self.producer
            if self.producer != NOBODY:
                batch.sequence = self.next_sequence
                self.next_sequence = batch.next_sequence
        batch.on_wire = True
        batch.attempts += 1

    def acked(self, batch: Batch) -> None:
        """The broker has it."""
        self._end(batch)
        known = self.last_acked
        is_newer = known < 0 or _is_before(known, batch.last_sequence)
        if batch.producer == self.producer != NOBODY and is_newer:
            self.last_acked = batch.last_sequence
        self._look()

    def dropped(self, batch: Batch) -> None:
        """It will not be sent again. Its sequence is free where it was certainly not written and
        nothing follows it; else what follows cannot be taken as it is.
        """
        last = bool(self.in_flight) and self.in_flight[-1] is batch
        self._end(batch)
        if batch.sequence < 0 or batch.producer != self.producer:
            return
        if batch.maybe_written:
            self.unresolved = True
        elif last:
            self.next_sequence = batch.sequence
        else:
            self.miss(batch.sequence)
        self._look()

    def miss(self, sequence: int) -> None:
        """This sequence will never come."""
        if self.gap is None or _is_before(sequence, self.gap):
            self.gap = sequence

    def split(self, batch: Batch, halves: tuple[Batch, Batch]) -> None:
        """Two batches take its place."""
        at = self.in_flight.index(batch)
        batch.on_wire = False
        self.in_flight[at : at + 1] = halves

    def is_next(self, batch: Batch) -> bool:
        """Whether nothing that was sent before it is without an answer."""
        return bool(self.in_flight) and self.in_flight[0] is batch

    def restart_sequences(self, producer: ProducerId) -> None:
        """Go on from sequence 0 at another epoch, also what was sent and refused.

        Only while no answer is awaited.
        """
        self.producer = producer
        self.next_sequence = 0
        self.last_acked = -1
        self.gap = None
        self.unresolved = False
        for batch in self.in_flight:
            batch.producer = producer
            batch.sequence = self.next_sequence
            self.next_sequence = batch.next_sequence

    def topic_recreated(self) -> bool:
        """Its topic was deleted, and another one has the name, whose leader knows nothing of what
        was written: the next batch goes alone again, and no sequence comes twice.

        Returns whether anything was written by the sequences of now.
        """
        self.last_acked = -1
        return self.next_sequence > 0

    def _end(self, batch: Batch) -> None:
        batch.on_wire = False
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def _look(self) -> None:
        """Once nothing is under way, the log has all up to the last that was acknowledged."""
        if self.unresolved and not self.in_flight:
            self.unresolved = False
            expected = (self.last_acked + 1) & SEQUENCES
            if self.next_sequence != expected:
                self.miss(expected)


def _is_before(sequence: int, other: int) -> bool:
    """Whether a sequence comes before another, less than half of all of them away."""
    return 0 < (other - sequence) & SEQUENCES <= SEQUENCES // 2
