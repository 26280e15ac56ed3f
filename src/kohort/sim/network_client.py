# SPDX-License-Identifier: Apache-2.0
"""Asks the nodes of a cluster, as a client with one connection to each does.

An answer may never come: the connection breaks, or the client loses patience. `ask` then returns
None, and whether the request was carried out is unknown. Clients that ask again are what makes
requests arrive twice.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from kohort.errors import ErrorCode, WireError
from kohort.sim.codes import says
from kohort.sim.events import VirtualLoop
from kohort.sim.network import Line, Network
from kohort.sim.process import HOST, PORT
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import FrameReader, RequestHeader, encode_request

API_VERSIONS = 18
FRAME_LIMIT_BYTES = 1 << 28


class PendingRequest:
    """A request on its way."""

    __slots__ = ("answer", "correlation_id", "flexible", "response", "version")

    def __init__(
        self,
        correlation_id: int,
        response: type[Any],
        version: int,
        answer: "asyncio.Future[Any]",
        *,
        flexible: bool,
    ) -> None:
        self.correlation_id = correlation_id
        self.response = response
        self.version = version
        self.flexible = flexible
        self.answer = answer


class ClientConnection:
    """One connection: requests go out in order, answers come back in order."""

    def __init__(
        self, alarm: Callable[[str], None], failed: Callable[[str], None], name: str
    ) -> None:
        self.line: Line | None = None
        self.waiting: deque[PendingRequest] = deque()
        self._reader = FrameReader(FRAME_LIMIT_BYTES)
        self._alarm = alarm
        self._failed = failed
        self._name = name

    def received(self, data: bytes) -> None:
        """What the network brings."""
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self._alarm(f"answers: {self._name} got what is no answer: {error}")
            self.hang_up()
            return
        for frame in frames:
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        number = int.from_bytes(frame[:4])
        if not self.waiting or self.waiting[0].correlation_id != number:
            wanted = self.waiting[0].correlation_id if self.waiting else "none"
            self._alarm(f"answers: {self._name} got answer {number}, expected {wanted}")
            self.hang_up()
            return
        asked = self.waiting.popleft()
        try:
            answer = codec.decode(asked.response, asked.version, frame, 5 if asked.flexible else 4)
        except WireError as error:
            self._alarm(f"answers: {self._name} cannot read {asked.response.__name__}: {error}")
            answer = None
        if says(answer, ErrorCode.UNKNOWN_SERVER_ERROR):
            self._failed(f"{self._name} gets UNKNOWN_SERVER_ERROR in {asked.response.__name__}")
        if not asked.answer.done():
            asked.answer.set_result(answer)

    def lost(self) -> None:
        """The connection is broken: no answer comes any more."""
        self.line = None
        while self.waiting:
            asked = self.waiting.popleft()
            if not asked.answer.done():
                asked.answer.set_result(None)

    def hang_up(self) -> None:
        line, self.line = self.line, None
        if line is not None:
            line.close()
        self.lost()


class NetworkClient:
    """The connections of one client."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: Network,
        name: str,
        alarm: Callable[[str], None],
        failed: Callable[[str], None],
        port: int = PORT,
    ) -> None:
        """`port` is that of the first node."""
        self.name = name
        self._port = port
        self._loop = loop
        self._network = network
        self._alarm = alarm
        self._failed = failed
        self._connected: dict[int, ClientConnection] = {}
        self._numbers = 0

    def connected(self, node: int) -> ClientConnection | None:
        """The connection to a node, made anew where there is none; None: nobody accepts it."""
        connected = self._connected.get(node)
        if connected is not None and connected.line is not None and not connected.line.broken:
            return connected
        if connected is not None:
            connected.hang_up()
        connected = ClientConnection(self._alarm, self._failed, self.name)
        connected.line = self._network.connect(self._loop, (HOST, self._port + node), connected)
        if connected.line is None:
            return None
        self._connected[node] = connected
        return connected

    async def ask(
        self, request: Any, version: int, *, node: int = 0, patience_ms: int = 5000
    ) -> Any | None:
        """Send a request and wait for its answer; None when there is none."""
        return await self.send(request, version, node=node, patience_ms=patience_ms)

    def send(
        self,
        request: Any,
        version: int,
        *,
        node: int = 0,
        patience_ms: int = 5000,
        first_bytes: int | None = None,
    ) -> "asyncio.Future[Any]":
        """As `ask`, for a client that sends more before it waits. So many of the first bytes may go
        by themselves, as those of a request do that is larger than a packet.
        """
        answer = self._loop.create_future()
        connected = self.connected(node)
        if connected is None or connected.line is None:
            answer.set_result(None)
            return answer
        api = APIS[request.api_key]
        flexible = api.flexible(version)
        self._numbers += 1
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=self._numbers,
            client_id=self.name,
        )
        asked = PendingRequest(
            self._numbers,
            api.response,
            version,
            answer,
            flexible=flexible and api.key != API_VERSIONS,
        )
        connected.waiting.append(asked)
        frame = encode_request(header, codec.encode(request, version), flexible=flexible)
        if first_bytes is not None:
            connected.line.send(frame[:first_bytes])
            frame = frame[first_bytes:]
        connected.line.send(frame)
        timer = self._loop.call_later(patience_ms / 1000, self._give_up, connected, asked)
        answer.add_done_callback(lambda _: timer.cancel())
        return answer

    @staticmethod
    def _give_up(connected: ClientConnection, asked: PendingRequest) -> None:
        """Clients hang up on a broker that does not answer."""
        if not asked.answer.done():
            connected.hang_up()

    def hang_up(self) -> None:
        """Close every connection."""
        for connected in self._connected.values():
            connected.hang_up()
        self._connected.clear()
