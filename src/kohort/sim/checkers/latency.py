# SPDX-License-Identifier: Apache-2.0
"""No request of a bystander lies at the broker for long, whatever others send.

This checker watches the wire: from the instant at which the request had reached the machine to the
one at which its answer left. Time passes for the broker as `sim/costs.py` says. A process that
stands still is excused, and so is the time to read what has arrived: no scheduler can give that.
"""

from bisect import bisect_right
from collections import deque
from typing import ClassVar

from kohort.errors import WireError
from kohort.sim import costs
from kohort.sim.actors.bystander import Bystander
from kohort.sim.actors.staller import LargeBystander
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.network import Line
from kohort.wire.frames import FrameReader, decode_request_header

BOUND_US = 100_000
"""A member waits for a few slices and for what runs in a round (server/scheduler.py), and for as
many others as ask for as little as it does.
"""
ROOM_BOUND_US = 500_000
"""Of a request that needs memory (server/network/backpressure.py): who waits for that has the turns
of the others in front of it, of 2 ms each, some fifty of them, at its begin and once more.
"""
KEPT = 20_000  # pieces: more than arrive in the longest of these times
BOUNDS_US = {Bystander.kind: BOUND_US, LargeBystander.kind: ROOM_BOUND_US}


class LatencyChecker(Checker):
    name: ClassVar[str] = "patience"

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._waiting: dict[Line, deque[int]] = {}
        self._bounds: dict[Line, int] = {}
        self._readers: dict[Line, FrameReader] = {}
        self._others: set[Line] = set()
        self._still_until = 0  # the process has stood still until then
        self._read_at: list[int] = []  # when each piece of late was read
        self._read_us: list[int] = []  # what that and all before it had taken

    def stands_still(self, until: int) -> None:
        """The process does nothing until an instant."""
        self._still_until = max(self._still_until, until)

    def arrived(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        if not to_broker:
            return
        if line.server is not None:
            self._note_read(line.server.loop.now, costs.of_bytes(len(data)))
        if line in self._others:
            return
        reader = self._readers.setdefault(line, FrameReader(1 << 20))
        try:
            for frame in reader.feed(data):
                client = decode_request_header(frame, flexible=True)[0].client_id or ""
                kind = client.rpartition("-")[0]
                if kind not in BOUNDS_US:
                    self._others.add(line)
                    return
                self._bounds[line] = BOUNDS_US[kind]
                self._waiting.setdefault(line, deque()).append(line.arrived_at)
        except (WireError, UnicodeDecodeError):
            self._others.add(line)

    def leaves(self, line: Line, _data: bytes) -> None:
        """Each answer is written by itself: a bystander has one request under way."""
        waiting = self._waiting.get(line)
        if not waiting or line.server is None:
            return
        at = waiting.popleft()
        now = line.server.loop.now
        since = max(at, self._still_until)
        waited = now - since - self._reading_us(since)
        if waited > self._bounds[line]:
            self.alarm(f"a bystander has waited for {waited / 1e6:.2f} s at {now}")

    def _note_read(self, now: int, taken_us: int) -> None:
        if len(self._read_at) > KEPT:
            del self._read_at[: KEPT // 2], self._read_us[: KEPT // 2]
        before = self._read_us[-1] if self._read_us else 0
        self._read_at.append(now)
        self._read_us.append(before + taken_us)

    def _reading_us(self, since: int) -> int:
        """The time that the broker has spent since then to read what arrived."""
        if not self._read_us:
            return 0
        before = bisect_right(self._read_at, since) - 1
        return self._read_us[-1] - self._read_us[max(before, 0)]
