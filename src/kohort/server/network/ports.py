# SPDX-License-Identifier: Apache-2.0
"""The ports of a broker: one for each listener of each node.

The ports of a listener follow one another, so that a restart with the first one finds them all.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import SystemRandom

from kohort.config.listeners import PORT_MAX, Listener, advertised_addresses
from kohort.config.listeners import Listeners as ListenerSettings
from kohort.errors import KohortError
from kohort.server.placement import Endpoint

FREE_PORT_TRIES = 20
NO_CLIENTS_PORTS = (20_000, 32_000)
CHANCE = SystemRandom()  # nobody has seeded it
BACKLOG = 1024  # clients that wait in the system until they are accepted
ACCEPTED_AT_ONCE = 8  # asyncio takes as many descriptors before it refuses the first of them
NO_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104  (what no client can connect to)

NewProtocol = Callable[[int, int], asyncio.Protocol]
"""Makes the protocol of a connection to a node, by the numbers of the node and its listener."""

Address = tuple[str, int]


class Ports:
    """Bind them, then `serve`. `addresses` has those of all nodes, by the name of the listener."""

    def __init__(self, listeners: Sequence[Listener], nodes: int) -> None:
        self.listeners = tuple(listeners)
        self.addresses: dict[str, list[Address]] = {listener.name: [] for listener in listeners}
        self.tried: Address = listeners[0].host, listeners[0].port  # that was to be bound last
        self._nodes = nodes
        self._servers: list[list[asyncio.Server]] = [[] for _ in range(nodes)]
        self._new_protocol: NewProtocol

    async def bind(self, new_protocol: NewProtocol) -> None:
        """Bind all of them; where clients of the last life look for them, if there was one. Raises
        OSError for a port that is taken.
        """
        self._new_protocol = new_protocol
        for number, listener in enumerate(self.listeners):
            before = self.addresses[listener.name]
            port = before[0][1] if before and not listener.port else listener.port
            self._check_range(port)
            before.clear()
            await self._bind_listener(number, listener, port)

    def check(self, settings: ListenerSettings) -> None:
        """Raises KohortError for ports that would run into each other, or beyond the last one."""
        for listener in self.listeners:
            self._check_range(listener.port)
            for other in self.listeners:
                apart = other.port - listener.port
                if listener.port and other.port and 0 < apart < self._nodes:
                    raise KohortError(
                        f"{self._nodes} nodes of listener {listener.name} have the ports from"
                        f" {listener.port} on, expected port {other.port} of listener {other.name}"
                        " beyond them"
                    )
        for _, port in advertised_addresses(settings).values():
            self._check_range(port)

    def _check_range(self, port: int) -> None:
        if port + self._nodes > PORT_MAX + 1:
            raise KohortError(f"{self._nodes} nodes from port {port} on end beyond port {PORT_MAX}")

    async def _bind_listener(self, number: int, listener: Listener, port: int) -> None:
        """The ports behind a free one may be taken; then another one is tried. Where connections of
        clients have taken every other port, so is one that no system gives to clients.
        """
        addresses = self.addresses[listener.name]
        for left in reversed(range(FREE_PORT_TRIES)):
            first = port
            if not port and left < FREE_PORT_TRIES // 2:
                first = CHANCE.randrange(*NO_CLIENTS_PORTS)
            bound: list[asyncio.Server] = []
            try:
                for node in range(self._nodes):
                    follows = addresses[0][1] + node if node else first
                    self.tried = listener.host, follows if port or node else 0
                    server = await self._server(node, number, listener.host, follows)
                    bound.append(server)
                    name = server.sockets[0].getsockname()
                    addresses.append((name[0], name[1]))
            except BaseException as error:
                for server in bound:
                    server.close()
                addresses.clear()
                if port or not left or not isinstance(error, OSError | OverflowError):
                    raise
            else:
                for node, server in enumerate(bound):
                    self._servers[node].append(server)
                return

    async def _server(self, node: int, listener: int, host: str, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(
            lambda: self._new_protocol(node, listener),
            host,
            port,
            start_serving=False,
            reuse_address=True,
            backlog=ACCEPTED_AT_ONCE if isinstance(loop, asyncio.BaseEventLoop) else BACKLOG,
        )

    async def serve(self) -> None:
        """Accept connections."""
        for servers in self._servers:
            for server in servers:
                await _serve(server)

    def close_node(self, node: int) -> None:
        """Close the ports of a node."""
        for server in self._servers[node]:
            server.close()

    async def open_node(self, node: int) -> None:
        """Open the ports of a node again, where they were. Raises OSError when one is taken."""
        opened: list[asyncio.Server] = []
        try:
            for number, listener in enumerate(self.listeners):
                self.tried = address = self.addresses[listener.name][node]
                opened.append(await self._server(node, number, *address))
                await _serve(opened[-1])
        except BaseException:
            for server in opened:
                server.close()
            raise
        self._servers[node][:] = opened

    def close(self) -> None:
        """Close all; `wait_closed` then."""
        for node in range(self._nodes):
            self.close_node(node)

    async def wait_closed(self) -> None:
        for servers in self._servers:
            for server in servers:
                await server.wait_closed()
            servers.clear()

    def endpoints(
        self, settings: ListenerSettings, node_id: int, racks: Sequence[str | None]
    ) -> list[list[Endpoint]]:
        """The addresses of the nodes that clients get, for each listener that they may ask:
        `advertised.listeners`, or where the nodes listen, by the name that `listeners` has for it:
        a certificate may be for that name alone. Ids follow that of the first node.
        """
        advertised = advertised_addresses(settings)
        found = []
        for listener in self.listeners:
            nodes = []
            for index, (host, port) in enumerate(self.addresses[listener.name]):
                own = listener.host if listener.port else host  # a name may have several ports
                shown, number = advertised.get(listener.name, (own, 0))
                shown = "127.0.0.1" if shown in NO_ADDRESSES else shown
                port = number + index if number else port  # noqa: PLW2901
                nodes.append(Endpoint(node_id + index, shown, port, racks[index]))
            found.append(nodes)
        return found


async def _serve(server: asyncio.Server) -> None:
    """Accept connections. asyncio takes one number for how many wait and how many it accepts in one
    go; with a large one a crowd would have every descriptor for a moment.
    """
    await server.start_serving()
    if isinstance(server, asyncio.Server):
        for listener in server.sockets:
            same = listener.dup()
            try:
                same.listen(BACKLOG)
            finally:
                same.close()
