# SPDX-License-Identifier: Apache-2.0
"""What waits in the partition queues of a producer, and what is to be sent to whom at a moment.

The caller tells the time in milliseconds, and who leads a partition. It sends the shares that
`take` gives, and tells for each batch what came of it. Every batch ends in exactly one `Outcome`.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from kohort.client.accumulator.batch import NOBODY, Batch, Headers, ProducerId
from kohort.client.accumulator.error_actions import ErrorAction, error_action, may_be_written
from kohort.client.accumulator.errors import DeliveryError
from kohort.client.accumulator.partition_queue import PartitionQueue
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition
from kohort.wire.batch.reading import Record

EPOCH_MAX = 32767
UNKNOWN = -1


class Limits(NamedTuple):
    """Sizes are bytes and times milliseconds, named as the settings are."""

    batch_size: int
    linger_ms: int
    max_request_size: int
    delivery_timeout_ms: int
    codec: int


class Outcome(NamedTuple):
    """What became of a batch: where it is (`offset` is UNKNOWN where nobody knows), or an error.

    `append_time` is the broker's time for all of its records, UNKNOWN where they keep their own.
    """

    batch: Batch
    offset: int
    append_time: int
    error: ApiError | None


class ReadyBatches(NamedTuple):
    """`shares` are to be sent: a request each, by the node that leads its partitions. Topics in
    `leaderless` have to be looked up.
    """

    shares: list[tuple[int, list[Batch]]]
    leaderless: set[str]


class RecordAccumulator:
    """All partition queues of a producer. `pause_ms` says how long to wait after so many attempts.

    `producer` is who writes, NOBODY without idempotence. With idempotence it is None until
    somebody has asked the cluster, and again when its epochs are used up. `is_urgent` says that
    nothing is to linger: somebody waits for it.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        idempotent: bool,
        transactional: bool,
        pause_ms: Callable[[int], int],
    ) -> None:
        self.limits = limits
        self.idempotent = idempotent
        self.transactional = transactional
        self.producer: ProducerId | None = None if idempotent else NOBODY
        self.is_urgent = False
        self.used = 0  # bytes of all records whose fate is open
        self.last_number = 0  # of the newest batch
        self._pause_ms = pause_ms
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._busy: dict[tuple[str, int], PartitionQueue] = {}  # in the order of their turns

    @property
    def is_empty(self) -> bool:
        """Nothing waits, and no answer is awaited."""
        return not self._busy

    def is_done(self, number: int) -> bool:
        """Whether everybody knows the fate of all batches up to this one."""
        return not any(
            batch.number <= number and not batch.settled
            for queue in self._busy.values()
            for batch in (*queue.in_flight, *queue.pending)
        )

    def queued(self, topic: str, partition: int) -> int:
        """How many batches of a partition are still to be sent."""
        queue = self._busy.get((topic, partition))
        return 0 if queue is None else len(queue.pending)

    def partitions(self, topic: str) -> list[int]:
        """Those of a topic that have something to send, or await an answer."""
        return [partition for name, partition in self._busy if name == topic]

    def add(
        self,
        where: tuple[str, int],
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        delivery: Any,
        charge: int,
        now: Callable[[], int],
        *,
        pinned: bool = False,
    ) -> bool:
        """Take a record; `pinned` where the application chose its partition. True when there is
        something new to do: a first batch, or a full one.
        """
        self.used += charge
        queue = self._busy.get(where)
        if queue is None:
            queue = self._queues.get(where)
            if queue is None:
                queue = self._queues[where] = PartitionQueue(TopicPartition(*where))
            self._busy[where] = queue
        elif queue.pending:
            batch = queue.pending[-1]
            if batch.add(timestamp, key, value, headers, batch.limit):
                batch.deliveries.append(delivery)
                batch.timestamps.append(timestamp)
                batch.charge += charge
                if pinned:
                    batch.pin()
                return False
        batch = self._new_batch(queue.place, now())
        batch.take(timestamp, key, value, headers, delivery, charge, pinned=pinned)
        queue.pending.append(batch)
        return True

    def complete(self, where: tuple[str, int]) -> None:
        """Nothing more will come for the open batch of a partition for now: it does not linger."""
        queue = self._busy.get(where)
        if queue is not None and queue.pending:
            queue.pending[-1].close()

    def _new_batch(self, place: TopicPartition, now: int) -> Batch:
        limits = self.limits
        self.last_number += 1
        return Batch(
            place,
            self.last_number,
            limit=limits.batch_size,
            codec=limits.codec,
            created=now,
            expires=now + limits.delivery_timeout_ms,
        )

    # What to do now

    def take(
        self,
        now: int,
        leader_of: Callable[[TopicPartition], int | None],
        is_free: Callable[[int], bool],
        may_send: Callable[[TopicPartition], bool],
    ) -> ReadyBatches:
        """One request for each node that is free and has something that is due. What will be due
        soon goes along, as far as there is room.
        """
        found: dict[int, list[tuple[PartitionQueue, Batch]]] = {}
        due: set[int] = set()
        leaderless: set[str] = set()
        for queue in self._busy.values():
            if queue.needs_new_epoch:
                self._mend(queue)
            batch = queue.next_sendable(now, self.producer)
            if batch is None or not may_send(queue.place):
                continue
            node = leader_of(queue.place)
            if node is None:
                leaderless.add(queue.place.topic)
                continue
            if not is_free(node):
                continue
            due_at = self._due_at(queue, batch)
            if now >= due_at - self.limits.linger_ms // 2:
                found.setdefault(node, []).append((queue, batch))
                if now >= due_at:
                    due.add(node)
        shares = [(node, self._share(found[node])) for node in found if node in due]
        return ReadyBatches(shares, leaderless)

    def _share(self, candidates: Iterable[tuple[PartitionQueue, Batch]]) -> list[Batch]:
        size = 0
        share: list[Batch] = []
        for queue, batch in candidates:
            batch.close()
            size += batch.size
            if share and size > self.limits.max_request_size:
                break
            queue.leave(batch)
            share.append(batch)
            self._busy[queue.place] = self._busy.pop(queue.place)  # the last the next time
        return share

    def _due_at(self, queue: PartitionQueue, batch: Batch) -> int:
        """When a batch is sent though more records may come."""
        if batch.attempts or self.is_urgent or len(queue.pending) > 1:
            return batch.not_before
        if batch.sealed_body is not None or batch.size >= self.limits.batch_size:
            return batch.not_before
        return batch.created + self.limits.linger_ms

    def _mend(self, queue: PartitionQueue) -> None:
        """Go on at a newer epoch where a sequence will never come. A transaction has to be aborted
        instead, which gives everybody a new epoch.
        """
        if queue.on_wire or self.producer is None:
            return
        if queue.producer == self.producer:
            if self.transactional:
                return
            if self.producer.epoch == EPOCH_MAX:
                self.producer = None
                return
            self.producer = ProducerId(self.producer.id, self.producer.epoch + 1)
        queue.restart_sequences(self.producer)

    def wake_at(self, now: int) -> int | None:
        """When to look again, if nothing happens before: something is due then, or too late."""
        times = []
        for queue in self._busy.values():
            times += [batch.expires for batch in queue.in_flight if not batch.settled]
            if queue.pending:
                times.append(queue.pending[0].expires)
            batch = queue.next_sendable(1 << 62, self.producer)
            if batch is not None:
                at = max(self._due_at(queue, batch), batch.not_before)
                if at > now:
                    times.append(at)
        return min(times, default=None)

    # What came of it

    def acked(self, batch: Batch, offset: int, append_time: int) -> list[Outcome]:
        """The broker has written it, from this offset on."""
        queue = self._queue_of(batch)
        queue.acked(batch)
        return self._end(queue, batch, Outcome(batch, offset, append_time, None))

    def refused(
        self, batch: Batch, error: ApiError, now: int, offset: int = UNKNOWN
    ) -> list[Outcome]:
        """The broker has answered with an error, or the answer was lost (NETWORK_EXCEPTION and
        REQUEST_TIMED_OUT). `offset` is what the answer says beside the error. ErrorAction.FATAL is
        the caller's to see to, before.
        """
        queue = self._queue_of(batch)
        code = error.code
        batch.on_wire = False
        batch.maybe_written = batch.maybe_written or may_be_written(code, offset)
        batch.last_error = error
        found = self.error_action(batch, code)
        if found is ErrorAction.WRITTEN:
            return self.acked(batch, UNKNOWN, UNKNOWN)
        if batch.settled or found in (ErrorAction.FAIL, ErrorAction.FATAL):
            queue.dropped(batch)
            known = self._because(batch, error)
            return self._end(queue, batch, Outcome(batch, UNKNOWN, UNKNOWN, known))
        if found is ErrorAction.SPLIT:
            halves = batch.halves()
            queue.split(batch, halves)
            for half in halves:
                half.not_before = now
            return []
        if found is ErrorAction.RETRY_WITH_NEW_EPOCH:
            queue.miss(batch.sequence)
        batch.not_before = now + self._pause_ms(batch.attempts - 1)
        return []

    def unsent(self, batch: Batch, error: ApiError, now: int) -> None:
        """It never left: send it again after a pause."""
        batch.on_wire = False
        batch.last_error = error
        batch.not_before = now + self._pause_ms(batch.attempts - 1)

    def error_action(self, batch: Batch, code: ErrorCode) -> ErrorAction:
        """What an error means for this batch."""
        return error_action(
            code,
            records=batch.count,
            is_next=self._queue_of(batch).is_next(batch),
            idempotent=self.idempotent,
            transactional=self.transactional,
            maybe_written=batch.maybe_written,
        )

    def topic_recreated(self, topic: str) -> bool:
        """A topic was deleted and made anew: what is left goes to the new one.

        Returns whether a transaction may have lost records: then all of it has to be done again.
        """
        queues = [queue for queue in self._queues.values() if queue.place.topic == topic]
        wrote = [queue.topic_recreated() and queue.producer == self.producer for queue in queues]
        return self.transactional and any(wrote)

    def displace(self, topic: str, partitions: Collection[int]) -> list[Batch]:
        """Take out what waits for these partitions of a topic, in the order in which it came: they
        are not there any more. Batches whose answer is awaited stay until it has come.
        """
        found: list[Batch] = []
        for queue in list(self._busy.values()):
            if queue.place.topic != topic or queue.place.partition not in partitions:
                continue
            for batch in (*queue.in_flight, *queue.pending):
                if not batch.on_wire and not batch.settled:
                    batch.settled = True
                    self.used -= batch.charge
                    self._give_up(queue, batch)
                    found.append(batch)
        return found

    def replace(self, batch: Batch, at: int, record: Record, partition: int, now: int) -> None:
        """Put a record of a batch that was displaced into another partition. Who waits for the
        former batch waits for this one, and it expires no later.
        """
        where = (batch.place.topic, partition)
        charge = batch.charge // batch.count
        if at == 0:
            charge += batch.charge % batch.count
        self.add(
            *(where, record.timestamp, record.key, record.value, record.headers),
            *(batch.deliveries[at], charge, lambda: now),
        )
        taken = self._busy[where].pending[-1]
        taken.number = min(taken.number, batch.number)
        taken.expires = min(taken.expires, batch.expires)

    def expire(self, now: int, why: str = "") -> list[Outcome]:
        """Give up what has not been delivered in time; `why` is told of what never left. An answer
        that is still awaited is heard for the sake of what follows.
        """
        outcomes: list[Outcome] = []
        for queue in list(self._busy.values()):
            late = [batch for batch in (*queue.in_flight, *queue.pending) if batch.expires <= now]
            for batch in late:
                if not batch.settled:
                    error = self._too_late(batch, why)
                    outcomes += self._settle(Outcome(batch, UNKNOWN, UNKNOWN, error))
                self._give_up(queue, batch)
        return outcomes

    def drop(self, error: ApiError, *, topic: str | None = None) -> list[Outcome]:
        """Give up everything, or all of one topic. What is on its way is settled when it is
        answered, if somebody hears the answer: see `abandon`.
        """
        outcomes: list[Outcome] = []
        for queue in list(self._busy.values()):
            if topic is not None and queue.place.topic != topic:
                continue
            for batch in (*queue.in_flight, *queue.pending):
                if not batch.on_wire:
                    known = self._because(batch, error)
                    outcomes += self._settle(Outcome(batch, UNKNOWN, UNKNOWN, known))
                    self._give_up(queue, batch)
        return outcomes

    def abandon(self, error: ApiError) -> list[Outcome]:
        """Give up everything; no answer will be heard any more."""
        for queue in self._busy.values():
            for batch in queue.in_flight:
                batch.maybe_written = batch.maybe_written or batch.on_wire
                batch.on_wire = False
        return self.drop(error)

    # Inside

    def _queue_of(self, batch: Batch) -> PartitionQueue:
        return self._queues[batch.place]

    def _give_up(self, queue: PartitionQueue, batch: Batch) -> None:
        if batch.on_wire:
            return
        if batch in queue.pending:
            queue.pending.remove(batch)
        else:
            queue.dropped(batch)
        self._rest(queue)

    def _end(self, queue: PartitionQueue, batch: Batch, outcome: Outcome) -> list[Outcome]:
        self._rest(queue)
        return [] if batch.settled else self._settle(outcome)

    def _settle(self, outcome: Outcome) -> list[Outcome]:
        if outcome.batch.settled:
            return []
        outcome.batch.settled = True
        self.used -= outcome.batch.charge
        return [outcome]

    def _rest(self, queue: PartitionQueue) -> None:
        if queue.is_empty:
            self._busy.pop(queue.place, None)

    def _too_late(self, batch: Batch, why: str) -> DeliveryError:
        maybe = batch.maybe_written or batch.on_wire
        last = [str(error) for error in (batch.last_error, why) if error]
        text = f"not delivered within {self.limits.delivery_timeout_ms} ms"
        text += f" ({'; '.join(last)})" if last else ""
        return _delivery_error(batch, ErrorCode.REQUEST_TIMED_OUT, text, maybe=maybe)

    def _because(self, batch: Batch, error: ApiError) -> DeliveryError:
        return _delivery_error(batch, error.code, error.message, maybe=batch.maybe_written)


def _delivery_error(batch: Batch, code: ErrorCode, why: str, *, maybe: bool) -> DeliveryError:
    known = "it may have been written" if maybe else "it was not written"
    text = f"{batch.place}: {why}; {known}" if why else f"{batch.place}: {known}"
    return DeliveryError(code, text, maybe_written=maybe)
