# SPDX-License-Identifier: Apache-2.0
"""Connections that were lost while whole requests of theirs waited for a slice.

What had arrived counts, as it does where nothing has to wait: a member whose connection breaks
behind its heartbeat was not silent. What would wait for an answer that is not there is dropped.
All of them share one slice of a round, so that clients that are still there do not wait for many
that have gone.
"""

from collections import deque

from kohort.server.cluster import Cluster
from kohort.server.network.connection import Connection
from kohort.server.scheduler import CLIENTS, NEW, Over

LOST_MAX = 1000  # of one that is lost beyond them nothing more is handled


class LostConnections:
    """They wait in line as one. A connection is closed once its requests are handled."""

    line = CLIENTS

    def __init__(self) -> None:
        self.had_ns = NEW
        self._waiting: deque[tuple[Connection, Cluster]] = deque()

    def add(self, connection: Connection, cluster: Cluster) -> None:
        if len(self._waiting) >= LOST_MAX:
            close(connection, cluster)
            return
        self._waiting.append((connection, cluster))
        cluster.scheduler.enter(self)

    def run(self, over: Over) -> bool:
        while self._waiting:
            connection, cluster = self._waiting[0]
            if _go_on(connection, cluster, over):
                return True
            self._waiting.popleft()
            close(connection, cluster)
            if over():
                break
        return bool(self._waiting)

    def clear(self) -> None:
        """The broker stops: nothing more of them is handled."""
        while self._waiting:
            close(*self._waiting.popleft())


def _go_on(connection: Connection, cluster: Cluster, over: Over) -> bool:
    """Handle its requests. An answer that is there goes nowhere, and lets in what is behind it."""
    request_buffer = connection.request_buffer
    while True:
        handled = request_buffer.handled
        if connection.go_on(cluster.now, over):
            return True
        connection.output()
        if not request_buffer.frames or request_buffer.handled == handled:
            return False


def close(connection: Connection, cluster: Cluster | None) -> None:
    """Drop what is left of a connection, and what waits for it."""
    if cluster is not None:
        for slot in connection.slots:
            cluster.fetch_purgatory.cancel(slot)
    connection.close()
