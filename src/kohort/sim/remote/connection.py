# SPDX-License-Identifier: Apache-2.0
"""A node's connection to the cluster: requests and answers in order, late, or lost when it ends."""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from kohort.sim.events import VirtualLoop

Answer = TypeVar("Answer")
LATE_MS = 10_000  # the latest that a request arrives which was on the way when it ended


class Connection:
    """Each request is handled at an instant, and its answer arrives later. After `end` no answer
    arrives; a request that was on the way may be handled all the same.
    """

    def __init__(self, cluster: VirtualLoop, node: VirtualLoop, random: Random) -> None:
        self.is_open = True
        self._cluster = cluster
        self._node = node
        self._random = random
        self._arrives_us = [0, 0]  # of the last piece each way

    def ask(self, handle: Callable[[], Answer], answered: Callable[[Answer], None]) -> None:
        """Have a request handled at the cluster, and hear its answer."""
        self._cluster.call_at_us(self._arrival(0), self._handle, handle, answered)

    def end(self) -> None:
        """It is gone, and both sides may find out later."""
        self.is_open = False

    def _handle(self, handle: Callable[[], Answer], answered: Callable[[Answer], None]) -> None:
        if self.is_open:
            answer = handle()
            self._node.call_at_us(self._arrival(1), self._hear, answered, answer)
        elif self._random.random() < 0.5:
            # The bytes were in the network when the connection ended, and are taken after that.
            self._cluster.call_later(self._random.uniform(0, LATE_MS / 1000), handle)

    def _hear(self, answered: Callable[[Any], None], answer: Any) -> None:
        if self.is_open:
            answered(answer)

    def _arrival(self, way: int) -> int:
        """Behind everything that was sent before."""
        slow = self._random.random() < 0.02
        delay_us = self._random.randrange(200, 2_000_000 if slow else 5000)
        self._arrives_us[way] = max(self._arrives_us[way], self._cluster.events.now + delay_us)
        return self._arrives_us[way]
