# SPDX-License-Identifier: Apache-2.0
"""What time it is, for records and for sessions."""

from collections.abc import Callable

from kohort.runtime import clocks
from kohort.terms import Millis

JUMP_SECONDS = 0.5


class Clock:
    """Wall-clock milliseconds that follow the monotonic clock between two looks at the wall clock.

    Sessions must not end because somebody has set the clock, and records must not have an old time
    because the machine was asleep. So `look` adopts the wall clock, and returns by how much every
    deadline must move.
    """

    def __init__(
        self,
        wall: Callable[[], float] = clocks.wall,
        steady: Callable[[], float] = clocks.monotonic,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._base = wall() - steady()

    def __call__(self) -> Millis:
        # Asked several times for each request: a NewType would be one more call.
        return int((self._base + self._steady()) * 1000)  # type: ignore[return-value]

    def look(self) -> int:
        """The milliseconds by which the wall clock has jumped since the last look; its time is now
        adopted. Less than half a second is no jump and is ignored.
        """
        jump = self._wall() - self._steady() - self._base
        if abs(jump) < JUMP_SECONDS:
            return 0
        before = self()
        self._base += jump
        return self() - before
