"""The queue of a producer: what waits in its lanes, and what is to be sent to whom at a moment.

The caller tells the time in milliseconds, and who leads a partition. It sends the shares that
`take` gives, and tells for each batch what came of it. Every batch ends in exactly one `Outcome`.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from kohort.client.producing.batch import NOBODY, Batch, Headers, ProducerId
from kohort.client.producing.error_actions import Verdict, may_be_written, verdict
from kohort.client.producing.errors import DeliveryError
from kohort.client.producing.partition_queue import Lane
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


class Taken(NamedTuple):
    """`shares` are to be sent: a request each, by the node that leads its partitions. Topics in
    `leaderless` have to be looked up.
    """

    shares: list[tuple[int, list[Batch]]]
    leaderless: set[str]


class Queue:
    """All lanes of a producer. `pause_ms` says how long to wait after so many attempts.

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
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._busy: dict[tuple[str, int], Lane] = {}  # in the order of their turns

    @property
    def is_empty(self) -> bool:
        """Nothing waits, and no answer is awaited."""
        return not self._busy

    def is_done(self, number: int) -> bool:
        """Whether everybody knows the fate of all batches up to this one."""
        return not any(
            batch.number <= number and not batch.settled
            for lane in self._busy.values()
            for batch in (*lane.flying, *lane.fresh)
        )

    def queued(self, topic: str, partition: int) -> int:
        """How many batches of a partition are still to be sent."""
        lane = self._busy.get((topic, partition))
        return 0 if lane is None else len(lane.fresh)

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
        lane = self._busy.get(where)
        if lane is None:
            lane = self._lanes.get(where)
            if lane is None:
                lane = self._lanes[where] = Lane(TopicPartition(*where))
            self._busy[where] = lane
        elif lane.fresh:
            batch = lane.fresh[-1]
            if batch.add(timestamp, key, value, headers, batch.limit):
                batch.deliveries.append(delivery)
                batch.timestamps.append(timestamp)
                batch.charge += charge
                if pinned:
                    batch.pin()
                return False
        batch = self._new_batch(lane.place, now())
        batch.take(timestamp, key, value, headers, delivery, charge, pinned=pinned)
        lane.fresh.append(batch)
        return True

    def complete(self, where: tuple[str, int]) -> None:
        """Nothing more will come for the open batch of a partition for now: it does not linger."""
        lane = self._busy.get(where)
        if lane is not None and lane.fresh:
            lane.fresh[-1].close()

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
    ) -> Taken:
        """One request for each node that is free and has something that is due. What will be due
        soon goes along, as far as there is room.
        """
        found: dict[int, list[tuple[Lane, Batch]]] = {}
        due: set[int] = set()
        leaderless: set[str] = set()
        for lane in self._busy.values():
            if lane.has_to_start_anew:
                self._mend(lane)
            batch = lane.candidate(now, self.producer)
            if batch is None or not may_send(lane.place):
                continue
            node = leader_of(lane.place)
            if node is None:
                leaderless.add(lane.place.topic)
                continue
            if not is_free(node):
                continue
            due_at = self._due_at(lane, batch)
            if now >= due_at - self.limits.linger_ms // 2:
                found.setdefault(node, []).append((lane, batch))
                if now >= due_at:
                    due.add(node)
        shares = [(node, self._share(found[node])) for node in found if node in due]
        return Taken(shares, leaderless)

    def _share(self, candidates: Iterable[tuple[Lane, Batch]]) -> list[Batch]:
        size = 0
        share: list[Batch] = []
        for lane, batch in candidates:
            batch.close()
            size += batch.size
            if share and size > self.limits.max_request_size:
                break
            lane.leave(batch)
            share.append(batch)
            self._busy[lane.place] = self._busy.pop(lane.place)  # the last the next time
        return share

    def _due_at(self, lane: Lane, batch: Batch) -> int:
        """When a batch is sent though more records may come."""
        if batch.attempts or self.is_urgent or len(lane.fresh) > 1:
            return batch.not_before
        if batch.sealed_body is not None or batch.size >= self.limits.batch_size:
            return batch.not_before
        return batch.created + self.limits.linger_ms

    def _mend(self, lane: Lane) -> None:
        """Go on at a newer epoch where a sequence will never come. A transaction has to be aborted
        instead, which gives everybody a new epoch.
        """
        if lane.on_wire or self.producer is None:
            return
        if lane.producer == self.producer:
            if self.transactional:
                return
            if self.producer.epoch == EPOCH_MAX:
                self.producer = None
                return
            self.producer = ProducerId(self.producer.id, self.producer.epoch + 1)
        lane.start_anew(self.producer)

    def wake_at(self, now: int) -> int | None:
        """When to look again, if nothing happens before: something is due then, or too late."""
        times = []
        for lane in self._busy.values():
            times += [batch.expires for batch in lane.flying if not batch.settled]
            if lane.fresh:
                times.append(lane.fresh[0].expires)
            batch = lane.candidate(1 << 62, self.producer)
            if batch is not None:
                at = max(self._due_at(lane, batch), batch.not_before)
                if at > now:
                    times.append(at)
        return min(times, default=None)

    # What came of it

    def acked(self, batch: Batch, offset: int, append_time: int) -> list[Outcome]:
        """The broker has written it, from this offset on."""
        lane = self._lane(batch)
        lane.acked(batch)
        return self._end(lane, batch, Outcome(batch, offset, append_time, None))

    def refused(
        self, batch: Batch, error: ApiError, now: int, offset: int = UNKNOWN
    ) -> list[Outcome]:
        """The broker has answered with an error, or the answer was lost (NETWORK_EXCEPTION and
        REQUEST_TIMED_OUT). `offset` is what the answer says beside the error. Verdict.OVER is the
        caller's to see to, before.
        """
        lane = self._lane(batch)
        code = error.code
        batch.on_wire = False
        batch.maybe_written = batch.maybe_written or may_be_written(code, offset)
        batch.last_error = error
        found = self.verdict(batch, code)
        if found is Verdict.WRITTEN:
            return self.acked(batch, UNKNOWN, UNKNOWN)
        if batch.settled or found in (Verdict.FAIL, Verdict.OVER):
            lane.dropped(batch)
            known = self._because(batch, error)
            return self._end(lane, batch, Outcome(batch, UNKNOWN, UNKNOWN, known))
        if found is Verdict.SPLIT:
            halves = batch.halves()
            lane.split(batch, halves)
            for half in halves:
                half.not_before = now
            return []
        if found is Verdict.ANEW:
            lane.miss(batch.sequence)
        batch.not_before = now + self._pause_ms(batch.attempts - 1)
        return []

    def unsent(self, batch: Batch, error: ApiError, now: int) -> None:
        """It never left: send it again after a pause."""
        batch.on_wire = False
        batch.last_error = error
        batch.not_before = now + self._pause_ms(batch.attempts - 1)

    def verdict(self, batch: Batch, code: ErrorCode) -> Verdict:
        """What an error means for this batch."""
        return verdict(
            code,
            records=batch.count,
            is_next=self._lane(batch).is_next(batch),
            idempotent=self.idempotent,
            transactional=self.transactional,
            maybe_written=batch.maybe_written,
        )

    def made_anew(self, topic: str) -> bool:
        """A topic was deleted and made anew: what is left goes to the new one.

        Returns whether a transaction may have lost records: then all of it has to be done again.
        """
        lanes = [lane for lane in self._lanes.values() if lane.place.topic == topic]
        wrote = [lane.made_anew() and lane.producer == self.producer for lane in lanes]
        return self.transactional and any(wrote)

    def displace(self, topic: str, partitions: Collection[int]) -> list[Batch]:
        """Take out what waits for these partitions of a topic, in the order in which it came: they
        are not there any more. Batches whose answer is awaited stay until it has come.
        """
        found: list[Batch] = []
        for lane in list(self._busy.values()):
            if lane.place.topic != topic or lane.place.partition not in partitions:
                continue
            for batch in (*lane.flying, *lane.fresh):
                if not batch.on_wire and not batch.settled:
                    batch.settled = True
                    self.used -= batch.charge
                    self._give_up(lane, batch)
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
        taken = self._busy[where].fresh[-1]
        taken.number = min(taken.number, batch.number)
        taken.expires = min(taken.expires, batch.expires)

    def expire(self, now: int, why: str = "") -> list[Outcome]:
        """Give up what has not been delivered in time; `why` is told of what never left. An answer
        that is still awaited is heard for the sake of what follows.
        """
        outcomes: list[Outcome] = []
        for lane in list(self._busy.values()):
            late = [batch for batch in (*lane.flying, *lane.fresh) if batch.expires <= now]
            for batch in late:
                if not batch.settled:
                    error = self._too_late(batch, why)
                    outcomes += self._settle(Outcome(batch, UNKNOWN, UNKNOWN, error))
                self._give_up(lane, batch)
        return outcomes

    def drop(self, error: ApiError, *, topic: str | None = None) -> list[Outcome]:
        """Give up everything, or all of one topic. What is on its way is settled when it is
        answered, if somebody hears the answer: see `abandon`.
        """
        outcomes: list[Outcome] = []
        for lane in list(self._busy.values()):
            if topic is not None and lane.place.topic != topic:
                continue
            for batch in (*lane.flying, *lane.fresh):
                if not batch.on_wire:
                    known = self._because(batch, error)
                    outcomes += self._settle(Outcome(batch, UNKNOWN, UNKNOWN, known))
                    self._give_up(lane, batch)
        return outcomes

    def abandon(self, error: ApiError) -> list[Outcome]:
        """Give up everything; no answer will be heard any more."""
        for lane in self._busy.values():
            for batch in lane.flying:
                batch.maybe_written = batch.maybe_written or batch.on_wire
                batch.on_wire = False
        return self.drop(error)

    # Inside

    def _lane(self, batch: Batch) -> Lane:
        return self._lanes[batch.place]

    def _give_up(self, lane: Lane, batch: Batch) -> None:
        if batch.on_wire:
            return
        if batch in lane.fresh:
            lane.fresh.remove(batch)
        else:
            lane.dropped(batch)
        self._rest(lane)

    def _end(self, lane: Lane, batch: Batch, outcome: Outcome) -> list[Outcome]:
        self._rest(lane)
        return [] if batch.settled else self._settle(outcome)

    def _settle(self, outcome: Outcome) -> list[Outcome]:
        if outcome.batch.settled:
            return []
        outcome.batch.settled = True
        self.used -= outcome.batch.charge
        return [outcome]

    def _rest(self, lane: Lane) -> None:
        if lane.is_empty:
            self._busy.pop(lane.place, None)

    def _too_late(self, batch: Batch, why: str) -> DeliveryError:
        maybe = batch.maybe_written or batch.on_wire
        last = [str(error) for error in (batch.last_error, why) if error]
        text = f"not delivered within {self.limits.delivery_timeout_ms} ms"
        text += f" ({'; '.join(last)})" if last else ""
        return _told(batch, ErrorCode.REQUEST_TIMED_OUT, text, maybe=maybe)

    def _because(self, batch: Batch, error: ApiError) -> DeliveryError:
        return _told(batch, error.code, error.message, maybe=batch.maybe_written)


def _told(batch: Batch, code: ErrorCode, why: str, *, maybe: bool) -> DeliveryError:
    known = "it may have been written" if maybe else "it was not written"
    text = f"{batch.place}: {why}; {known}" if why else f"{batch.place}: {known}"
    return DeliveryError(code, text, maybe_written=maybe)
