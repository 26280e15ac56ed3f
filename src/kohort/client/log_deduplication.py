# SPDX-License-Identifier: Apache-2.0
"""Lines of a loop that tries again: each is said once, and again where it lasts."""

from collections.abc import Callable

from kohort.client.network.environment import environment

LASTS_S = 30.0


class LogDeduplicator:
    """`now` is the time in seconds. One for each loop."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or environment().clock.monotonic
        self._last = ""
        self._said_at = 0.0

    def is_due(self, text: str) -> bool:
        """Whether to log this text: it is another one than the last, or that was long ago."""
        now = self._now()
        if text == self._last and now < self._said_at + LASTS_S:
            return False
        self._last, self._said_at = text, now
        return True

    def end(self) -> None:
        """It has worked: what comes next is new."""
        self._last = ""
