# SPDX-License-Identifier: Apache-2.0
"""The clock of a broker under test: it runs with that of the machine or stands, and can be moved.

Only the broker lives by it. Clients, sockets and the timeouts of tests stay in real time.
"""

from typing import Literal

from kohort.runtime import clocks
from kohort.server.clock import Clock
from kohort.terms import Millis

Kind = Literal["real", "manual"]


class MovableClock(Clock):
    """`begin_ms` is the time at which a manual clock stands; `moved_ms` is how far it, or the real
    one, has been moved since. Both are of the wall clock.
    """

    def __init__(self, kind: Kind, *, begin_ms: int, moved_ms: int) -> None:
        self.moved_ms = moved_ms
        self.stands = kind == "manual"
        self._begin_ms = begin_ms
        super().__init__(
            lambda: clocks.wall() + self.moved_ms / 1000,
            lambda: clocks.monotonic() + self.moved_ms / 1000,
        )

    def __call__(self) -> Millis:
        if self.stands:
            return Millis(self._begin_ms + self.moved_ms)
        return super().__call__()

    def look(self) -> int:
        return 0 if self.stands else super().look()

    def forward(self, ms: int) -> None:
        """Let this much time pass at once."""
        self.moved_ms += ms
