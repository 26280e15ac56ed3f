# SPDX-License-Identifier: Apache-2.0
"""How long something takes, in milliseconds: the longest of late, and percentiles of the last few
thousand times.
"""

from collections import deque
from collections.abc import Callable, Iterable

from kohort.runtime.clocks import perf_counter_ns

SAMPLES_MAX = 4096
WINDOW_NS = 60_000_000_000  # for how long the longest is told, at least, and at most for twice this
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
MS = 1_000_000


class RecentMax:
    """The longest of late. Two windows are kept: whoever reads once in each misses none."""

    __slots__ = ("_before", "_clock", "_since", "now_ns")

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.now_ns = 0  # the longest since `_since`; whoever measures raises it
        self._before = 0  # the longest of the window before
        self._clock = clock
        self._since = clock()

    def read(self) -> float:
        now = self._clock()
        if now - self._since >= WINDOW_NS:
            fresh = now - self._since < 2 * WINDOW_NS
            self._before, self.now_ns = self.now_ns if fresh else 0, 0
            self._since = now
        return max(self._before, self.now_ns) / MS


class Durations:
    """One thread adds; another one may read meanwhile."""

    __slots__ = ("count", "longest", "samples")

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.count = 0
        self.samples: deque[int] = deque(maxlen=SAMPLES_MAX)
        self.longest = RecentMax(clock)

    def add(self, taken_ns: int) -> None:
        """It has taken this long, in nanoseconds."""
        self.count += 1
        self.samples.append(taken_ns)
        if taken_ns > self.longest.now_ns:  # noqa: PLR1730  (max() would be one more call)
            self.longest.now_ns = taken_ns

    def read(self) -> dict[str, float]:
        return figures(self.samples.copy(), self.longest)


class Turns:
    """When the last turns took place: each has the time at which its first call came, and those of
    its begin and its end, in nanoseconds. One append for each turn, since a turn may be short.
    """

    __slots__ = ("queued", "samples", "taken")

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.samples: deque[tuple[int, int, int]] = deque(maxlen=SAMPLES_MAX)
        self.queued = RecentMax(clock)
        self.taken = RecentMax(clock)

    def add(self, first: int, begun: int, ended: int) -> None:
        self.samples.append((first, begun, ended))
        if ended - begun > self.taken.now_ns:  # noqa: PLR1730  (max() would be one more call)
            self.taken.now_ns = ended - begun
        if begun - first > self.queued.now_ns:  # noqa: PLR1730
            self.queued.now_ns = begun - first

    def read_queued(self) -> dict[str, float]:
        """How long the first call of a turn has waited for it."""
        return figures((begun - first for first, begun, _ in self.samples.copy()), self.queued)

    def read_taken(self) -> dict[str, float]:
        """How long a turn has taken."""
        return figures((ended - begun for _, begun, ended in self.samples.copy()), self.taken)

    def idle_ratio(self, now_ns: int) -> float:
        """The part of the time in which no turn was taken, since the oldest turn that is known."""
        samples = self.samples.copy()
        if not samples:
            return 1.0
        busy = sum(ended - begun for _, begun, ended in samples)
        return max(0.0, 1 - busy / max(now_ns - samples[0][1], 1))


def figures(taken_ns: Iterable[int], longest: RecentMax) -> dict[str, float]:
    """`max` and the percentiles, by name; 0 where nothing has been measured."""
    ordered = sorted(taken_ns)
    last = len(ordered) - 1
    found = {"max": longest.read()}
    for name, part in PERCENTILES.items():
        found[name] = ordered[min(int(part * len(ordered)), last)] / MS if ordered else 0.0
    return found
