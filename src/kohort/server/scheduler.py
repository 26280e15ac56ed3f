# SPDX-License-Identifier: Apache-2.0
"""Who runs next, and for how long: everything that a broker does on its loop goes through here.

Whoever has work enters its line, once, and whoever has none is not asked. A round serves each line
for its share of time, then the sockets are read again. Machines come first: what was taken in is
worked off before more is. While machines are behind, less is taken in, so that work waits where it
is shared fairly, in the line of clients.

In a line runs next who has had least (start-time fair queueing: Goyal, Vin, Cheng 1996), for a
slice at most. So a client that asks for little waits for a slice or two, however many others have
however much to do. What one has saved up by asking for less is bounded, and so is what one owes who
comes back. What arrives runs at once, as long as the share of clients lasts.

Nothing here knows a socket, a loop or a clock: the stopwatch comes from outside.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from kohort.runtime.clocks import perf_counter_ns

MACHINES = 0
CLIENTS = 1
BACKGROUND = 2
"""The lines: shards and coordinators of transactions; connections, and requests that are answered
in steps; loading and reading of logs, and housekeeping.
"""

SLICE_NS = (2_000_000, 250_000, 2_000_000)  # of each line
MACHINES_NS = 5_000_000  # of a round
CLIENTS_NS = 5_000_000  # of a round, and of what arrives between two rounds
CLIENTS_BUSY_NS = 1_000_000  # the same while machines are behind
BACKGROUND_NS = 2_000_000  # of a round
ARRIVAL_NS = 1_000_000  # of one client that runs as it arrives
SAVED_NS = 20_000_000
"""The most that a runnable saves up by asking for less than the others get. A slice is never
charged more either: a process that stood still for seconds is nobody's fault.
"""

NEW = 1 << 62
"""Of whoever was never in a line: it comes behind those that have asked for little."""

Over = Callable[[], bool]
"""Whether a slice is used up. It is asked between two steps, and a step is short."""


def never() -> bool:
    """A slice that is not over before everything is done."""
    return False


class Runnable(Protocol):
    """A connection, a shard, logs that are being read, a request that is answered in steps."""

    line: int
    had_ns: int
    """What it has had, in the time of its line. NEW at first; then only the scheduler sets it."""

    def run(self, over: Over) -> bool:
        """Go on until there is nothing more to do, or the slice is over. True while there is more:
        it then stays in the line.
        """


class _Line:
    """Who waits: first who has had least, and of those who has waited longest."""

    __slots__ = ("entered", "heap", "level_ns", "slice_ns")

    def __init__(self, slice_ns: int) -> None:
        self.slice_ns = slice_ns
        self.heap: list[tuple[int, int, Runnable]] = []
        self.entered = 0  # how often somebody has entered
        self.level_ns = 0  # `had_ns` of the runnable that was served last: nobody comes with less


class Scheduler:
    """The lines, and whose slice it is. `stopwatch` counts nanoseconds. Whoever is in `waiting` is
    in a line.
    """

    __slots__ = (
        "_again",
        "_clients_ns",
        "_lines",
        "_running",
        "_stopwatch",
        "_until",
        "arrived",
        "waiting",
    )

    def __init__(self, stopwatch: Callable[[], int] = perf_counter_ns) -> None:
        self._stopwatch = stopwatch
        self.waiting: set[Runnable] = set()
        self._lines = tuple(_Line(slice_ns) for slice_ns in SLICE_NS)
        self._running: Runnable | None = None  # it stays in `waiting`
        self._again = False  # it has entered in its own slice
        self._until = 0  # the end of this slice
        self.arrived = 0  # when something has first arrived since the last turn, or 0
        self._clients_ns = CLIENTS_NS

    def enter(self, runnable: Runnable) -> None:
        """Wait for a slice. Whoever waits already keeps its place."""
        waiting = self.waiting
        if runnable in waiting:
            if runnable is self._running:
                self._again = True
        else:
            waiting.add(runnable)
            line = self._lines[runnable.line]
            line.entered += 1
            had_ns, least_ns = runnable.had_ns, line.level_ns - SAVED_NS
            if had_ns < least_ns:
                had_ns = least_ns
            elif had_ns > (most_ns := line.level_ns + line.slice_ns):
                had_ns = most_ns
            heappush(line.heap, (had_ns, line.entered, runnable))

    def admits(self, runnable: Runnable) -> bool:
        """Whether something that has just arrived may run at once: its slice has begun."""
        if runnable in self.waiting:
            return False
        now = self._stopwatch()
        if not self.arrived:
            self.arrived = now
        until, most = self.arrived + self._clients_ns, now + ARRIVAL_NS
        self._until = until if until < most else most  # noqa: FURB136  (min() would be a call more)
        return now < until

    def over(self) -> bool:
        """Whether the slice that was given last is used up."""
        return self._stopwatch() >= self._until

    def run_round(self) -> tuple[int, int, int]:
        """Serve the lines, each until nobody waits or its share is used up. The times at which
        something had first arrived for the round, and of its begin and its end.
        """
        machines, clients, background = self._lines
        now = begun = self._stopwatch()
        arrived, self.arrived = self.arrived or begun, 0
        if machines.heap:
            now = self._serve(machines, now, MACHINES_NS)
        self._clients_ns = CLIENTS_BUSY_NS if machines.heap else CLIENTS_NS
        if clients.heap:
            now = self._serve(clients, now, self._clients_ns)
        if background.heap:
            now = self._serve(background, now, BACKGROUND_NS)
        return arrived, begun, now

    def _serve(self, line: _Line, now: int, share_ns: int) -> int:
        """Give slices to those of one line. The time at the end."""
        heap, end = line.heap, now + share_ns
        while heap and now < end:
            had_ns, _, runnable = heappop(heap)
            if had_ns > line.level_ns:  # noqa: PLR1730  (max() would be one more call)
                line.level_ns = had_ns
            self._until = now + line.slice_ns
            self._running, self._again = runnable, False
            more = False
            try:
                more = runnable.run(self.over)
            finally:
                self._running = None
                begun, now = now, self._stopwatch()
                taken_ns = now - begun
                had_ns += taken_ns if taken_ns < SAVED_NS else SAVED_NS  # noqa: FURB136
                runnable.had_ns = had_ns
                if more or self._again:
                    line.entered += 1
                    heappush(heap, (had_ns, line.entered, runnable))
                else:
                    self.waiting.remove(runnable)
        return now
