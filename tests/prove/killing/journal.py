# SPDX-License-Identifier: Apache-2.0
"""What everybody did lately, to be told when a test fails."""

import time
from collections import Counter, deque


class Journal:
    """The last lines of all actors in the order of time, and how often each thing was done."""

    def __init__(self, lines: int = 400) -> None:
        self.counts: Counter[str] = Counter()
        self._begin = time.monotonic()
        self._lines: deque[str] = deque(maxlen=lines)

    def say(self, who: str, what: str) -> None:
        self._lines.append(f"{time.monotonic() - self._begin:9.3f} {who}: {what}")

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def summary(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))

    def __str__(self) -> str:
        return "\n".join(list(self._lines))
