# SPDX-License-Identifier: Apache-2.0
"""Shards whose logs are being read, in slices: everybody else is served meanwhile."""

from collections import deque
from collections.abc import Callable

from kohort.server.coordinators.coordinator_partitions import AnyDriver
from kohort.server.metrics.meters import Loads
from kohort.server.scheduler import BACKGROUND, NEW, Over, Scheduler
from kohort.terms import Millis

STEP_RECORDS = 500


class Loader:
    """Loads one shard after the other. `now` tells the time, `loaded` hears of each that is done,
    whether its log could be read or not.
    """

    line = BACKGROUND

    def __init__(
        self,
        scheduler: Scheduler,
        meter: Loads,
        now: Callable[[], Millis],
        loaded: Callable[[AnyDriver], None],
    ) -> None:
        self.had_ns = NEW
        self._scheduler = scheduler
        self._meter = meter
        self._now = now
        self._loaded = loaded
        self._waiting: deque[AnyDriver] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def load(self, driver: AnyDriver) -> None:
        """Have a shard loaded that has begun to read its log."""
        if driver not in self._waiting:
            self._waiting.append(driver)
        self._scheduler.enter(self)

    def run(self, over: Over) -> bool:
        """Go on with the first."""
        while self._waiting:
            driver = self._waiting[0]
            self._meter.begin(driver)
            while driver.load_some(self._now(), STEP_RECORDS):
                if over():
                    return True
            self._meter.end(driver, loaded=driver.active)
            self._waiting.popleft()
            self._loaded(driver)
            if over():
                break
        return bool(self._waiting)
