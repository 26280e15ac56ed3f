# SPDX-License-Identifier: Apache-2.0
"""The sockets of a broker: bytes and limits. `connection.py` knows what the bytes mean."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from traceback import format_exception
from typing import Protocol, cast

from kohort.config import BrokerConfig
from kohort.config.listeners import Listener, client_listeners
from kohort.errors import KohortError
from kohort.runtime.driver import INTERNAL
from kohort.runtime.observers import Observer
from kohort.server.cluster import Cluster
from kohort.server.descriptors import Shares
from kohort.server.metrics.meters import Traffic
from kohort.server.network.backpressure import TURN_SECONDS, Backpressure
from kohort.server.network.connection import (
    LARGE_ANSWER_BYTES,
    AuthenticationFailedError,
    Connection,
)
from kohort.server.network.connection_limits import ConnectionLimits
from kohort.server.network.dispatcher import RequestDispatcher
from kohort.server.network.lost_connections import LostConnections, close
from kohort.server.network.request_buffer import RequestBuffer
from kohort.server.requests.memory_pool import MemoryPools
from kohort.server.scheduler import CLIENTS, NEW, Over, Scheduler
from kohort.terms import Millis

DEAF_SECONDS = 30
HELD_BYTES = 1 << 16  # of a connection that waits: it is read so far, so that its end is seen

Later = Callable[[int, Callable[[], None]], None]
"""Calls a function after so many milliseconds."""
Authenticate = Callable[[Connection, Later], object]
"""Takes over a new connection until its client is known."""


class Host(Protocol):
    """The broker, as its sockets need it."""

    sockets: "Sockets"
    ready: "list[ClientProtocol]"
    """Those that have answers to fetch: they leave after the turn, in one write."""

    @property
    def cluster(self) -> Cluster | None: ...
    def dispatcher(self, node: int, listener: int) -> RequestDispatcher: ...
    def authenticate(self, listener: int) -> "Authenticate | None": ...
    def schedule_turn(self) -> Millis: ...


class Sockets:
    """All connections. `observe` is told of those that wait, and are refused or closed."""

    def __init__(
        self, config: BrokerConfig, observe: Observer, listeners: Sequence[Listener] = ()
    ) -> None:
        self.observe = observe
        self._config = config
        self._protocols: dict[ClientProtocol, str] = {}  # the host that each is from
        self._waiting: dict[ClientProtocol, str] = {}  # to be served, in their order
        self._limits = ConnectionLimits(config, listeners or client_listeners(config))
        self.memory = MemoryPools(
            _limit(config.queued_max_request_bytes),
            _limit(config.queued_max_response_bytes),
            config.socket_request_max_bytes,
        )
        self.lost = LostConnections()
        self.traffic = Traffic()
        self._backpressure = Backpressure(self.memory.requests, self._protocols)
        self.starved = self._backpressure.starved  # those that wait for room
        self._timer: asyncio.TimerHandle | None = None  # while some have waited

    def reconfigure(self, config: BrokerConfig) -> None:
        """Other limits count from now on: those who wait may be served by them. A connection that
        is served stays, also where there are more than may be.
        """
        self._limits.reconfigure(config)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._serve_waiting)

    def arrive(self, protocol: "ClientProtocol", host: str, shares: Shares) -> None:
        """Serve a new connection, or let it wait until others end, or close it."""
        full = self._limits.full(protocol.listener)
        waits = full is not None or self._serves_soon()
        others = self._count_waiting(protocol.listener) if waits else 0
        crowded = waits and others >= self._limits.most_waiting(shares)
        if crowded and not self._give_place(protocol.listener):
            why = f"a connection from {host} is refused: {others} others wait to be served"
            self._refuse(protocol, why)
            return
        refusal = self._limits.refusal(len(self._waiting), shares)
        if refusal is not None:
            self._refuse(protocol, refusal)
        elif not waits:
            self._serve(protocol, host)
        else:
            self._waiting[protocol] = host
            if full is None:
                asyncio.get_running_loop().call_soon(self._serve_waiting)
            else:
                why = f"a connection from {host} waits until another one ends: {full}"
                self.observe.warning(why)

    def _serves_soon(self) -> bool:
        """Whether a connection that waits has its place already: a new one stands behind it."""
        return any(self._limits.full(other.listener) is None for other in self._waiting)

    def _count_waiting(self, listener: int) -> int:
        return sum(other.listener == listener for other in self._waiting)

    def _give_place(self, listener: int) -> bool:
        """Close the oldest connection that waits and is not read any more, since nobody would see
        its end; whether there is one.
        """
        for other, host in self._waiting.items():
            if other.listener == listener and other.held_bytes >= HELD_BYTES:
                del self._waiting[other]
                self._refuse(
                    other,
                    f"connection from {host} closed: it has sent {other.held_bytes} bytes while it"
                    " waits to be served, and others wait as well",
                )
                return True
        return False

    def waits(self, protocol: "ClientProtocol") -> bool:
        """Whether a connection is to be served once another one has ended."""
        return protocol in self._waiting

    def _serve(self, protocol: "ClientProtocol", host: str) -> None:
        refusal = self._limits.too_many_of(host)
        if refusal is not None:
            self._refuse(protocol, refusal)
            return
        self.traffic.opened += 1
        self._protocols[protocol] = host
        self._limits.enter(host, protocol.listener)
        protocol.begin(host)

    def _refuse(self, protocol: "ClientProtocol", why: str) -> None:
        self.observe.warning(why)
        self.traffic.refused += 1
        protocol.drop()

    def _serve_waiting(self) -> None:
        """Those for which there is a place now, the one first that has waited longest."""
        for protocol, host in list(self._waiting.items()):
            if protocol in self._waiting and self._limits.full(protocol.listener) is None:
                del self._waiting[protocol]
                self._serve(protocol, host)

    def starve(self, protocol: "ClientProtocol") -> None:
        """There is no room for more of a request of this one."""
        request_buffer = protocol.request_buffer
        if request_buffer is not None and request_buffer.memory is self.memory.unauthenticated:
            self.make_room(protocol)
            protocol.read_on(asyncio.get_running_loop().time())
        else:
            self.starved[protocol] = None

    def make_room(self, protocol: "ClientProtocol") -> None:
        """Close others that have not authenticated either, the oldest first, while they hold all
        that they may: who is honest holds a part of a login for a moment.
        """
        memory = self.memory.unauthenticated
        for other in list(self._protocols) if memory.used >= memory.limit else ():
            if memory.used < memory.limit:
                break
            if other is not protocol and other.unauthenticated_bytes:
                other.give_way(
                    "it has not authenticated, and those who have not hold the"
                    f" {memory.limit} bytes that they may"
                )

    def feed_starved(self) -> None:
        """There may be room again: let those that wait for it read on, one by one."""
        loop = asyncio.get_running_loop()
        self._backpressure.turn(loop.time())
        if self._timer is None:
            self._timer = loop.call_later(TURN_SECONDS, self._look)

    def _look(self) -> None:
        """See whether somebody must give way to those that wait for room."""
        loop = asyncio.get_running_loop()
        again = self._backpressure.look(loop.time())
        self._timer = loop.call_later(TURN_SECONDS, self._look) if again else None

    def forget(self, protocol: "ClientProtocol") -> None:
        self.starved.pop(protocol, None)
        self._waiting.pop(protocol, None)
        host = self._protocols.pop(protocol, None)
        if host is not None:
            self.traffic.closed += 1
            self._limits.leave(host, protocol.listener)
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._serve_waiting)

    def close_silent(self, now: float) -> None:
        """Close connections that have been silent for longer than connections.max.idle.ms."""
        if self._config.connections_max_idle_ms >= 0:
            limit = now - self._config.connections_max_idle_ms / 1000
            for protocol in list(self._protocols):
                protocol.close_if_silent_since(limit)
            for protocol in [one for one in self._waiting if one.heard < limit]:
                protocol.drop()

    def close_slow(self, now: float) -> None:
        """Close connections that do not take their answers while others get less because of it."""
        if self.memory.answers.left <= 0:
            for protocol in list(self._protocols):
                protocol.close_if_deaf(now)

    def drop_all(self, node: int | None = None) -> None:
        """Cut all connections, or all of one node."""
        if node is None:
            self.lost.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for protocol in [*self._waiting, *self._protocols]:
            if node is None or protocol.node == node:
                self._waiting.pop(protocol, None)
                protocol.drop()


class ClientProtocol(asyncio.Protocol):
    """One socket. What it has sent runs as it arrives, or in slices (`scheduler.py`)."""

    line = CLIENTS

    def __init__(self, host: Host, node: int, listener: int = 0) -> None:
        self.had_ns = NEW
        self._host = host
        self._scheduler: Scheduler | None = None
        self._traffic = host.sockets.traffic
        self.node = node
        self.listener = listener
        self._held = b""  # what it has sent while it waited
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self._loop = asyncio.get_running_loop()
        self.heard = 0.0
        self.slow_since: float | None = None
        self.slow_at = 0
        self._unsent = 0
        self._deaf_since: float | None = None
        self._deaf_bytes = 0  # left to send when it was looked at last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        cluster = self._host.cluster
        peer = transport.get_extra_info("peername")
        self.heard = self._loop.time()
        if cluster is None:
            transport.abort()
            return
        self._host.sockets.arrive(self, peer[0] if peer else "unknown", cluster.shares)

    def begin(self, host: str) -> None:
        """There is a place for it: serve it."""
        cluster, transport = self._host.cluster, self._transport
        if cluster is None or transport is None:
            self.drop()
            return
        self.heard = self._loop.time()
        self._scheduler = cluster.scheduler
        self._connection = Connection(
            self._host.dispatcher(self.node, self.listener),
            host,
            cluster.config.socket_request_max_bytes,
            partial(self._host.ready.append, self),
            self._host.sockets.memory,
        )
        authenticate = self._host.authenticate(self.listener)
        if authenticate is not None:
            authenticate(self._connection, self._later)
        held, self._held = self._held, b""
        if held:
            transport.resume_reading()
            self.data_received(held)

    @property
    def held_bytes(self) -> int:
        return len(self._held)

    def _hold(self, data: bytes) -> None:
        """Keep what it sends while it waits to be served, and read no more once that is much."""
        if self._host.sockets.waits(self) and self._transport is not None:
            self._held += data
            if len(self._held) >= HELD_BYTES:
                self._transport.pause_reading()

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        def act() -> None:
            action()
            self._host.schedule_turn()

        self._loop.call_later(delay_ms / 1000, act)

    def data_received(self, data: bytes) -> None:
        connection, scheduler = self._connection, self._scheduler
        if connection is None or scheduler is None:
            self._hold(data)
            return
        self.heard = self._loop.time()
        self._traffic.received_bytes += len(data)
        connection.receive(data)
        now = self._host.schedule_turn()
        if not scheduler.admits(self) or connection.go_on(now, scheduler.over):
            scheduler.enter(self)
        if connection.error is not None and connection.finished:
            self.end()
        if connection.request_buffer.crowded and self._transport is not None:
            self._transport.pause_reading()
            if connection.request_buffer.starved:
                self._host.sockets.starve(self)

    def run(self, over: Over) -> bool:
        """Handle what waits, and send each answer before the next request that needs it to be
        sent.
        """
        connection, cluster = self._connection, self._host.cluster
        if connection is None or cluster is None or connection.closed:
            return False
        more = connection.go_on(cluster.now, over)
        try:
            while not more and self._send(connection) and connection.request_buffer.frames:
                more = over() or connection.go_on(cluster.now, over)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's)
            self.break_off(error)
            return False
        if connection.error is not None and connection.finished:
            self.end()
        self._read_on(connection)
        return more

    def flush(self) -> None:
        """Send the answers that may leave. What was held back behind them waits for a slice."""
        connection, scheduler = self._connection, self._scheduler
        if connection is None or scheduler is None or connection.closed:
            return
        self._send(connection)
        if connection.request_buffer.frames:
            scheduler.enter(self)
        elif connection.error is not None and connection.finished:
            self.end()

    def _send(self, connection: Connection) -> bool:
        """Write the answers that may leave; whether there were any."""
        parts = connection.output()
        transport = self._transport
        if parts and transport is not None:
            if len(parts) == 1:
                self._traffic.sent_bytes += len(parts[0])
                transport.write(parts[0])
            else:
                self._write_all(transport, parts)
            unsent = transport.get_write_buffer_size()
            if unsent != self._unsent:
                self._count_unsent(unsent)
        return bool(parts)

    def _write_all(self, transport: asyncio.Transport, parts: list[bytes]) -> None:
        """Write several answers at once: small ones as one buffer, which costs less than many."""
        size = sum(map(len, parts))
        self._traffic.sent_bytes += size
        if size <= LARGE_ANSWER_BYTES:
            transport.write(b"".join(parts))
        else:
            transport.writelines(parts)

    def _count_unsent(self, size: int) -> None:
        """Count the answers that the client has not read yet against the budget of all."""
        self._host.sockets.memory.answers.used += size - self._unsent
        self._unsent = size

    @property
    def request_buffer(self) -> RequestBuffer | None:
        return None if self._connection is None else self._connection.request_buffer

    @property
    def unauthenticated_bytes(self) -> int:
        """What it holds of the room of clients that have yet to authenticate."""
        held = self.request_buffer
        if held is None or held.memory is not self._host.sockets.memory.unauthenticated:
            return 0
        return held.counted_bytes

    @property
    def readable(self) -> bool:
        """Whether nothing but its client keeps it from sending more."""
        connection = self._connection
        return connection is not None and not (
            connection.request_buffer.crowded or connection.unread
        )

    def read_on(self, now: float) -> None:
        """There is room for what this connection waits to send."""
        connection = self._connection
        if connection is not None and not connection.closed:
            self.heard = now
            connection.request_buffer.read_on()
            self._read_on(connection)

    def give_way(self, why: str) -> None:
        """Close it, and give back at once what its requests hold."""
        connection = self._connection
        if connection is not None:
            self._host.sockets.observe.warning(f"connection from {connection.host} closed: {why}")
            connection.request_buffer.clear()
        self.drop()

    def _read_on(self, connection: Connection) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not (connection.request_buffer.crowded or connection.unread):
            transport.resume_reading()

    def pause_writing(self) -> None:
        """While a client does not read its answers, no more of its requests are handled."""
        if self._connection is not None and self._transport is not None:
            self._connection.unread = True
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if (
            self._scheduler is not None
            and self._connection is not None
            and self._transport is not None
        ):
            self._count_unsent(self._transport.get_write_buffer_size())
            self._connection.unread = False
            self._deaf_since = None
            self._scheduler.enter(self)
            self._host.schedule_turn()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio names it)
        self._host.sockets.forget(self)
        self._count_unsent(0)
        connection, self._connection = self._connection, None
        cluster, scheduler = self._host.cluster, self._scheduler
        if connection is None:
            return
        if cluster is not None and scheduler is not None and self in scheduler.waiting:
            self._host.sockets.lost.add(connection, cluster)
        else:
            close(connection, cluster)

    def close_if_silent_since(self, limit: float) -> None:
        connection = self._connection
        if connection is not None and self.heard < limit and connection.idle:
            self.drop()

    def close_if_deaf(self, now: float) -> None:
        """Close it when it has taken nothing of its answers for too long. A paused consumer of a
        stock client reads its socket all the same.
        """
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or not connection.unread:
            self._deaf_since = None
            return
        unsent = transport.get_write_buffer_size()
        if self._deaf_since is None or unsent < self._deaf_bytes:
            self._deaf_since, self._deaf_bytes = now, unsent
        elif now - self._deaf_since > DEAF_SECONDS:
            self._host.sockets.observe.warning(
                f"connection from {connection.host} closed: it has read nothing of {unsent} bytes"
                f" for {DEAF_SECONDS} s, and others get less meanwhile (queued.max.response.bytes)"
            )
            self.drop()

    def drop(self) -> None:
        self._scheduler = None  # nothing of it is handled any more
        if self._transport is not None:
            self._transport.abort()

    def break_off(self, error: Exception) -> None:
        """Its answers cannot be sent, which should not happen: drop it."""
        if self._connection is not None:
            self._tell_end(self._connection.host, error)
        self.drop()

    def end(self) -> None:
        """Close it: bytes that are no request have come, and all before them is answered."""
        connection, transport = self._connection, self._transport
        if connection is not None and transport is not None and not connection.closed:
            self._tell_end(connection.host, connection.error)
            connection.close()
            transport.close()

    def _where(self) -> str:
        """Which listener it is of, where a broker has several that can be mistaken."""
        cluster, number = self._host.cluster, self.listener
        dispatcher = None if cluster is None else self._host.dispatcher(self.node, number)
        listener = None if dispatcher is None else dispatcher.listener
        return "" if listener is None else f" on listener {listener.name}"

    def _tell_end(self, host: str, error: Exception | None) -> None:
        """Bytes that are no request are the client's; any other exception is a fault of ours."""
        observe = self._host.sockets.observe
        if isinstance(error, AuthenticationFailedError):
            observe.info(f"{error}{self._where()}")
        elif error is None or isinstance(error, KohortError | OSError):
            observe.info(f"connection from {host}{self._where()} closed: {error}")
        else:
            told = "".join(format_exception(error))
            observe.error(f"{INTERNAL}a request of {host} has failed, it is closed:\n{told}")


def _limit(setting: int) -> int:
    """The limit, None for upstream's -1."""
    return setting if setting >= 0 else 1 << 62
