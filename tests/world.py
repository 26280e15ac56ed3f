# SPDX-License-Identifier: Apache-2.0
"""A broker without sockets, on a clock that only moves when a test moves it, and on the disk that
the test gives it.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tests.observer import RecordingObserver

from kohort.assignors import Assign
from kohort.config import BrokerConfig
from kohort.config.racks import racks_of_nodes
from kohort.errors import Broken
from kohort.server.access import May
from kohort.server.background.plugin_assignors import load_plugin_assignors
from kohort.server.catalog import Catalog
from kohort.server.descriptors import Limit
from kohort.server.network.connection import Connection
from kohort.server.network.dispatcher import RequestDispatcher
from kohort.server.node import Node
from kohort.server.opening import open_cluster
from kohort.server.placement import Endpoint, Placement
from kohort.terms import Millis, Offset
from kohort.wire.frames import FrameReader

START = Millis(1_700_000_000_000)


class Client:
    """One connection: what is sent goes in at once, what comes back is kept as frames."""

    def __init__(self, world: "World", node: int = 0) -> None:
        self.world = world
        self.closed = False
        self.answers: list[bytes] = []
        self._reader = FrameReader(1 << 30)
        self.connection = Connection(
            world.dispatchers[node],
            "127.0.0.1",
            world.config.socket_request_max_bytes,
            lambda: world.ready.append(self),
        )

    def put(self, data: bytes) -> None:
        """Bytes that have arrived; nothing else happens yet."""
        self.connection.receive(data)
        self.world.cluster.scheduler.admits(self)
        self.connection.go_on(self.world.now)

    def send(self, data: bytes) -> None:
        self.put(data)
        self.world.settle()
        if self.connection.finished:
            self.closed = True
            self.connection.close()

    def flush(self, now: Millis) -> None:
        """Fetch the answers that may leave, and let in what was held back behind them."""
        if not self.connection.closed:
            self.answers += self._reader.feed(b"".join(self.connection.output()))
            self.connection.go_on(now)


class World:
    """A cluster and the time. Every step is taken until nothing moves any more.

    `files` is the disk, and nothing is kept without one. `prepare` may change the catalog before
    the broker starts. `assignors` are those of others, by their names, instead of those that are
    installed.
    """

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        *,
        files: Any = None,
        path: str = "/data",
        nodes: int = 1,
        now: int = START,
        prepare: Callable[[Catalog], None] | None = None,
        seed: int = 7,
        may: May | None = None,
        assignors: Mapping[str, Assign] | None = None,
        limit: Limit = Limit(),  # noqa: B008  (a constant)
    ) -> None:
        self.now = Millis(now)
        self.step_ns = 0  # how long a step takes: with MACHINES_NS a turn ends after each
        self._spent_ns = 0
        self.told = RecordingObserver()
        self.ready: list[Client] = []
        self.config = BrokerConfig.of(settings or {})
        self.files = files
        random = Random(seed)
        self.cluster = open_cluster(
            self.config,
            self.told,
            data_dir=None if files is None else path,
            files=files,
            new_id=lambda: random.randbytes(16),
            may=may,
            assignors=load_plugin_assignors if assignors is None else lambda _: assignors,
            stopwatch=self._stopwatch,
            limit=limit,
        )
        if prepare is not None:
            prepare(self.cluster.catalog)
        first = self.config.node_id
        racks = racks_of_nodes(self.config.broker_rack, nodes)
        brokers = [
            Endpoint(first + index, "127.0.0.1", 9092 + index, rack)
            for index, rack in enumerate(racks)
        ]
        self.cluster.start(brokers, self.now)
        self.dispatchers = [RequestDispatcher(Node(self.cluster, one.id)) for one in brokers]
        self.settle()

    def _stopwatch(self) -> int:
        """Looked at between two steps."""
        self._spent_ns += self.step_ns
        return self._spent_ns

    def connect(self, node: int = 0) -> Client:
        return Client(self, node)

    def settle(self, *, sync: bool = True) -> None:
        """Take turns until there is nothing to do at this moment. Without `sync` the disk is still
        busy when this returns.
        """
        while self.step(sync=sync):
            pass

    def step(self, *, sync: bool = True) -> bool:
        """Take one turn; whether another one has something to do at this moment."""
        cluster = self.cluster
        cluster.turn(self.now)
        moved = bool(self.ready)
        while self.ready:
            self.ready.pop(0).flush(self.now)
        if sync:
            moved = self._sync() or moved
        work = cluster.begin_work()
        if work is not None:
            work.run()
            cluster.end_work(work, self.now)
            moved = True
        while (task_run := cluster.begin_task()) is not None:
            while task_run.step():
                pass
            cluster.end_task(task_run)
            moved = True
        wake = cluster.wake
        due = wake is not None and wake <= self.now
        return moved or bool(self.ready) or cluster.has_more or due

    def _sync(self) -> bool:
        """Sync what has been written; whether there was anything."""
        written = self.cluster.begin_sync()
        for one in written:
            try:
                outcome: Offset | Broken = one.log.sync()
            except Broken as error:
                outcome = error
            self.cluster.end_sync(one, outcome)
        return bool(written)

    def housekeep(self) -> None:
        """What the broker does now and then, to its end."""
        self.cluster.housekeep(self.now)
        self.settle()

    def rearrange(self, change: Callable[[Placement], None]) -> None:
        """Change which node serves what; those that take over have read their logs on return."""
        self.cluster.rearrange(change)
        self.settle()

    def jump(self, ms: int) -> None:
        """The wall clock is set; no time passes."""
        self.now = Millis(self.now + ms)
        self.cluster.clock_jumped(ms)

    def advance(self, ms: int, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, stopping wherever the cluster wants to be woken, or when `until` holds."""
        end = self.now + ms
        while not until():
            wake = self.cluster.wake
            if wake is None or wake > end:
                self.now = Millis(end)
                self.settle()
                return
            self.now = Millis(max(wake, self.now))
            self.settle()
