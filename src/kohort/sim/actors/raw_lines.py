# SPDX-License-Identifier: Apache-2.0
"""Connections of a client that takes no notice of its answers: what such a client does to others is
what counts.
"""

from typing import Any

from kohort.sim.actors.actor import Actor
from kohort.sim.network import Line
from kohort.sim.process import HOST, PORT
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import RequestHeader, encode_request


class _Nobody:
    """The client's end: nothing looks at what arrives."""

    def received(self, data: bytes) -> None: ...
    def lost(self) -> None: ...


class RawLines(Actor):
    """`lines` are those that it has open, as many as it likes to one node."""

    lines: list[Line]

    def open(self, node: int, count: int, *, reads: bool = True) -> None:
        """Open so many more; fewer where nobody accepts them. Without `reads` answers pile up."""
        for _ in range(count):
            line = self.stage.network.connect(self.stage.loop, (HOST, PORT + node), _Nobody())
            if line is not None:
                line.read(on=reads)
                self.lines.append(line)

    def close(self) -> None:
        """Hang up on all, in the middle of whatever it was."""
        for line in self.lines:
            line.close()
        self.lines = []

    def frame(self, request: Any, version: int) -> bytes:
        """A request, as it is sent."""
        api = APIS[request.api_key]
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=0,
            client_id=self.name,
        )
        return encode_request(
            header, codec.encode(request, version), flexible=api.flexible(version)
        )
