"""A broker without sockets, with a clock that only moves when a test moves it."""

from collections.abc import Callable
from random import Random

from kohort.config import BrokerConfig
from kohort.server.catalog import Catalog, MemoryStore
from kohort.server.cluster import Cluster
from kohort.server.connection import Connection
from kohort.server.logs import Logs, MemoryLogs
from kohort.server.opening import create_offsets_topic
from kohort.terms import Millis
from kohort.wire.frames import FrameReader


class Client:
    """One connection: what is sent goes in at once, what comes back is kept as frames."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.closed = False
        self.answers: list[bytes] = []
        self._reader = FrameReader(1 << 30)
        self._connection = Connection(
            world.cluster.nodes[0],
            "127.0.0.1",
            world.config.socket_request_max_bytes,
            lambda: world.ready.append(self),
        )

    def send(self, data: bytes) -> None:
        self._connection.receive(data, self.world.now)
        self.world.settle()
        if self._connection.finished:
            self.closed = True
            self._connection.close()

    def flush(self, now: Millis) -> None:
        """Fetch the answers that may leave, and let in what was held back behind them."""
        if not self._connection.closed:
            self.answers += self._reader.feed(self._connection.output())
            self._connection.go_on(now)


class World:
    """A cluster and the time. Every step is taken until nothing moves any more."""

    def __init__(
        self,
        settings: dict[str, str],
        logs: Logs | None = None,
        *,
        now: int = 1_700_000_000_000,
        prepare: Callable[[Catalog], None] | None = None,
    ) -> None:
        random = Random(7)
        self.now = Millis(now)
        self.lines: list[str] = []
        self.ready: list[Client] = []
        self.config = BrokerConfig.of(settings)
        catalog = Catalog(MemoryStore(), lambda: "kohort-test-cluster-id")
        if prepare is not None:
            prepare(catalog)
        create_offsets_topic(catalog, self.config, lambda: random.randbytes(16))
        self.cluster = Cluster(
            self.config,
            catalog,
            logs or MemoryLogs(),
            lambda: random.randbytes(16),
            self.lines.append,
        )
        self.cluster.start([(self.config.node_id, "127.0.0.1", 9092)], self.now)
        while self.cluster.load_some(self.now):
            pass
        self.settle()

    def connect(self) -> Client:
        return Client(self)

    def settle(self) -> None:
        """Take turns until there is nothing to do at this moment."""
        cluster = self.cluster
        while True:
            cluster.turn(self.now)
            moved = bool(self.ready)
            while self.ready:
                self.ready.pop(0).flush(self.now)
            logs = cluster.begin_sync()
            if logs:
                cluster.end_sync([log.sync() for log in logs])
                moved = True
            if not moved:
                return

    def advance(self, ms: int, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, stopping wherever the cluster wants to be woken, or when `until` holds."""
        end = self.now + ms
        while not until():
            wake = self.cluster.wake_at()
            if wake is None or wake > end:
                self.now = Millis(end)
                self.settle()
                return
            self.now = Millis(max(wake, self.now))
            self.settle()
