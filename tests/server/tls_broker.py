# SPDX-License-Identifier: Apache-2.0
"""A broker with listeners of TLS, for tests with blocking sockets: it has a thread of its own."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Self

from tests.observer import RecordingObserver

from kohort.server.broker import Broker
from kohort.server.environment import BrokerEnvironment

API_VERSIONS = bytes.fromhex("00120004000000010003746c730007676f6c64656e023100")
SOON_S = 20


class TlsBroker:
    """`with` it. `lines` is its log; `port` and `principals` are of a listener and of all."""

    def __init__(
        self, settings: Mapping[str, str], nodes: int = 1, data_dir: Path | None = None
    ) -> None:
        self.observer = RecordingObserver()
        self.broker = Broker(
            settings,
            nodes=nodes,
            data_dir=data_dir,
            environment=BrokerEnvironment(observe=self.observer, bounded=False),
        )
        self._started, self._failure = Event(), []
        self._thread = Thread(target=asyncio.run, args=(self._run(),), daemon=True)

    async def _run(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self.broker.start()
        except BaseException as error:
            self._failure.append(error)
            raise
        finally:
            self._started.set()
        await self._stop.wait()
        await self.broker.stop()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(SOON_S)
        assert not self._failure, self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SOON_S)

    def call(self, function):
        """What a function gives that is called on the loop of the broker."""

        async def run():
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(SOON_S)

    def port(self, listener: str, node: int = 0) -> int:
        return self.broker.listeners[listener][node][1]

    def connect(self, listener: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port(listener)), timeout=SOON_S)

    def connect_tls(
        self, listener: str, context: ssl.SSLContext, name: str = "localhost"
    ) -> ssl.SSLSocket:
        """Raises SSLError, with the socket closed."""
        below = self.connect(listener)
        try:
            return context.wrap_socket(below, server_hostname=name)
        except BaseException:
            below.close()
            raise

    def principals(self) -> list[str]:
        """Who the clients are that are connected now."""
        return self.call(
            lambda: [
                protocol._connection.client.principal for protocol in self.broker.sockets._protocols
            ]
        )

    @property
    def lines(self) -> list[str]:
        return self.observer.lines


def exchange(sock: socket.socket, request: bytes) -> bytes:
    """Send a request; its answer without its size, empty where the connection ends instead."""
    sock.sendall(struct.pack(">i", len(request)) + request)
    return receive(sock)


def receive(sock: socket.socket) -> bytes:
    head = _exactly(sock, 4)
    return _exactly(sock, *struct.unpack(">i", head)) if len(head) == 4 else b""


def _exactly(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = sock.recv(size - len(found))
        if not part:
            return b""
        found += part
    return found
