# SPDX-License-Identifier: Apache-2.0
"""Threads without threads: what a pool is given happens at one instant, and is heard of later.

Between the two the process goes on: it writes more to a log that is being synced, it stands still,
or it dies with the work done and nobody told.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any

from kohort.sim.events import VirtualLoop


class VirtualPool(Executor):
    """So many threads of a simulated process. `pause` draws how long one is kept waiting, in
    microseconds, before it does its work and again before it is heard of.
    """

    def __init__(self, loop: VirtualLoop, threads: int, pause: Callable[[], int]) -> None:
        self._loop = loop
        self._free = threads
        self._pause = pause
        self._waiting: deque[Callable[[], Any]] = deque()
        self._in_hand: deque[Callable[[], Any]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Take work. What comes of it is told by the work itself, never by the future."""
        self._waiting.append(lambda: fn(*args, **kwargs))
        self._begin()
        return Future()

    def _begin(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            work = self._waiting.popleft()
            self._in_hand.append(work)
            self._loop.call_at_us(self._loop.now + self._pause(), self._work, work)

    def _work(self, work: Callable[[], Any]) -> None:
        if work not in self._in_hand:  # done by the shutdown
            return
        self._in_hand.remove(work)
        loop = self._loop
        late = loop.post_late_us = self._pause()
        loop.beside = True
        try:
            work()
        finally:
            loop.beside = False
            loop.post_late_us = 0
        loop.call_at_us(loop.now + late, self._end)

    def _end(self) -> None:
        self._free += 1
        self._begin()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Do what was taken and not done, and nothing after that."""
        del wait, cancel_futures
        for line in (self._in_hand, self._waiting):
            while line:
                line.popleft()()


class DiskDelays:
    """How long threads wait for a disk: mostly a little, and now and then very long."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.slow = 0.0  # the share of waits that take up to `slow_us`
        self.slow_us = 0

    def __call__(self) -> int:
        if self.slow and self._random.random() < self.slow:
            return self._random.randrange(self.slow_us)
        return self._random.randrange(50, 3000)
