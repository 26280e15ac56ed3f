"""The asyncio side of the broker: sockets, the clock, the thread that syncs. Everything else is
`cluster.py`.

One turn of the cluster per iteration of the loop: whatever all connections have sent is one batch,
and every connection gets its answers in one write. There is no task, future or timer per request.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self, cast

from kohort.config import BrokerConfig
from kohort.config.listeners import advertised_address
from kohort.errors import KohortError
from kohort.server.cluster import Cluster
from kohort.server.connection import Connection
from kohort.server.opening import open_cluster
from kohort.storage.log import Log
from kohort.terms import Millis, Offset

log = logging.getLogger("kohort")

SWEEP_SECONDS = 5.0
FREE_PORT_TRIES = 20
LEAST_SWEEP_SECONDS = 0.25
BUSY_SWEEP_SECONDS = 0.02  # while a log is being cleaned, slice by slice


class Clock:
    """Wall-clock milliseconds that never run backwards: read once, then moved by the monotonic
    clock.
    """

    def __init__(self) -> None:
        self._base = time.time() - time.monotonic()

    def __call__(self) -> Millis:
        return Millis(int((self._base + time.monotonic()) * 1000))


class Broker:
    """A broker, or several nodes of one cluster in this process.

    Args:
        config: the settings, under upstream's names.
        listen: host and port of the first node; port 0 picks a free one. Further nodes take the
        ports behind it.
        data_dir: where logs are kept; None keeps everything in memory.
        nodes: how many nodes. Their ids follow `node.id`.

    After `start` the addresses are in `addresses`. You must call `stop`.
    """

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        data_dir: Path | None = None,
        nodes: int = 1,
    ) -> None:
        self.config = config or BrokerConfig()
        self.listen = listen
        self.data_dir = data_dir
        self.node_count = nodes
        self.addresses: list[tuple[str, int]] = []
        self.cluster: Cluster | None = None
        self.failure: KohortError | None = None
        self.stopped = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._protocols: dict[_ClientProtocol, str] = {}  # the host each is from
        self._hosts: Counter[str] = Counter()
        self._clock = Clock()
        self._sync_thread = ThreadPoolExecutor(1, thread_name_prefix="kohort-sync")
        self._ready: list[_ClientProtocol] = []
        self._turn_scheduled = False
        self._load_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = Millis(0)
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- life

    async def start(self) -> None:
        """Open the logs, bind the ports, begin to answer. Groups of a large log answer once it is
        read.

        Raises OSError when a port is taken, KohortError when the data directory cannot be used.
        """
        self._loop = asyncio.get_running_loop()
        host, port = self.listen
        try:
            await self._bind_all(host, port)  # first: a port that is taken leaves no directory
            self.cluster = open_cluster(self.config, self.data_dir, log.info)
            self.cluster.start(self._advertised(), self._clock())
        except BaseException:
            await self.stop()
            raise
        for server in self._servers:
            await server.start_serving()
        self._sweeper = self._loop.call_later(self._sweep_pause(), self._sweep)
        self.schedule_turn()

    async def _bind_all(self, host: str, port: int) -> None:
        """Take a port and those behind it, so that a restart that names the first finds them all.

        Of free ports not every one has free ones behind it: then another is tried.
        """
        if port + self.node_count > 65536:
            raise KohortError(f"{self.node_count} nodes from port {port} on end beyond port 65535")
        for left in reversed(range(FREE_PORT_TRIES)):
            try:
                await self._bind(0, host, port)
                for index in range(1, self.node_count):
                    await self._bind(index, host, self.addresses[0][1] + index)
            except (OSError, OverflowError):
                if port or not left:
                    raise
                for server in self._servers:
                    server.close()
                self._servers.clear()
                self.addresses.clear()
            else:
                return

    async def _bind(self, index: int, host: str, port: int) -> None:
        assert self._loop is not None
        server = await self._loop.create_server(
            lambda: _ClientProtocol(self, index),
            host,
            port,
            start_serving=False,
            reuse_address=True,
            backlog=1024,
        )
        self._servers.append(server)
        name = server.sockets[0].getsockname()
        self.addresses.append((name[0], name[1]))

    def _advertised(self) -> list[tuple[int, str, int]]:
        """What clients are told to connect to: `advertised.listeners`, or where the nodes
        listen.
        """
        told = advertised_address(self.config)
        nodes = []
        for index, (host, port) in enumerate(self.addresses):
            shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
            if told is not None:
                shown, number = told
                port = number + index if number else port  # noqa: PLW2901
            nodes.append((self.config.node_id + index, shown, port))
        return nodes

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def bootstrap(self) -> str:
        """What clients take as `bootstrap.servers`: every node's HOST:PORT, joined by commas."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    async def stop(self) -> None:
        """Close the ports and the connections, then make the logs durable and close them."""
        for handle in (self._timer, self._sweeper):
            if handle is not None:
                handle.cancel()
        for server in self._servers:
            server.close()
        for protocol in list(self._protocols):
            protocol.drop()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        cluster, self.cluster = self.cluster, None
        if cluster is not None:
            await asyncio.get_running_loop().run_in_executor(self._sync_thread, cluster.close)
        self._sync_thread.shutdown(wait=True)
        self.stopped.set()

    # --- turns

    def now(self) -> Millis:
        return self._clock()

    def loop_time(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def schedule_turn(self) -> None:
        """See to it that a turn is taken at the end of this iteration of the loop."""
        if not self._turn_scheduled:
            self._turn_scheduled = True
            assert self._loop is not None
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_scheduled = False
        cluster = self.cluster
        if cluster is None:
            return
        now = self._clock()
        cluster.turn(now)
        self._flush(now)
        self._sync(cluster)
        self._arm(cluster, now)
        if cluster.loading and not self._load_scheduled:
            self._load_scheduled = True
            assert self._loop is not None
            self._loop.call_soon(self._load)

    def ready(self, protocol: "_ClientProtocol") -> None:
        """A client has answers to fetch: they leave after the turn, in one write."""
        self._ready.append(protocol)

    def _flush(self, now: Millis) -> None:
        """Send what has been answered; what was held back behind it may now be handled."""
        while self._ready:
            ready, self._ready = self._ready, []
            for protocol in ready:
                protocol.flush(now)

    def _arm(self, cluster: Cluster, now: Millis) -> None:
        """Have a turn taken when the cluster wants one. A timer that is set too early stays: moving
        it at every turn would cost more than waking for nothing.
        """
        at = cluster.wake_at()
        if at is None or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        delay = max(at - now, 0) / 1000
        self._timer_at = at
        self._timer = self._loop.call_later(delay + 0.0005, self._turn_by_timer)

    def _turn_by_timer(self) -> None:
        self._timer = None
        self.schedule_turn()

    def _load(self) -> None:
        """Load shards between the turns, so that everything else is answered meanwhile."""
        self._load_scheduled = False
        if self.cluster is not None:
            self.cluster.load_some(self._clock())
            self.schedule_turn()

    # --- the disk

    def _sync(self, cluster: Cluster) -> None:
        logs = cluster.begin_sync()
        if logs:
            future = self._sync_thread.submit(_sync_all, logs)
            future.add_done_callback(self._synced)

    def _synced(self, future: "Future[list[Offset]]") -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._after_sync, future)

    def _after_sync(self, future: "Future[list[Offset]]") -> None:
        cluster = self.cluster
        if cluster is None:
            return
        error = future.exception()
        if error is not None:
            # What is on the disk is unknown now. Only a new start, from what is there, is honest.
            self.failure = KohortError(f"the disk has refused a sync, the broker stops: {error}")
            log.critical("%s", self.failure)
            self.stopped.set()
            return
        cluster.end_sync(future.result())
        self._turn()

    # --- connections

    def admit(self, protocol: "_ClientProtocol", host: str) -> bool:
        """Whether one more connection fits under max.connections and max.connections.per.ip."""
        config = self.config
        if len(self._protocols) >= config.max_connections:
            log.warning("a connection is refused: max.connections=%s", config.max_connections)
            return False
        if self._hosts[host] >= config.max_connections_per_ip:
            log.warning(
                "a connection from %s is refused: max.connections.per.ip=%s",
                host,
                config.max_connections_per_ip,
            )
            return False
        self._protocols[protocol] = host
        self._hosts[host] += 1
        return True

    def forget(self, protocol: "_ClientProtocol") -> None:
        host = self._protocols.pop(protocol, None)
        if host is not None:
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]

    def _sweep(self) -> None:
        """Close connections that have been silent for too long; see to the logs."""
        assert self._loop is not None
        limit = self._loop.time() - self.config.connections_max_idle_ms / 1000
        if self.config.connections_max_idle_ms >= 0:
            for protocol in list(self._protocols):
                protocol.close_if_silent_since(limit)
        more = False
        try:
            if self.cluster is not None:
                more = self.cluster.housekeep(self._clock())
                self.schedule_turn()
        finally:
            self._sweeper = self._loop.call_later(
                BUSY_SWEEP_SECONDS if more else self._sweep_pause(), self._sweep
            )

    def _sweep_pause(self) -> float:
        """Seconds between two looks: a silent connection is found a quarter too late at most."""
        idle_ms = self.config.connections_max_idle_ms
        if idle_ms < 0:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, max(idle_ms / 4000, LEAST_SWEEP_SECONDS))


def _sync_all(logs: Sequence[Log]) -> list[Offset]:
    return [one.sync() for one in logs]


class _ClientProtocol(asyncio.Protocol):
    """One socket. It moves bytes and watches for too much of anything; `Connection` does the
    rest.
    """

    def __init__(self, broker: Broker, node: int) -> None:
        self._broker = broker
        self._node = node
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self._heard = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        broker = self._broker
        cluster = broker.cluster
        peer = transport.get_extra_info("peername")
        host = peer[0] if peer else "unknown"
        if cluster is None or not broker.admit(self, host):
            transport.abort()
            return
        self._heard = asyncio.get_running_loop().time()
        self._connection = Connection(
            cluster.nodes[self._node],
            host,
            broker.config.socket_request_max_bytes,
            lambda: broker.ready(self),
        )

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        if connection is None:
            return
        broker = self._broker
        self._heard = broker.loop_time()
        connection.receive(data, broker.now())
        broker.schedule_turn()
        if connection.finished:
            self.end()
        if connection.crowded and self._transport is not None:
            self._transport.pause_reading()

    def flush(self, now: Millis) -> None:
        """Send the answers that may leave, and handle what was held back behind them."""
        connection = self._connection
        if connection is None or connection.closed:
            return
        data = connection.output()
        if data and self._transport is not None:
            self._transport.write(data)
        if connection.frames:
            self.go_on(now)
        if connection.finished:
            self.end()

    def go_on(self, now: Millis) -> None:
        """Handle what was held back."""
        connection = self._connection
        if connection is None:
            return
        connection.go_on(now)
        self._broker.schedule_turn()
        self._read_on(connection)

    def _read_on(self, connection: Connection) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not (connection.crowded or connection.unread):
            transport.resume_reading()

    def pause_writing(self) -> None:
        """A client that does not read its answers gets no more of its requests handled."""
        if self._connection is not None and self._transport is not None:
            self._connection.unread = True
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.unread = False
            self.go_on(self._broker.now())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._broker.forget(self)
        connection, self._connection = self._connection, None
        if connection is not None:
            cluster = self._broker.cluster
            if cluster is not None:
                for slot in connection.slots:
                    cluster.waiting.cancel(slot)
            connection.close()

    def close_if_silent_since(self, limit: float) -> None:
        connection = self._connection
        if connection is not None and self._heard < limit and connection.idle:
            self.drop()

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def end(self) -> None:
        """Bytes that are no request have come, and all before them is answered."""
        connection, transport = self._connection, self._transport
        if connection is not None and transport is not None and not connection.closed:
            log.info("connection from %s closed: %s", connection.host, connection.error)
            connection.close()
            transport.close()
