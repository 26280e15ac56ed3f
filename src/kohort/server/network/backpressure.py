# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is to send more of a request, once those that are there have used up the room.

Room is what has come, not what was announced. Those who bring a part of a request while there is no
room wait in line. Who has waited longest reads on first. While nothing is given back, that one
alone may pass the limit until its request is whole, so that somebody always gets on. It loses its
turn when nothing more of it is there at once.

Who holds room and does not go on gives way to those that wait: after a second where its client
alone could go on, after half a minute where its request is slow or waits for other clients. Nothing
here knows a clock or a socket.
"""

from collections.abc import Iterable
from typing import Protocol

from kohort.server.network.request_buffer import RequestBuffer, memory_exhausted_text
from kohort.server.requests.memory_pool import RequestMemoryPool

READ_BYTES = 1 << 18  # what one read of a socket may bring
TURN_SECONDS = 0.002  # a loop reads what is in a socket before it looks at this timer again
LOOK_SECONDS = 0.25
STALLED_SECONDS = 1.0
SLOW_REQUEST_SECONDS = 30.0
LARGE_BYTES = 1 << 16  # who holds less than this, and than most, gives way last
SETTING = "queued.max.request.bytes"


class RequestingConnection(Protocol):
    """A connection."""

    heard: float  # when it sent something last, or was let read on
    slow_since: float | None
    slow_at: int  # how many of its requests were handled then

    @property
    def request_buffer(self) -> RequestBuffer | None:
        """None once it is closed."""

    @property
    def readable(self) -> bool:
        """Whether nothing but its client keeps it from going on."""

    def read_on(self, now: float) -> None: ...
    def give_way(self, why: str) -> None:
        """Close the connection. What it holds must be given back when this returns."""


class Backpressure:
    """`starved` has those whose reading pauses, in order. Times are seconds of one clock."""

    def __init__(
        self, memory: RequestMemoryPool, connections: Iterable[RequestingConnection]
    ) -> None:
        """`connections` has all connections, whenever it is looked at."""
        self.starved: dict[RequestingConnection, None] = {}
        self._memory = memory
        self._connections = connections
        self._passing: RequestingConnection | None = None
        self._since: float | None = None  # when somebody had to wait first
        self._waited = False  # whether somebody had to since the last look
        self._look_at = 0.0

    def turn(self, now: float) -> None:
        """Let those read on for whom there is room. Call this often while somebody waits."""
        memory, starved = self._memory, self.starved
        if memory.used > memory.ceiling:
            self._relieve(now)
        if not starved:
            return
        self._waited = True
        if self._since is None:
            self._since, self._look_at = now, now + LOOK_SECONDS
        room = memory.limit - memory.used
        while starved and room > 0:
            self._read_on(now)
            room -= READ_BYTES
        passing = self._passing
        if passing is not None and now - passing.heard >= TURN_SECONDS:
            self._passing = memory.passing = None
        while starved and memory.passing is None:
            self._passing = first = next(iter(starved))
            request_buffer = first.request_buffer
            if (
                request_buffer is not None and request_buffer.starved
            ):  # else its requests were handled meanwhile
                memory.passing = request_buffer
            self._read_on(now)

    def _relieve(self, now: float) -> None:
        """More has come than may be there, from many at once. First those give way that might have
        gone on and have not, then those that began to wait last.
        """
        memory = self._memory
        silent = [
            (connection.heard, number, connection)
            for number, connection in enumerate(self._connections)
            if self._holds(connection)
            and connection not in self.starved
            and connection.request_buffer is not memory.passing
            and now > connection.heard
        ]
        order = [connection for _, _, connection in sorted(silent)] + [*reversed(self.starved)]
        for connection in order:
            if memory.used <= memory.ceiling:
                return
            self._close(connection, memory_exhausted_text(memory))

    def _close(self, connection: RequestingConnection, why: str) -> None:
        self.starved.pop(connection, None)
        connection.give_way(why)

    def _read_on(self, now: float) -> None:
        connection = next(iter(self.starved))
        del self.starved[connection]
        connection.read_on(now)

    def look(self, now: float) -> bool:
        """Go on, and close those that have to give way. Call it after each TURN_SECONDS until it
        returns False: nobody has waited for some time.
        """
        self.turn(now)
        if self._since is None or now < self._look_at:
            return self._since is not None
        if not self._waited:
            self._since = None
            return False
        self._waited = bool(self.starved)
        self._look_at = now + LOOK_SECONDS
        holders = [connection for connection in self._connections if self._holds(connection)]
        memory = self._memory
        worth = min(LARGE_BYTES, memory.used // max(len(holders), 1))
        late = self._late(holders, self._since, now)
        self._let_give_way([one for one in late if _size(one[0]) >= worth])
        small = [one for one in late if _size(one[0]) < worth]
        if sum(_size(connection) for connection, _ in small) > memory.used - memory.limit:
            self._let_give_way(small)  # otherwise it would be in vain
        self.turn(now)
        return True

    def _let_give_way(self, late: list[tuple[RequestingConnection, str]]) -> None:
        for connection, why in late:
            if self._memory.used < self._memory.limit:
                return
            self._close(connection, f"{why}, and others wait for its room ({SETTING})")

    def _late(
        self, holders: list[RequestingConnection], since: float, now: float
    ) -> list[tuple[RequestingConnection, str]]:
        """Those that have to give way if there is no room, and why; first who is late longest."""
        late: list[tuple[float, int, RequestingConnection, str]] = []
        for number, connection in enumerate(holders):
            request_buffer = connection.request_buffer
            assert request_buffer is not None
            if connection.slow_since is None or connection.slow_at != request_buffer.handled:
                connection.slow_since, connection.slow_at = now, request_buffer.handled
            if connection in self.starved:
                continue
            if now - connection.slow_since > SLOW_REQUEST_SECONDS:
                why = f"a request is not finished after {SLOW_REQUEST_SECONDS:g} s"
                late.append((connection.slow_since, number, connection, why))
            elif (
                request_buffer.unfinished
                and connection.readable
                and now - max(connection.heard, since) >= STALLED_SECONDS
            ):
                why = (
                    f"it has stopped in the middle of a request for {now - connection.heard:.1f} s"
                )
                late.append((connection.heard, number, connection, why))
        return [(connection, why) for _, _, connection, why in sorted(late)]

    def _holds(self, connection: RequestingConnection) -> bool:
        """Whether it holds some of this room: who has not authenticated has another one."""
        request_buffer = connection.request_buffer
        if (
            request_buffer is None
            or not request_buffer.counted_bytes
            or request_buffer.memory is not self._memory
        ):
            connection.slow_since = None
            return False
        return True


def _size(connection: RequestingConnection) -> int:
    return 0 if connection.request_buffer is None else connection.request_buffer.counted_bytes
