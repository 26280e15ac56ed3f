# SPDX-License-Identifier: Apache-2.0
"""Connections between clients and the nodes of a broker, as badly as TCP allows.

A connection keeps its bytes in order and loses none, until it breaks; then each side finds out in
its own time. A client that hangs up breaks nothing: what it has sent arrives, and behind it the
end, so that a broker answers requests that nobody waits for any more. Everything else may happen:
any cutting into pieces, any delay, delays that differ from connection to connection, a node that
nobody reaches for a while, an end in the middle of a frame, a client that does not read.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from kohort.sim import costs
from kohort.sim.events import VirtualLoop

Address = tuple[str, int]

WINDOW_BYTES = 1 << 16  # what a peer that does not read takes all the same
HIGH_WATER_BYTES = 1 << 16  # asyncio's own
LOW_WATER_BYTES = 1 << 14
END = b""  # what arrives last
RESET_US = 1_000_000


@dataclass
class NetworkConditions:
    """What the network is like now. Shares are of the pieces that are sent."""

    delay_us: int = 500
    slow: float = 0.0
    slow_us: int = 0
    cut_up: float = 0.0  # arrives in two pieces
    broken: float = 0.0  # the connection ends in the middle of it


class Watcher(Protocol):
    """Is told what arrives: the digest of a run, and checkers that look at the wire."""

    def arrived(self, line: "Line", data: bytes, *, to_broker: bool) -> None: ...


class Peer(Protocol):
    """The client's end of a connection."""

    def received(self, data: bytes) -> None: ...
    def lost(self) -> None: ...


class Pipe:
    """One direction. Pieces arrive in their order; `take` gets them."""

    def __init__(
        self, network: "Network", line: "Line", loop: VirtualLoop, take: Callable[[bytes], None]
    ) -> None:
        self._network = network
        self._line = line
        self._loop = loop  # of the receiver
        self._take = take
        self.last_at = 0  # when the last piece arrives
        self._coming: deque[tuple[int, bytes]] = deque()
        self._missed = 0  # pieces that would have arrived while the node could not be reached
        self.on_the_way = 0  # bytes

    def send(self, data: bytes, now: int) -> None:
        network, conditions = self._network, self._network.conditions
        random = network.random
        if conditions.broken and random.random() < conditions.broken:
            data = data[: random.randrange(len(data) + 1)]
            self._send(data, now)
            self._line.break_at(self.last_at)
            return
        if conditions.cut_up and len(data) > 1 and random.random() < conditions.cut_up:
            at = random.randrange(1, len(data))
            self._send(data[:at], now)
            data = data[at:]
        self._send(data, now)

    def finish(self, now: int) -> None:
        """Nothing more is sent: the end arrives behind everything else."""
        self._put(END, now)

    def _send(self, data: bytes, now: int) -> None:
        if data:
            self._put(data, now)

    def _put(self, data: bytes, now: int) -> None:
        self.on_the_way += len(data)
        self.last_at = max(now + self._network.delay(), self.last_at)
        self._coming.append((self.last_at, data))
        self._loop.call_at_us(self.last_at, self._arrive)

    def _arrive(self) -> None:
        if self._line.broken:
            return
        if self._network.is_cut_off(self._line):
            self._missed += 1
            return
        at, data = self._coming.popleft()
        self.on_the_way -= len(data)
        self._line.arrived_at = at
        self._take(data)

    def flow_again(self) -> None:
        """The node can be reached again: what was missed arrives."""
        missed, self._missed = self._missed, 0
        now = self._loop.events.now
        for place in range(missed):
            planned, data = self._coming[place]
            self._coming[place] = max(planned, now), data
            self._loop.call_soon(self._arrive)


class Line:
    """One connection, with both of its ends."""

    def __init__(
        self, network: "Network", number: int, address: Address, client: VirtualLoop, peer: Peer
    ) -> None:
        self.number = number
        self.address = address
        self.broken = False
        self.hung_up = False  # the client has
        self.arrived_at = 0  # when the last piece came, also where nobody was there to look at it
        self.network = network
        self.client_loop = client
        self.peer: Peer | None = peer
        self.reading = True
        self._unread: deque[bytes] = deque()
        self.to_client = Pipe(network, self, client, self._to_client)
        self.server: ServerEnd | None = None
        self.to_server: Pipe | None = None

    def open(self, loop: VirtualLoop, protocol: Any) -> None:
        """The broker has accepted it."""
        self.server = ServerEnd(self, loop, protocol)
        self.to_server = Pipe(self.network, self, loop, self.server.take)
        protocol.connection_made(self.server)

    def send(self, data: bytes) -> None:
        """From the client to the broker."""
        if not self.broken and self.to_server is not None:
            self.to_server.send(data, self.client_loop.now)

    def _to_client(self, data: bytes) -> None:
        if self.hung_up:
            self.end()  # nobody is there, and the broker is told so
        elif self.reading and not self._unread:
            self._read(data)
        else:
            self._unread.append(data)

    def _read(self, data: bytes) -> None:
        self.network.tell(self, data, to_broker=False)
        if self.peer is not None:
            self.peer.received(data)
        if self.server is not None:
            self.server.room()

    @property
    def unread_bytes(self) -> int:
        """What the client has not taken, wherever it is."""
        return self.to_client.on_the_way + sum(map(len, self._unread))

    def read(self, *, on: bool) -> None:
        """Whether the client reads what arrives."""
        self.reading = on
        while self.reading and self._unread and not self.broken:
            self._read(self._unread.popleft())

    def break_at(self, when: int) -> None:
        """It ends, and both sides find out at that time or later."""
        self.client_loop.call_at_us(when, self.end)

    def end(self, *, heard_in_us: int | None = None) -> None:
        """It is broken from now on. The sides hear of it at once, or after a while."""
        if self.broken:
            return
        self.broken = True
        self.network.forget(self)
        late = self.network.delay() if heard_in_us is None else heard_in_us
        if self.peer is not None:
            self.client_loop.call_at_us(self.client_loop.now + late, self._lost)
        server = self.server
        if server is not None and server.loop.alive:
            server.loop.call_at_us(server.loop.now + self.network.delay(), server.lost)

    def _lost(self) -> None:
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.lost()

    def close(self) -> None:
        """The client hangs up. What it has sent arrives all the same."""
        self.peer = None
        if not self.broken and not self.hung_up and self.to_server is not None:
            self.hung_up = True
            self._unread.clear()
            self.to_server.finish(self.client_loop.now)


class ServerEnd(asyncio.Transport):
    """The transport that the broker sees."""

    def __init__(self, line: Line, loop: VirtualLoop, protocol: Any) -> None:
        super().__init__({"peername": ("127.0.0.1", 40_000 + line.number)})
        self.line = line
        self.loop = loop
        self._protocol = protocol
        self._reading = True
        self._closing = False
        self._gone = False
        self._unread: deque[bytes] = deque()
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._paused = False

    def take(self, data: bytes) -> None:
        if self._closing:
            return
        if data == END:
            self.room()  # the next write fails, though nobody reads what the client has sent
        else:
            self.line.network.tell(self.line, data, to_broker=True)
        if self._reading and not self._unread:
            self._hand_over(data)
        else:
            self._unread.append(data)

    def _hand_over(self, data: bytes) -> None:
        if data == END:
            self._closing = True
            self.line.end()
            self.loop.call_soon(self.lost)
        else:
            self.loop.spend(costs.of_bytes(len(data)))
            self._protocol.data_received(data)

    def lost(self) -> None:
        if not self._gone:
            self._gone = self._closing = True
            self._protocol.connection_lost(None)

    # What asyncio asks of a transport.

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        while self._reading and self._unread and not self._closing:
            self._hand_over(self._unread.popleft())

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def write(self, data: Any) -> None:
        if self._closing or not data:
            return
        self.loop.spend(costs.of_bytes(len(data)))
        for tell in self.line.network.leaving:
            tell(self.line, bytes(data))
        self._unsent.append(bytes(data))
        self._unsent_bytes += len(data)
        self._send_some()
        if self._unsent_bytes > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def _send_some(self) -> None:
        line = self.line
        while self._unsent and line.unread_bytes < WINDOW_BYTES and not line.broken:
            data = self._unsent[0]
            room = WINDOW_BYTES - line.unread_bytes
            if len(data) > room:
                self._unsent[0] = data[room:]
                data = data[:room]
            else:
                self._unsent.popleft()
            self._unsent_bytes -= len(data)
            line.to_client.send(data, self.loop.now)
        if self._closing and not self._unsent:
            self._finish()

    def room(self) -> None:
        """The client has read something."""
        if self._unsent and self.loop.alive:
            self.loop.call_soon(self._drain)

    def _drain(self) -> None:
        if self._gone:
            return
        self._send_some()
        if self._paused and self._unsent_bytes <= LOW_WATER_BYTES:
            self._paused = False
            self._protocol.resume_writing()

    def close(self) -> None:
        """What was written is sent first."""
        if not self._closing:
            self._closing = True
            if not self._unsent:
                self._finish()

    def _finish(self) -> None:
        self.line.break_at(self.line.to_client.last_at)
        self.loop.call_soon(self.lost)

    def abort(self) -> None:
        self._closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self.line.end()
        self.loop.call_soon(self.lost)


class _Socket:
    """As much of a listening socket as a broker looks at."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address


class Server:
    """A port that a process listens on."""

    def __init__(
        self, network: "Network", loop: VirtualLoop, factory: Callable[[], Any], address: Address
    ) -> None:
        self.loop = loop
        self.factory = factory
        self.serving = False
        self.sockets = [_Socket(address)]
        self._network = network
        self._address = address

    async def start_serving(self) -> None:
        self.serving = True

    def close(self) -> None:
        self._network.stop_listening(self._address, self)

    async def wait_closed(self) -> None:
        """It is closed at once."""


class Network:
    """All connections. `tell` is told every piece that arrives."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.conditions = NetworkConditions()
        self.watchers: list[Watcher] = []
        self.leaving: list[Callable[[Line, bytes], None]] = []  # told what the broker writes
        self._cut_off: set[Address] = set()
        self._servers: dict[Address, Server] = {}
        self._lines: dict[Line, None] = {}
        self._opened = 0

    def delay(self) -> int:
        """Microseconds on the way."""
        conditions = self.conditions
        if conditions.slow and self.random.random() < conditions.slow:
            return self.random.randrange(conditions.slow_us)
        return conditions.delay_us // 2 + self.random.randrange(conditions.delay_us)

    def tell(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        for watcher in self.watchers:
            watcher.arrived(line, data, to_broker=to_broker)

    def listen(self, loop: VirtualLoop, factory: Callable[[], Any], host: str, port: int) -> Server:
        address = host, port
        if address in self._servers:
            raise OSError(f"{host}:{port} is in use")
        server = self._servers[address] = Server(self, loop, factory, address)
        return server

    def stop_listening(self, address: Address, server: Server) -> None:
        if self._servers.get(address) is server:
            del self._servers[address]

    def connect(self, loop: VirtualLoop, address: Address, peer: Peer) -> Line | None:
        """A connection, or None where nobody accepts one. What is sent on it may still be lost."""
        server = self._servers.get(address)
        if server is None or not server.serving or address in self._cut_off:
            return None
        self._opened += 1
        line = Line(self, self._opened, address, loop, peer)
        self._lines[line] = None
        line.open(server.loop, server.loop.run_inside(server.factory))
        return line

    def forget(self, line: Line) -> None:
        self._lines.pop(line, None)

    def lines(self) -> Iterator[Line]:
        """The connections that are not broken, in the order in which they were opened."""
        yield from list(self._lines)

    @property
    def open_lines(self) -> int:
        """How many connections are not broken."""
        return len(self._lines)

    def is_cut_off(self, line: Line) -> bool:
        return line.address in self._cut_off

    def is_out_of_reach(self, address: Address) -> bool:
        """Whether nothing reaches that node."""
        return address in self._cut_off

    def cut_off(self, address: Address) -> None:
        """Nothing reaches that node or comes from it; connections stay, until a side gives up."""
        self._cut_off.add(address)

    def reach_again(self, address: Address) -> None:
        self._cut_off.discard(address)
        for line in self.lines():
            if line.address == address and line.to_server is not None:
                line.to_server.flow_again()
                line.to_client.flow_again()

    def client_died(self, loop: VirtualLoop) -> None:
        """The process of a client is gone. Its system says so behind what was sent, and a little
        later resets what the broker has not closed by then.
        """
        for line in self.lines():
            if line.client_loop is loop:
                line.close()
                if line.server is not None:
                    line.server.loop.call_at_us(loop.now + RESET_US + self.delay(), line.end)

    def process_died(self, loop: VirtualLoop, *, silently_us: int | None = None) -> None:
        """The process of a loop is gone, with its ports and connections. Clients hear of it at
        once, or only after a while when the machine has lost its power.
        """
        for address, server in list(self._servers.items()):
            if server.loop is loop:
                del self._servers[address]
        for line in self.lines():
            if line.server is not None and line.server.loop is loop:
                late = None if silently_us is None else self.random.randrange(silently_us)
                with suppress(RuntimeError):
                    line.end(heard_in_us=late)
