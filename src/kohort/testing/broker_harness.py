# SPDX-License-Identifier: Apache-2.0
"""A broker under test, inside its event loop: the server, its clock, its disk and its faults.

Its coroutines are the commands that a test may give, by name. They take and return plain values,
since the test may be in another process.
"""

import asyncio
import errno
from asyncio.tasks import sleep  # by no name that tests patch
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kohort.config import BrokerConfig
from kohort.config.listeners import listener_text
from kohort.errors import KohortError
from kohort.runtime.observers import Observer
from kohort.server.broker import Broker
from kohort.server.catalog import OFFSETS_TOPIC
from kohort.server.environment import BrokerEnvironment
from kohort.server.network.dispatcher import RequestDispatcher
from kohort.server.placement import NOBODY, Placement
from kohort.server.requests.fetch_purgatory import DelayedFetch
from kohort.terms import GroupId
from kohort.testing.clock import Kind, MovableClock
from kohort.testing.disk import Disk
from kohort.testing.fault_injector import Fault, FaultInjector
from kohort.testing.threads import Threads
from kohort.wire.apis import APIS

HOST = "127.0.0.1"
OF_SASL = (17, 36)  # SaslHandshake, SaslAuthenticate
SPINS = 20  # turns of the loop before waiting for the disk begins to sleep
PAUSE_S = 0.0005
LOOK_S = 0.02  # between two looks at what goes by real time
BIND_S = 2.0  # for a port that is taken


@dataclass(frozen=True)
class BrokerSpec:
    """What to start. `ports` has that of the first node for each listener, by its name; 0 is a free
    one. `begin_ms` and `moved_ms` are of the clock.
    """

    settings: dict[str, str]
    data_dir: str | None
    nodes: int
    ports: dict[str, int]
    clock: Kind
    begin_ms: int
    moved_ms: int


class BrokerHarness:
    """One life of a broker. Call `start` first, and `stop` at the end."""

    def __init__(self, plan: BrokerSpec, observe: Observer, disk: Disk) -> None:
        self._clock = MovableClock(plan.clock, begin_ms=plan.begin_ms, moved_ms=plan.moved_ms)
        self._disk = disk
        self._plan = plan
        self._observe = observe
        listeners = [listener_text(HOST, port, name) for name, port in plan.ports.items()]
        self._broker = Broker(
            BrokerConfig.of({**plan.settings, "listeners": ",".join(listeners)}),
            data_dir=None if plan.data_dir is None else Path(plan.data_dir),
            nodes=plan.nodes,
            environment=BrokerEnvironment(
                clock=lambda: self._clock,
                files=self._disk,
                threads=lambda count, name: Threads(count, name).start(),
                observe=observe,
            ),
        )
        self._gate = FaultInjector(self._clock, self._broker.schedule_turn)
        self._away: set[int] = set()
        self._patience: asyncio.Task[None] | None = None

    async def start(self) -> dict[str, str]:
        """Start the broker; its addresses, by the names of its listeners. Raises KohortError. The
        disk has room again.
        """
        self._disk.full = False
        await self._bound(self._broker.start, self._tried_port)
        await self._settle()
        self._housekeep()  # retention counts from the start on
        if self._clock.stands:
            self._patience = asyncio.create_task(self._end_waits())
            self._patience.add_done_callback(self._waits_not_ended)
        return {name: self._broker.bootstrap_of(name) for name in self._plan.ports}

    async def stop(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        await self._broker.stop()

    async def abandon(self) -> None:
        """Make the logs durable and close them, and nothing else: no thread can be started any more
        when the interpreter ends.
        """
        cluster, self._broker.cluster = self._broker.cluster, None
        if cluster is not None:
            cluster.close()

    async def advance(self, ms: int) -> None:
        """Let time pass, from deadline to deadline; return when the broker has done its work."""
        end = self._clock() + ms
        while True:
            await self._settle()
            wake = None if self._broker.cluster is None else self._broker.cluster.wake
            if wake is None or wake > end:
                break
            self._clock.forward(max(wake - self._clock(), 0))
            self._broker.time_moved()
        self._clock.forward(max(end - self._clock(), 0))
        self._broker.time_moved()
        await self._settle()
        if self._broker.cluster is not None:
            self._broker.cluster.expire_offsets(self._clock())
            self._broker.schedule_turn()
            await self._settle()
        self._housekeep()
        await self._settle()

    async def return_clock(self) -> None:
        """Set the clock to where it would be if it had never been moved. It is as if that of the
        machine had jumped: what is to come, as the end of a session, is as far away as it was.
        """
        moved_ms = self._clock.moved_ms
        if moved_ms:
            self._clock.forward(-moved_ms)
            self._broker.clock_jumped(-moved_ms)
            await self._settle()

    async def time_ms(self) -> int:
        """The time of the broker."""
        return self._clock()

    async def add_fault(self, number: int, fault: Fault) -> None:
        """Let requests fail from now on; the number is the caller's. Raises KohortError for those
        that a listener with SASL answers before anybody is asked for faults.
        """
        by_sasl = any(listener.uses_sasl for listener in self._broker.ports.listeners)
        if by_sasl and fault.api in OF_SASL:
            raise KohortError(
                f"{APIS[fault.api].name} is no request that can fail here, expected a client with"
                " another password: logins are over before faults strike"
            )
        self._gate.add(number, fault)
        for dispatcher in self._dispatchers():
            dispatcher.gate = self._gate

    async def clear_fault(self, number: int) -> None:
        """Let them pass again. Without any fault nobody is asked any more."""
        self._gate.faults.pop(number, None)
        if not self._gate.faults:
            for dispatcher in self._dispatchers():
                dispatcher.gate = None

    def _dispatchers(self) -> Iterator[RequestDispatcher]:
        """The ways in to all nodes, by all listeners."""
        for listener in range(len(self._plan.ports)):
            for index in range(self._plan.nodes):
                yield self._broker.dispatcher(index, listener)

    async def hits(self, number: int) -> int:
        """How often a fault has struck."""
        return self._gate.hits.get(number, 0)

    async def fill_disk(self, *, full: bool) -> None:
        if self._plan.data_dir is None:
            raise KohortError("a broker in memory has no disk that could be full")
        self._disk.full = full
        if not full and self._broker.cluster is not None:
            self._broker.cluster.try_writes()

    async def move(self, group: str, index: int | None) -> int:
        """Let another node coordinate a group, and the others of its partition; its index."""
        shard = self._placement.shard_of(GroupId(group))
        return await self.move_partition(OFFSETS_TOPIC, shard, index)

    async def move_partition(self, name: str, partition: int, index: int | None) -> int:
        """Let another node lead a partition; its index. Raises KohortError."""
        if self._plan.nodes == 1:
            raise KohortError("the cluster has one node, expected two or more to move to another")
        cluster = self._broker.cluster
        assert cluster is not None
        topic = cluster.catalog.by_name.get(name)
        if topic is None or not 0 <= partition < topic.partitions:
            raise KohortError(f"there is no partition {partition} of a topic {name!r}")
        ids = self._placement.node_ids
        now = self._placement.leader(topic, partition)
        serving = [index for index in range(len(ids)) if index not in self._away]
        others = [index for index in serving if ids[index] != now]
        chosen = (others or serving)[0] if index is None else self._checked(index)
        cluster.rearrange(lambda placement: placement.move(topic, partition, ids[chosen]))
        self._broker.schedule_turn()
        await self._settle()
        return chosen

    async def coordinator(self, group: str) -> int:
        """The index of the node that coordinates a group. Raises KohortError where none does."""
        found = self._placement.coordinator_of(GroupId(group))
        if found == NOBODY:
            raise KohortError(f"nobody coordinates {group!r}: start the node that has done so")
        return self._placement.node_ids.index(found)

    async def stop_node(self, index: int, *, notify_clients: bool, replaced: bool) -> None:
        """A node leaves: its clients are told to look elsewhere first, or just lose it. What it has
        led goes to others, or only to its replicas where it is not replaced.
        """
        node_id = self._placement.node_ids[self._checked(index)]
        if len(self._away) + 1 == self._plan.nodes:
            raise KohortError(f"node {index} is the last one that serves, stop the broker instead")
        self._away.add(index)
        assert self._broker.cluster is not None
        if not notify_clients:
            self._broker.close_node(index)
        self._broker.cluster.rearrange(
            lambda placement: placement.leave(node_id, replaced=replaced)
        )
        self._broker.schedule_turn()
        await self._settle()
        if notify_clients:
            self._broker.close_node(index)

    async def start_node(self, index: int) -> None:
        """It comes back, and serves what it has served before."""
        if index not in self._away:
            raise KohortError(f"node {index} is running, stop it first")
        node_id = self._placement.node_ids[index]
        await self._bound(
            lambda: self._broker.open_node(index), lambda: self._broker.ports.tried[1]
        )
        self._away.discard(index)
        assert self._broker.cluster is not None
        self._broker.cluster.rearrange(lambda placement: placement.join(node_id))
        self._broker.schedule_turn()
        await self._settle()

    async def group_log_ends(self) -> dict[int, int]:
        """How long each partition of the groups' log is; none that is not open."""
        cluster = self._broker.cluster
        assert cluster is not None
        count = cluster.catalog.by_name[OFFSETS_TOPIC].partitions
        found = {index: cluster.partition(OFFSETS_TOPIC, index) for index in range(count)}
        return {index: part.log.end for index, part in found.items() if part is not None}

    async def start_nodes(self) -> None:
        """All nodes that are away come back."""
        for index in sorted(self._away):
            await self.start_node(index)

    @property
    def _placement(self) -> Placement:
        cluster = self._broker.cluster
        assert cluster is not None
        return cluster.placement

    def _checked(self, index: int) -> int:
        if not 0 <= index < self._plan.nodes:
            raise KohortError(f"there is no node {index}, expected 0 to {self._plan.nodes - 1}")
        if index in self._away:
            raise KohortError(f"node {index} does not run, start it first")
        return index

    async def _bound(self, bind: Callable[[], Awaitable[None]], port: Callable[[], int]) -> None:
        """Bind ports; `port` tells which one could not be bound, 0 for any. The system may have
        given a port to a client of anybody while the broker was away, so a port that is taken is
        tried again for a while. Raises KohortError.
        """
        now = asyncio.get_running_loop().time
        end = now() + BIND_S
        while True:
            try:
                await bind()
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not port():
                    raise KohortError(str(error)) from error
                if now() > end:
                    why = f"port {port()} is taken, and still after {BIND_S:g} s"
                    raise KohortError(why) from error
                await sleep(LOOK_S)
            else:
                return

    def _tried_port(self) -> int:
        """The port that was to be bound last; 0 for any one."""
        return self._broker.ports.tried[1] if any(self._plan.ports.values()) else 0

    def _housekeep(self) -> None:
        if self._broker.cluster is not None:
            self._broker.cluster.housekeep(self._clock())
            self._broker.schedule_turn()

    async def _settle(self) -> None:
        """Wait until nothing happens any more at this moment."""
        spins = 0
        while not self._broker.idle:
            spins += 1
            await sleep(0 if spins < SPINS else PAUSE_S)

    async def _end_waits(self) -> None:
        """While the clock stands, a fetch waits for as long as its client says, in real time."""
        real = asyncio.get_running_loop().time
        ends: dict[DelayedFetch, float] = {}  # in real time
        while True:
            cluster = self._broker.cluster
            if cluster is not None and (ends or cluster.fetch_purgatory):
                ends = {
                    parked: ends.get(parked, real() + (parked.deadline - self._clock()) / 1000)
                    for parked in cluster.fetch_purgatory
                }
                for parked in [waiter for waiter, end in ends.items() if end <= real()]:
                    cluster.fetch_purgatory.take(parked)
                    cluster.scheduler.enter(parked)
                    self._broker.schedule_turn()
            await sleep(LOOK_S)

    def _waits_not_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            why = f"{type(error).__name__}: {error}"
            self._observe.error(f"fetches that wait are not ended any more: {why}")
