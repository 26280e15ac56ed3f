"""What time it is, for records and for sessions."""

import time
from collections.abc import Callable

from kohort.terms import Millis

JUMP_SECONDS = 0.5


class Clock:
    """Wall-clock milliseconds that go as the monotonic clock does between two looks at the wall.

    Sessions must not end because somebody has set the clock, and records must not carry yesterday's
    time because the machine was asleep: so `look` follows the wall, and says by how much everything
    that is waited for has to be moved.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._base = wall() - steady()

    def __call__(self) -> Millis:
        return Millis(int((self._base + self._steady()) * 1000))

    def look(self) -> int:
        """By how many milliseconds the wall has jumped since the last look; from now on it is
        followed. Less than half a second is no jump, and is let be.
        """
        jump = self._wall() - self._steady() - self._base
        if abs(jump) < JUMP_SECONDS:
            return 0
        before = self()
        self._base += jump
        return self() - before
