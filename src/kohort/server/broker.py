# SPDX-License-Identifier: Apache-2.0
"""The asyncio side of the broker: it decides when to take a turn, and knows the time. What takes
long is done on threads (`background/threads.py`), and everything else is `cluster.py`.

The cluster takes one turn per iteration of the loop: what all connections have sent is one batch,
and every connection gets its answers in one write. No request has a task, future or timer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kohort.config import BrokerConfig, ConfigError
from kohort.config.listeners import Listener, client_listeners, listener_text
from kohort.config.racks import racks_of_nodes
from kohort.errors import KohortError
from kohort.runtime import clocks
from kohort.security.names import PLAINTEXT
from kohort.server.background.plugin_threads import AbandonedThreads
from kohort.server.background.threads import Background
from kohort.server.catalog import Catalog
from kohort.server.cluster import Cluster
from kohort.server.environment import BrokerEnvironment
from kohort.server.log_lines import BoundedLines
from kohort.server.metrics.meters import Traffic
from kohort.server.network.dispatcher import RequestDispatcher
from kohort.server.network.ports import Ports
from kohort.server.network.sockets import Authenticate, ClientProtocol, Sockets
from kohort.server.node import Node
from kohort.server.opening import open_cluster
from kohort.server.placement import Endpoint
from kohort.terms import Millis

if TYPE_CHECKING:  # a broker of plain text does without
    from kohort.server.secure_listeners import SecureListeners

SWEEP_SECONDS = 5.0
ANY_FREE_PORT = "127.0.0.1", 0
LEAST_SWEEP_SECONDS = 0.25
STALL_MS = 100  # a timer that is later than this shows that the loop has stood still
HOLD_MS = 250  # how long after a stall the sockets are read before anybody is late


class Broker:
    """A broker, or several nodes of one cluster in this process.

    Args:
        config: the settings; a mapping is taken as by `BrokerConfig.of`.
        listen: host and port of the first node, for one listener of plain text; port 0 picks a
        free one. Further nodes take the ports behind it. Without it the settings say where to
        listen, and where these do not either it is a free port of 127.0.0.1.
        data_dir: where logs are kept; None keeps everything in memory.
        nodes: how many nodes. Their ids follow `node.id`.
        environment: the clock, the disk and the threads, where they are not the real ones.

    Raises ConfigError for a setting that is wrong, or names more racks than there are nodes.
    After `start` the addresses of the first listener are in `addresses`, and those of all by their
    names in `listeners`. You must call `stop`; then it may be started again.
    """

    def __init__(
        self,
        config: BrokerConfig | Mapping[str, str | float] | None = None,
        *,
        listen: tuple[str, int] | None = None,
        data_dir: Path | None = None,
        nodes: int = 1,
        environment: BrokerEnvironment | None = None,
    ) -> None:
        self.config = config if isinstance(config, BrokerConfig) else BrokerConfig.of(config or {})
        self.data_dir = data_dir
        self.node_count = nodes
        self._racks = racks_of_nodes(self.config.broker_rack, nodes)
        self.ports = Ports(listeners_to_open(self.config, listen), nodes)
        self.cluster: Cluster | None = None
        self.stopped = asyncio.Event()
        self._dispatchers: list[list[RequestDispatcher]] = []  # by listener, by node
        self._secure: SecureListeners | None = None
        around = environment or BrokerEnvironment()
        self._lines = BoundedLines(around.observe, clocks.monotonic)
        self.environment = replace(around, observe=self._lines) if around.bounded else around
        self.sockets = Sockets(self.config, self.environment.observe, self.ports.listeners)
        self._clock = self.environment.clock()
        self._background: Background | None = None
        self._abandoned_threads = AbandonedThreads()
        self.ready: list[ClientProtocol] = []  # with answers that leave after the turn
        self._turn_wanted: Millis | None = None
        self._turn_queued = False  # for the end of this iteration of the loop
        self._turned_at = Millis(0)
        self._held_at = Millis(0)
        self._hold_until = Millis(0)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = Millis(0)
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Open the logs, bind the ports, begin to answer. Groups may still be loading.

        Raises OSError when a port is taken, KohortError when the data directory cannot be used or
        the process has too few descriptors.
        """
        if self.cluster is not None:
            raise KohortError("this broker is started already, expected one that is stopped")
        self._loop = asyncio.get_running_loop()
        self._turned_at = self._clock()
        self._turn_wanted = None
        self._turn_queued = False
        self.ready.clear()
        self.stopped.clear()
        self.ports.check(self.config)
        self._secure = self._secure_listeners()
        try:
            await self.ports.bind(self._protocol)  # first: a taken port leaves no directory
            if self._secure is not None:
                await self._secure.start()
            path = None if self.data_dir is None else str(self.data_dir)
            around = self.environment
            self.cluster = open_cluster(
                self._in_force(),
                around.observe,
                data_dir=path,
                files=around.files,
                new_id=around.new_id,
                stopwatch=around.stopwatch,
                limit=around.limit(),
            )
            self._background = Background(
                self.cluster,
                around,
                self._clock,
                self._abandoned_threads,
                self._turn,
                on_disk=self.data_dir is not None,
            )
            endpoints = self.ports.endpoints(self.config, self.config.node_id, self._racks)
            if self._secure is not None:
                self._secure.adopt(self.cluster)
            self.cluster.unsent = self.sockets.memory.answers
            self.sockets.reconfigure(self.cluster.config)
            self.cluster.when_reconfigured = self.sockets.reconfigure
            self.cluster.start(endpoints[0], self._clock())
            self._dispatchers = self._all_dispatchers(self.cluster, endpoints)
        except BaseException:
            await self.stop()
            raise
        await self.ports.serve()
        self._sweeper = self._loop.call_later(self._sweep_pause(), self._sweep)
        self.schedule_turn()

    def _secure_listeners(self) -> "SecureListeners | None":
        """None where all listeners are of plain text: what the others need is not imported then."""
        listeners = self.ports.listeners
        if all(listener.protocol == PLAINTEXT for listener in listeners):
            return None
        secure: type[SecureListeners]
        secure = import_module("kohort.server.secure_listeners").SecureListeners
        return secure(
            self.config,
            listeners,
            self.environment.observe,
            self._catalog,
            self.environment.new_id,
            self.traffic.authentications,
            self.data_dir,
        )

    def reload_certificates(self) -> None:
        """Read the certificates of all listeners again, for connections to come. Where no listener
        speaks TLS, a line says that there are none.
        """
        if self.cluster is None:
            return
        if self._secure is None or not self._secure.certificates.of:
            self.environment.observe.info(
                "no certificate is read again: no listener speaks TLS, expected one of SSL or"
                " SASL_SSL"
            )
            return
        self._secure.certificates.reload(self.cluster.config)

    def _protocol(self, node: int, listener: int) -> ClientProtocol:
        if self._secure is None:
            return ClientProtocol(self, node, listener)
        return self._secure.protocol(self, node, listener)

    def _catalog(self) -> Catalog:
        cluster = self.cluster
        assert cluster is not None
        return cluster.catalog

    def authenticate(self, listener: int) -> Authenticate | None:
        """Authentication for a new connection to this listener; None without SASL."""
        return None if self._secure is None else self._secure.authenticate(listener)

    def _all_dispatchers(
        self, cluster: Cluster, endpoints: list[list[Endpoint]]
    ) -> list[list[RequestDispatcher]]:
        """A way in for each listener of each node: each tells clients its own addresses."""
        named = [listener.name for listener in self.ports.listeners]
        advertised = [
            tuple(
                listener_text(nodes[index].host, nodes[index].port, name)
                for name, nodes in zip(named, endpoints, strict=True)
            )
            for index in range(self.node_count)
        ]
        return [
            [
                RequestDispatcher(
                    Node(cluster, one.id, nodes, self._texts(index), advertised[index]), listener
                )
                for index, one in enumerate(nodes)
            ]
            for listener, nodes in zip(self.ports.listeners, endpoints, strict=True)
        ]

    def _texts(self, node: int) -> tuple[str, ...]:
        """The listeners of a node as `listeners` names them."""
        return tuple(
            listener_text(*addresses[node], name)
            for name, addresses in self.ports.addresses.items()
        )

    def close_node(self, index: int) -> None:
        """Close the ports of a node and cut its connections. Who serves what in its place is the
        cluster's matter (`rearrange`).
        """
        self.ports.close_node(index)
        self.sockets.drop_all(index)

    async def open_node(self, index: int) -> None:
        """Open the ports of a node again, where they were. Raises OSError when one is taken."""
        await self.ports.open_node(index)

    def _in_force(self) -> BrokerConfig:
        """The settings, with those that the command line and the system have overridden."""
        config = self.config
        log_dirs = config.log_dirs if self.data_dir is None else (str(self.data_dir),)
        given = {"listeners"} if self.data_dir is None else {"listeners", "log.dirs"}
        return replace(
            config,
            listeners=self._texts(0),
            log_dirs=log_dirs,
            given=config.given | given,
        )

    @property
    def listeners(self) -> dict[str, list[tuple[str, int]]]:
        """The addresses of the nodes, by the name of the listener."""
        return self.ports.addresses

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses of the nodes, of the first listener."""
        return self.ports.addresses[self.ports.listeners[0].name]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def bootstrap(self) -> str:
        """What clients take as `bootstrap.servers`: every node's HOST:PORT, joined by commas."""
        return self.bootstrap_of(self.ports.listeners[0].name)

    def bootstrap_of(self, listener: str) -> str:
        """The same, of the listener with this name."""
        return ",".join(f"{host}:{port}" for host, port in self.listeners[listener])

    async def stop(self) -> None:
        """Close the ports and the connections, then make the logs durable and close them."""
        for handle in (self._timer, self._sweeper):
            if handle is not None:
                handle.cancel()
        self._timer = self._sweeper = None
        if self._secure is not None:
            self._secure.stop()
        self.ports.close()
        self.sockets.drop_all()
        await self.ports.wait_closed()
        cluster, self.cluster = self.cluster, None
        background, self._background = self._background, None
        if background is not None:
            background.give_up()
            await background.end()
        if cluster is not None:
            await asyncio.get_running_loop().run_in_executor(None, cluster.close)
        self._lines.tell_left_out(at_once=True)
        self.stopped.set()

    @property
    def traffic(self) -> Traffic:
        """What passes through the sockets."""
        return self.sockets.traffic

    def dispatcher(self, node: int, listener: int = 0) -> RequestDispatcher:
        """The way in to the node with this number by one of its listeners, both counted from 0."""
        return self._dispatchers[listener][node]

    @property
    def idle(self) -> bool:
        """Whether nothing happens any more until a client asks for something or time passes."""
        busy = self.cluster is not None and self.cluster.busy
        return not (busy or self.ready or self._turn_wanted is not None)

    def time_moved(self) -> None:
        """The clock was set forward on purpose, which is no stall: what is due is met at once."""
        self._turn_wanted = None
        self._hold_until = Millis(0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._turn()

    def schedule_turn(self) -> Millis:
        """Have a turn taken once the sockets that are ready have been read. The time at which it
        was wanted first.
        """
        wanted = self._turn_wanted
        if wanted is None:
            wanted = self._turn_wanted = self._clock()
            if not self._turn_queued:
                self._turn_queued = True
                assert self._loop is not None
                self._loop.call_soon(self._turn, True)
        return wanted

    def _turn(self, queued: bool = False) -> None:  # noqa: FBT001, FBT002  (the loop calls it)
        """Take a turn. The loop calls a `queued` one, and nothing is to be done if that turn was
        taken meanwhile. Only one is in the loop's queue, so that the sockets are read between that
        one and the next.
        """
        wanted, self._turn_wanted = self._turn_wanted, None
        if queued:
            self._turn_queued = False
            if wanted is None:
                return
        cluster, background = self.cluster, self._background
        if cluster is None or background is None:
            return
        now = self._clock()  # again: the process may have stood still since the turn was wanted
        if wanted is not None and now - wanted > STALL_MS:
            self._stalled(now)
        if self._timer is not None and now - self._timer_at > STALL_MS:
            self._stalled(now)  # a client woke us first: that timer comes too late as well
        again = True  # unless all goes well: a fault of ours takes nobody else's turn
        try:
            cluster.turn(now, due=min(self._held_at, now) if now < self._hold_until else now)
            self._turned_at = now
            for protocol in self.ready:  # `flush` makes nobody ready
                try:
                    protocol.flush()
                except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's)
                    protocol.break_off(error)
            self.ready.clear()
            if self.sockets.starved:
                self.sockets.feed_starved()
            again = background.begin()
        finally:
            # A change that changed nothing is answered at once, and its request may go on.
            if again or self.ready or cluster.scheduler.waiting:
                self.schedule_turn()
            at = cluster.wake
            if at is not None and (self._timer is None or at < self._timer_at):
                self._arm(at, now)

    def _stalled(self, now: Millis) -> None:
        """Before any deadline is met after a stall, read what clients sent meanwhile. The process
        stood still, not they. It may have done so since its last turn.
        """
        if now >= self._hold_until:
            self._held_at = self._turned_at
        self._hold_until = Millis(now + HOLD_MS)

    def _arm(self, at: Millis, now: Millis) -> None:
        """Have a turn taken when the cluster wants one. A timer that is set too early stays: moving
        it at every turn would cost more than waking up in vain.
        """
        if now < self._hold_until:
            at = max(at, self._hold_until)
            if self._timer is not None and self._timer_at <= at:
                return
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        delay = max(at - now, 0) / 1000
        self._timer_at = max(at, now)
        self._timer = self._loop.call_later(delay + 0.0005, self._turn_by_timer)

    def _turn_by_timer(self) -> None:
        self._timer = None
        now = self._clock()
        if now - self._timer_at > STALL_MS:
            self._stalled(now)
        self.schedule_turn()

    def _sweep(self) -> None:
        """Close silent connections; look after the clock and the logs."""
        assert self._loop is not None
        self._sweeper = self._loop.call_later(self._sweep_pause(), self._sweep)
        try:
            self.sockets.close_silent(self._loop.time())
            self.sockets.close_slow(self._loop.time())
            self._lines.tell_left_out()
        finally:
            self._look_after_logs()

    def _look_after_logs(self) -> None:
        """Whatever has become of the connections."""
        if self.cluster is not None:
            jump_ms = self._clock.look()
            if jump_ms:
                self.environment.observe.warning(
                    f"the clock of this machine has jumped by {jump_ms} ms"
                )
                self.clock_jumped(jump_ms)
            self.cluster.housekeep(self._clock())
            self.schedule_turn()

    def clock_jumped(self, by_ms: int) -> None:
        """The deadlines and the times that were noted move with the clock. Otherwise a jump forward
        would look like a stall, and after a jump back the time of the stall would lie ahead:
        everybody would be late.
        """
        if self.cluster is not None:
            self.cluster.clock_jumped(by_ms)
        self._turned_at = Millis(self._turned_at + by_ms)
        self._held_at = Millis(self._held_at + by_ms)
        self._hold_until = Millis(self._hold_until + by_ms)
        self._timer_at = Millis(self._timer_at + by_ms)
        if self._turn_wanted is not None:
            self._turn_wanted = Millis(self._turn_wanted + by_ms)

    def _sweep_pause(self) -> float:
        """Seconds between two sweeps: a quarter of the time after which silence ends."""
        idle_ms = self.config.connections_max_idle_ms
        if idle_ms < 0:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, max(idle_ms / 4000, LEAST_SWEEP_SECONDS))


def listeners_to_open(config: BrokerConfig, listen: tuple[str, int] | None) -> tuple[Listener, ...]:
    """Those of the settings, or one of plain text at `listen`. Raises ConfigError where `listen`
    stands beside listeners that it would leave out, or would open to everybody.
    """
    listeners = client_listeners(config)
    if listen is None:
        if "listeners" in config.given:
            return listeners
        listen = ANY_FREE_PORT
    if len(listeners) > 1 or listeners[0].protocol != PLAINTEXT:
        texts = ", ".join(f"{one.name} ({one.protocol})" for one in listeners)
        raise ConfigError(
            f"an address to listen on is given beside listeners, which has {texts}: it would be one"
            " of plain text instead, expected one of the two (--listen, listeners)"
        )
    host, port = listen
    return (listeners[0]._replace(host=host, port=port),)
