# SPDX-License-Identifier: Apache-2.0
"""Calls that a turn had no time for.

Clients take turns, so that one who has sent a few does not wait for another who has sent many. The
calls of one client stay in their order.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

from kohort.machines.effects import Call


class Backlog:
    """A queue for each client. They are told apart by the object `Client`: each connection has one
    of its own, for as long as it says the same client id.
    """

    __slots__ = ("_in_turn", "_queues", "size")

    def __init__(self) -> None:
        self.size = 0
        self._queues: dict[int, deque[Call[Any]]] = {}
        self._in_turn: deque[int] = deque()

    def add(self, calls: Iterable[Call[Any]]) -> None:
        """Calls that have arrived behind all others."""
        for call in calls:
            client = id(call.client)
            queue = self._queues.get(client)
            if queue is None:
                queue = self._queues[client] = deque()
                self._in_turn.append(client)
            queue.append(call)
            self.size += 1

    def put_back(self, calls: list[Call[Any]]) -> None:
        """Calls that were taken, in their order, and not handled."""
        for call in reversed(calls):
            client = id(call.client)
            queue = self._queues.get(client)
            if queue is None:
                queue = self._queues[client] = deque()
                self._in_turn.appendleft(client)
            queue.appendleft(call)
        self.size += len(calls)

    def take(self, count: int) -> list[Call[Any]]:
        """The next calls, at most so many."""
        taken: list[Call[Any]] = []
        while self._in_turn and len(taken) < count:
            client = self._in_turn.popleft()
            queue = self._queues[client]
            taken.append(queue.popleft())
            if queue:
                self._in_turn.append(client)
            else:
                del self._queues[client]
        self.size -= len(taken)
        return taken
