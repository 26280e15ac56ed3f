"""The sockets of a broker: bytes and limits. `connection.py` knows what the bytes mean."""

import asyncio
from collections import Counter
from traceback import format_exception
from typing import Protocol, cast

from kohort.config import BrokerConfig
from kohort.errors import KohortError
from kohort.runtime.driver import INTERNAL
from kohort.runtime.observers import Observer
from kohort.server.budget import Memory
from kohort.server.cluster import Cluster
from kohort.server.connection import Connection
from kohort.server.door import Door
from kohort.server.meters import Traffic
from kohort.terms import Millis

SLOW_FRAME_SECONDS = 30
DEAF_SECONDS = 30


class Host(Protocol):
    """The broker, as its sockets need it."""

    sockets: "Sockets"

    @property
    def cluster(self) -> Cluster | None: ...
    def now(self) -> Millis: ...
    def door(self, node: int) -> Door: ...
    def ready(self, protocol: "ClientProtocol") -> None: ...
    def schedule_turn(self) -> None: ...


class Sockets:
    """All connections, counted by host. `observe` is told of those that are refused or closed."""

    def __init__(self, config: BrokerConfig, observe: Observer) -> None:
        self.observe = observe
        self._config = config
        self._protocols: dict[ClientProtocol, str] = {}  # the host that each is from
        self._hosts: Counter[str] = Counter()
        self.memory = Memory(
            _limit(config.queued_max_request_bytes), _limit(config.queued_max_response_bytes)
        )
        self.traffic = Traffic()
        self.starved: dict[ClientProtocol, None] = {}  # those that wait for room for a large frame

    def admit(self, protocol: "ClientProtocol", host: str) -> bool:
        """Whether one more connection fits under max.connections and max.connections.per.ip."""
        config = self._config
        if len(self._protocols) >= config.max_connections:
            self.observe.warning(
                f"a connection is refused: max.connections={config.max_connections}"
            )
            self.traffic.refused += 1
            return False
        if self._hosts[host] >= config.max_connections_per_ip:
            self.observe.warning(
                f"a connection from {host} is refused:"
                f" max.connections.per.ip={config.max_connections_per_ip}"
            )
            self.traffic.refused += 1
            return False
        self.traffic.opened += 1
        self._protocols[protocol] = host
        self._hosts[host] += 1
        return True

    def feed_starved(self) -> None:
        """There may be room again: let those that wait for it read on, one by one."""
        for protocol in list(self.starved):
            if not protocol.read_on_if_fed():
                return
            del self.starved[protocol]

    def forget(self, protocol: "ClientProtocol") -> None:
        self.starved.pop(protocol, None)
        host = self._protocols.pop(protocol, None)
        if host is not None:
            self.traffic.closed += 1
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]

    def close_silent(self, now: float) -> None:
        """Close connections that have been silent for longer than connections.max.idle.ms."""
        if self._config.connections_max_idle_ms >= 0:
            limit = now - self._config.connections_max_idle_ms / 1000
            for protocol in list(self._protocols):
                protocol.close_if_silent_since(limit)

    def close_slow(self, now: float) -> None:
        """Close connections whose large request does not end while others wait for its room, and
        those that do not take their answers while others get less because of it.
        """
        if self.starved:
            for protocol in list(self._protocols):
                protocol.close_if_slow(now)
        if self.memory.answers.left <= 0:
            for protocol in list(self._protocols):
                protocol.close_if_deaf(now)

    def drop_all(self, node: int | None = None) -> None:
        """Cut all connections, or all of one node."""
        for protocol in list(self._protocols):
            if node is None or protocol.node == node:
                protocol.drop()


class ClientProtocol(asyncio.Protocol):
    """One socket."""

    def __init__(self, host: Host, node: int) -> None:
        self._host = host
        self._traffic = host.sockets.traffic
        self.node = node
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self._loop = asyncio.get_running_loop()
        self._heard = 0.0
        self._unsent = 0
        self._slow_since: float | None = None
        self._deaf_since: float | None = None
        self._deaf_bytes = 0  # left to send when it was looked at last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        cluster = self._host.cluster
        peer = transport.get_extra_info("peername")
        host = peer[0] if peer else "unknown"
        if cluster is None or not self._host.sockets.admit(self, host):
            transport.abort()
            return
        self._heard = self._loop.time()
        self._connection = Connection(
            self._host.door(self.node),
            host,
            cluster.config.socket_request_max_bytes,
            lambda: self._host.ready(self),
            self._host.sockets.memory,
        )

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        if connection is None:
            return
        self._heard = self._loop.time()
        self._traffic.received_bytes += len(data)
        connection.receive(data, self._host.now())
        self._host.schedule_turn()
        if connection.error is not None and connection.finished:
            self.end()
        if connection.crowded and self._transport is not None:
            self._transport.pause_reading()
            if connection.intake.starved:
                self._host.sockets.starved[self] = None

    def flush(self, now: Millis) -> None:
        """Send the answers that may leave, and handle what was held back behind them."""
        connection = self._connection
        if connection is None or connection.closed:
            return
        parts = connection.output()
        if parts and self._transport is not None:
            if len(parts) == 1:
                self._traffic.sent_bytes += len(parts[0])
                self._transport.write(parts[0])
            else:
                self._traffic.sent_bytes += sum(map(len, parts))
                self._transport.writelines(parts)
            self._count_unsent(self._transport.get_write_buffer_size())
        if connection.intake.frames:
            self.go_on(now)
        if connection.error is not None and connection.finished:
            self.end()

    def go_on(self, now: Millis) -> None:
        """Handle what was held back."""
        connection = self._connection
        if connection is None:
            return
        connection.go_on(now)
        self._host.schedule_turn()
        self._read_on(connection)

    def _count_unsent(self, size: int) -> None:
        """Count the answers that the client has not read yet against the budget of all."""
        if size != self._unsent:
            self._host.sockets.memory.answers.used += size - self._unsent
            self._unsent = size

    def read_on_if_fed(self) -> bool:
        """Whether there is room now for the large frame that this connection waits for."""
        connection = self._connection
        if connection is None or connection.closed:
            return True
        if not connection.intake.reserve():
            return False
        self._read_on(connection)
        return True

    def _read_on(self, connection: Connection) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not (connection.crowded or connection.unread):
            transport.resume_reading()

    def pause_writing(self) -> None:
        """While a client does not read its answers, no more of its requests are handled."""
        if self._connection is not None and self._transport is not None:
            self._connection.unread = True
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._connection is not None and self._transport is not None:
            self._count_unsent(self._transport.get_write_buffer_size())
            self._connection.unread = False
            self._deaf_since = None
            self.go_on(self._host.now())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio names it)
        self._host.sockets.forget(self)
        self._count_unsent(0)
        connection, self._connection = self._connection, None
        if connection is not None:
            cluster = self._host.cluster
            if cluster is not None:
                for slot in connection.slots:
                    cluster.waiting.cancel(slot)
            connection.close()

    def close_if_silent_since(self, limit: float) -> None:
        connection = self._connection
        if connection is not None and self._heard < limit and connection.idle:
            self.drop()

    def close_if_slow(self, now: float) -> None:
        """Close it when a large frame takes too long, since others wait for the room it holds."""
        connection = self._connection
        if connection is None or not connection.intake.holds_room:
            self._slow_since = None
        elif self._slow_since is None:
            self._slow_since = now
        elif now - self._slow_since > SLOW_FRAME_SECONDS:
            self._host.sockets.observe.warning(
                f"connection from {connection.host} closed: a large request is incomplete after"
                f" {SLOW_FRAME_SECONDS} s, and others wait for its room (queued.max.request.bytes)"
            )
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
        if self._transport is not None:
            self._transport.abort()

    def end(self) -> None:
        """Close it: bytes that are no request have come, and all before them is answered."""
        connection, transport = self._connection, self._transport
        if connection is not None and transport is not None and not connection.closed:
            self._tell_end(connection.host, connection.error)
            connection.close()
            transport.close()

    def _tell_end(self, host: str, error: Exception | None) -> None:
        """Bytes that are no request are the client's; any other exception is a fault of ours."""
        observe = self._host.sockets.observe
        if error is None or isinstance(error, KohortError | OSError):
            observe.info(f"connection from {host} closed: {error}")
        else:
            told = "".join(format_exception(error))
            observe.error(f"{INTERNAL}a request of {host} has failed, it is closed:\n{told}")


def _limit(setting: int) -> int:
    """The limit, None for upstream's -1."""
    return setting if setting >= 0 else 1 << 62
