# SPDX-License-Identifier: Apache-2.0
"""The client's end of a connection, for a program whose clients speak by asyncio's transports."""

import asyncio
from collections.abc import Callable
from typing import Any

from kohort.sim.events import VirtualLoop
from kohort.sim.network import Address, Line, Network

_SYN_AGAIN_S = 1.0  # how often a machine that gets no answer asks for a connection again


class ClientEnd(asyncio.Transport):
    """What a protocol writes is sent at once: the network is where it waits."""

    def __init__(self, loop: VirtualLoop, protocol: Any) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._line: Line | None = None

    def made(self, line: Line) -> None:
        """The broker's machine has accepted it."""
        self._line = line
        self._protocol.connection_made(self)

    # What the network says.

    def received(self, data: bytes) -> None:
        if self._line is not None:
            self._protocol.data_received(data)

    def lost(self) -> None:
        if self._line is not None:
            self._line = None
            self._protocol.connection_lost(None)

    # What asyncio asks of a transport.

    def is_closing(self) -> bool:
        return self._line is None

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        if self._line is not None and self._loop.alive:
            self._line.send(bytes(data))

    def abort(self) -> None:
        line, self._line = self._line, None
        if line is not None and self._loop.alive:
            line.close()
            self._loop.call_soon(self._protocol.connection_lost, None)

    def close(self) -> None:
        self.abort()


async def open_connection(
    network: Network, loop: VirtualLoop, factory: Callable[[], Any], address: Address
) -> tuple[ClientEnd, Any]:
    """As `create_connection`. Raises ConnectionRefusedError where nobody listens; waits for a node
    that is out of reach.
    """
    await asyncio.sleep(network.delay() / 1_000_000)
    while network.is_out_of_reach(address):  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(_SYN_AGAIN_S)
    protocol = factory()
    end = ClientEnd(loop, protocol)
    line = network.connect(loop, address, end)
    if line is None:
        host, port = address
        raise ConnectionRefusedError(f"nobody listens on {host}:{port}")
    end.made(line)
    return end, protocol
