# SPDX-License-Identifier: Apache-2.0
"""Shards are loaded one after the other, in slices."""

from kohort.server.coordinators.loader import Loader
from kohort.server.metrics.meters import Loads
from kohort.server.scheduler import Scheduler
from kohort.terms import Millis


class Driver:
    """Needs so many steps."""

    def __init__(self, steps: int, *, active: bool = True) -> None:
        self.steps = steps
        self.active = active

    def load_some(self, now: int, records: int) -> bool:
        assert (now, records) == (7, 500)
        self.steps -= 1
        return self.steps > 0


def test_each_is_loaded_in_slices_and_told_when_it_is_done():
    scheduler, meter, loaded = Scheduler(), Loads(), []
    loader = Loader(scheduler, meter, lambda: Millis(7), loaded.append)
    first, second = Driver(3), Driver(1, active=False)
    for driver in (first, second, first):
        loader.load(driver)

    assert list(scheduler.waiting) == [loader]
    assert loader.run(lambda: True)
    assert loader.run(lambda: True)
    assert loaded == []
    assert loader.run(lambda: True)
    assert loaded == [first]
    assert not loader.run(lambda: True)
    assert loaded == [first, second]
    assert not loader
    assert meter.count == 1, "one that could not be read does not count"
