# SPDX-License-Identifier: Apache-2.0
"""Notices that a broker is still reading groups from their log.

It looks at each piece that passes on the wire, when a request arrives and when an answer leaves:
the request is answered between the two.
"""

from collections.abc import Callable, Iterable

from kohort.runtime.driver import Condition
from kohort.server.coordinators.coordinator_partitions import Driver
from kohort.sim.network import Line


class LoadingWatch:
    """`drivers` returns those of the groups of the broker that runs; `found` hears of each instant
    at which one of them is loading.
    """

    def __init__(self, drivers: Callable[[], Iterable[Driver]], found: Callable[[], None]) -> None:
        self._drivers = drivers
        self._found = found

    def arrived(self, _line: Line, _data: bytes, *, to_broker: bool) -> None:
        if to_broker:
            self._look()

    def leaves(self, _line: Line, _data: bytes) -> None:
        self._look()

    def _look(self) -> None:
        if any(driver.condition is Condition.LOADING for driver in self._drivers()):
            self._found()
