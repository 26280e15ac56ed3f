# SPDX-License-Identifier: Apache-2.0
"""A node that owns the log at times: it claims, writes, keeps what it has, and loses it again."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from kohort.errors import Broken, ErrorCode, FencedError, KohortError
from kohort.machines.effects import Producer
from kohort.remote import claim as claims
from kohort.remote.tenure import Duty, Expirations, Tenure
from kohort.remote.writer import PartitionWriter
from kohort.sim.events import VirtualLoop
from kohort.sim.remote.connection import Connection
from kohort.sim.remote.nodes import HEARTBEAT_MS, MARGIN_MS, SESSION_MS, Nodes
from kohort.sim.remote.partition import ProducerIds, RemotePartition
from kohort.terms import Millis, Offset
from kohort.wire import batch

TRANSACTIONAL_ID = "log-0"
RETRY_S = 0.1
TICK_S = 1.0
CLAIM_KEY = b"claim"


class Cluster(Protocol):
    """What a node can reach, and who is told what became of its writes."""

    loop: VirtualLoop
    partition: RemotePartition
    ids: ProducerIds
    nodes: Nodes
    expirations: Expirations

    @property
    def now(self) -> Millis: ...
    def produce(self, life: str, data: bytes) -> tuple[ErrorCode, int]: ...
    def serves(self, life: str, end: Offset, known: set[str]) -> None: ...
    def acknowledged(self, life: str, value: str) -> None: ...
    def lost(self, life: str, error: KohortError) -> None: ...


class Owner:
    """One process. `life` names one time for which it has had the log, or wanted it."""

    def __init__(self, cluster: Cluster, name: str, loop: VirtualLoop, random: Random) -> None:
        self.name = name
        self.loop = loop
        self.life = f"{name}.0"
        self.clock_stood_ms = 0  # it lags behind by so much
        self.write_pause_s = 1.0
        self._cluster = cluster
        self._random = random
        self._lives = 0
        self._written = 0
        self._lease_until = Millis(0)
        self._connection = Connection(cluster.loop, loop, random)
        self._claim: claims.Claim | None = None
        self._writer: PartitionWriter | None = None
        self._tenure: Tenure | None = None
        self._values: deque[tuple[Offset, str]] = deque()  # not acknowledged yet
        self._known: set[str] = set()
        self._asks_epoch = False
        self._reads_gap = False

    @property
    def now(self) -> Millis:
        """By the clock of this process."""
        return Millis(self.loop.now // 1000 - self.clock_stood_ms)

    @property
    def has_lease(self) -> bool:
        """By its own clock."""
        return self.now < self._lease_until

    @property
    def wants_log(self) -> bool:
        """It has asked for the log, and has not got it yet."""
        return self._claim is not None

    def begin(self) -> None:
        """Join the group of nodes."""
        self.loop.call_soon(self._heartbeat)
        self.loop.call_soon(self._tick)

    def cut(self) -> None:
        """Its connection ends; it finds out, and opens another one."""
        old = self._connection
        if old.is_open:
            old.end()
            most_s = self._random.choice((3, 3, 3, 30))
            self.loop.call_later(self._random.uniform(0, most_s), self._reconnect)

    def _reconnect(self) -> None:
        self._connection = Connection(self._cluster.loop, self.loop, self._random)
        if self._writer is not None:
            self._writer.disconnected()
            self._asks_epoch = self._reads_gap = False
            self._go_on()
        elif self._claim is not None:
            self._step(self._claim)

    def _ask(self, handle: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        life = self.life

        def if_it_matters(answer: Any) -> None:
            if life == self.life:
                answered(answer)

        self._connection.ask(handle, if_it_matters)

    # --- the group of nodes

    def _heartbeat(self) -> None:
        sent_at = self.now
        cluster = self._cluster
        self._connection.ask(
            lambda: cluster.nodes.heartbeat(self.name, cluster.now),
            lambda owner: self._hear(owner, sent_at),
        )
        self.loop.call_later(HEARTBEAT_MS / 1000, self._heartbeat)

    def _hear(self, owner: str | None, sent_at: Millis) -> None:
        if owner != self.name:
            self._release()
            return
        self._lease_until = self.leased_until(sent_at, self.now)
        if self._writer is not None:
            self._writer.lease_until = self._lease_until
            self._go_on()
        elif self._claim is None:
            self._begin_claim()

    @staticmethod
    def leased_until(sent_at: Millis, _heard_at: Millis) -> Millis:
        """The group counts a session from when it hears of a node, which is not before it was
        sent.
        """
        return Millis(sent_at + SESSION_MS - MARGIN_MS)

    def _release(self) -> None:
        """It has nothing any more, and whatever it is told of the former life does not matter."""
        self._lives += 1
        self.life = f"{self.name}.{self._lives}"
        self._claim = None
        self._writer = None
        self._values.clear()
        self._asks_epoch = self._reads_gap = False

    # --- the claim

    def _begin_claim(self) -> None:
        self._known = set()
        record = claims.ClaimRecord(CLAIM_KEY, self.life.encode(), self.now)
        self._claim = claims.Claim(TRANSACTIONAL_ID, record)
        self._step(self._claim)

    def _step(self, claim: claims.Claim) -> None:
        if claim is not self._claim:
            return
        if self.now >= self._lease_until:
            self._release()
            return
        cluster, request = self._cluster, claim.request
        if claim.result is not None:
            self._serve(claim.result)
        elif isinstance(request, claims.InitProducerId):
            self._ask(
                lambda: cluster.ids.init(None, cluster.now),
                lambda answer: self._take(claim, lambda: claim.initialised(answer)),
            )
        elif isinstance(request, claims.Write):
            life = self.life
            self._ask(
                lambda: cluster.produce(life, request.batch),
                lambda answer: self._claim_written(claim, *answer),
            )
        else:
            offset = request.offset or Offset(0)
            self._ask(
                lambda: ([*cluster.partition.read(offset)], cluster.partition.end),
                lambda answer: self._take(claim, lambda: self._load(claim, *answer)),
            )

    def _take(self, claim: claims.Claim, take: Callable[[], None]) -> None:
        try:
            take()
        except FencedError:
            self._release()
        else:
            self._step(claim)

    def _claim_written(self, claim: claims.Claim, code: ErrorCode, base_offset: int) -> None:
        if code.retriable:
            self.loop.call_later(RETRY_S, self._step, claim)
        else:
            self._take(claim, lambda: claim.written(code, base_offset))

    def _load(self, claim: claims.Claim, batches: list[Any], end: Offset) -> None:
        for header, data in batches:
            if not header.is_control:
                for _, _, _, value in batch.entries(data):
                    self._known.add((value or b"").decode())
        claim.read([header for header, _ in batches], end)

    # --- the log

    def _serve(self, result: claims.ClaimResult) -> None:
        self._claim = None
        self._writer = PartitionWriter("log-0", result.producer, result.end, result.sequence)
        self._writer.lease_until = self._lease_until
        self._tenure = Tenure(self._cluster.expirations, self.now)
        self._cluster.serves(self.life, result.end, self._known)

    def _tick(self) -> None:
        """Do what is due, or write something now and then."""
        self.loop.call_later(self._random.uniform(0.2, 1) * TICK_S, self._tick)
        writer, tenure = self._writer, self._tenure
        if writer is None or tenure is None or writer.lost is not None:
            return
        duty = tenure.due(self.now)
        if duty is Duty.RENEW:
            writer.begin_renewal()
        elif duty is Duty.KEEP_ALIVE:
            self._append(writer, CLAIM_KEY, self.life)
        elif self._random.random() * self.write_pause_s < TICK_S:
            for _ in range(self._random.choice((1, 1, 1, 3, 8))):
                self._written += 1
                key = b"k%d" % self._random.randrange(5)
                self._append(writer, key, f"{self.life}:{self._written}")
        else:
            return
        self._go_on()

    def _append(self, writer: PartitionWriter, key: bytes, value: str) -> None:
        data = batch.build([(key, value.encode())], self.now)
        self._values.append((writer.append(data, 1), value))

    def _go_on(self) -> None:
        """Send what may be sent, and see what the answers have brought."""
        writer, tenure = self._writer, self._tenure
        if writer is None or tenure is None:
            return
        if writer.lost is not None:
            self._cluster.lost(self.life, writer.lost)
            self._release()
            return
        while self._values and self._values[0][0] <= writer.acknowledged:
            tenure.wrote(self.now)
            self._cluster.acknowledged(self.life, self._values.popleft()[1])
        if writer.must_reconnect:
            self.cut()
        elif writer.gap is not None:
            self._read_gap(writer)
        else:
            life = self.life
            for data in writer.to_send(self.now):
                self._ask(
                    lambda data=data: self._cluster.produce(life, data),  # type: ignore[misc]
                    lambda answer: self._answered(writer, *answer),
                )
            self._renew(writer, tenure)

    def _answered(self, writer: PartitionWriter, code: ErrorCode, base_offset: int) -> None:
        writer.answered(code, base_offset)
        self._go_on()

    def _read_gap(self, writer: PartitionWriter) -> None:
        gap, partition = writer.gap, self._cluster.partition
        if gap is None or self._reads_gap:
            return
        self._reads_gap = True

        def take(headers: list[Any]) -> None:
            self._reads_gap = False
            writer.gap_read(headers)
            self._go_on()

        self._ask(lambda: [header for header, _ in partition.read(Offset(gap.start))], take)

    def _renew(self, writer: PartitionWriter, tenure: Tenure) -> None:
        if not (writer.is_renewing and writer.is_idle) or self._asks_epoch:
            return
        if self.now >= self._lease_until:
            return
        self._asks_epoch = True
        cluster, before, asked_at = self._cluster, writer.producer, self.now

        def take(answer: Producer | ErrorCode) -> None:
            self._asks_epoch = False
            if isinstance(answer, ErrorCode):
                cluster.lost(self.life, Broken(f"renewal: {answer.name}"))
                self._release()
                return
            writer.renewed(answer)
            tenure.renewed(asked_at)
            self._append(writer, CLAIM_KEY, self.life)
            self._go_on()

        self._ask(lambda: cluster.ids.init(before, cluster.now), take)
