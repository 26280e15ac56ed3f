# SPDX-License-Identifier: Apache-2.0
"""What one client makes the broker hold is bounded, is counted as what it is, and ends with its
connection: bytes of requests that have come, answers that are not read, requests that are parked.

This checker looks into the broker.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kohort.server.broker import Broker
from kohort.server.network.connection import PENDING_ANSWERS_MAX, Connection, Slot
from kohort.server.network.request_buffer import FRAME_BYTES, WAITING_BYTES_MAX
from kohort.sim.checkers.checker import Checker
from kohort.sim.network import HIGH_WATER_BYTES

LARGEST_BYTES = 1 << 20
"""No request and no answer of a run is longer."""


class Holdings(Checker):
    name: ClassVar[str] = "holdings"

    def look(self, broker: Broker) -> None:
        """While clients are there."""
        requests = answers = in_buffers = 0
        for protocol, connection in _connections(broker):
            come = _come(connection)
            requests += come
            in_buffers += connection.request_buffer.counted_bytes
            if come > WAITING_BYTES_MAX + LARGEST_BYTES:
                self.alarm(f"{come} bytes of requests of one connection wait")
            ready = sum(slot.size for slot in connection.slots)
            answers += ready
            unsent = 0
            if protocol is not None:
                answers += protocol._unsent  # noqa: SLF001
                unsent = protocol._transport.get_write_buffer_size()  # noqa: SLF001
            if ready + unsent > HIGH_WATER_BYTES + LARGEST_BYTES:
                self.alarm(f"{ready + unsent} bytes of answers wait for one connection to read")
            if len(connection.slots) > PENDING_ANSWERS_MAX:
                self.alarm(f"{len(connection.slots)} requests of one connection have no answer yet")
        memory = broker.sockets.memory
        if memory.requests.used > requests:
            self.alarm(f"{memory.requests.used} bytes of requests are counted, and {requests} have"
                       " come")  # fmt: skip
        if memory.requests.used != in_buffers:
            self.alarm(
                f"{memory.requests.used} bytes of requests are counted, {in_buffers} are held"
            )
        if memory.answers.used != answers:
            self.alarm(f"{memory.answers.used} bytes of answers are counted, and {answers} wait")
        self._look_at_fetches(broker)

    def _look_at_fetches(self, broker: Broker) -> None:
        """Nothing waits for a client that has gone."""
        cluster = broker.cluster
        for parked in cluster.fetch_purgatory if cluster is not None else ():
            if isinstance(parked.token, Slot) and parked.token.gone:
                self.alarm("a fetch waits whose connection has gone")


def _connections(broker: Broker) -> Iterator[tuple[Any, Connection]]:
    """Those that are open, each with its socket; and those that are lost and not yet done with."""
    for protocol in broker.sockets._protocols:  # noqa: SLF001
        if protocol._connection is not None:  # noqa: SLF001
            yield protocol, protocol._connection  # noqa: SLF001
    for connection, _ in broker.sockets.lost._waiting:  # noqa: SLF001
        yield None, connection


def _come(connection: Connection) -> int:
    """The bytes of its requests that are there."""
    request_buffer = connection.request_buffer
    whole = sum(len(frame) + FRAME_BYTES for frame in request_buffer.frames)
    return whole + len(request_buffer._reader.rest) + request_buffer.parked  # noqa: SLF001
