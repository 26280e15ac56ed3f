# SPDX-License-Identifier: Apache-2.0
"""Nobody is expelled whose heartbeats had arrived in time, also where the broker stood still.

Arrived means: the bytes had reached the broker's machine, whether anybody looked at them or not.
After two lost answers a member may be two epochs behind, and is refused by right: of the heartbeats
since the last answer only the first two count.
"""

import itertools
from typing import ClassVar

from kohort.errors import WireError
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import (
    HeartbeatAccepted,
    HeartbeatFailed,
    MemberExpelled,
    MemberJoined,
    MemberLeft,
)
from kohort.sim.network import Line
from kohort.wire.apis import APIS
from kohort.wire.codec import decode
from kohort.wire.frames import FrameReader, decode_request_header, peek
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

HEARTBEAT = 68
FORGIVEN = 2  # heartbeats that count though their answers are lost


class Fencing(Checker):
    """Hears facts, and watches the wire. `session_us` is the shortest session of the run."""

    name: ClassVar[str] = "fencing"
    hears: ClassVar = {
        MemberJoined: "joined",
        HeartbeatAccepted: "accepted",
        HeartbeatFailed: "not_taken",
        MemberLeft: "left",
        MemberExpelled: "expelled",
    }

    def __init__(self, alarm: Alarm, session_us: int = 6_000_000) -> None:
        super().__init__(alarm)
        self.session_us = session_us
        self._readers: dict[Line, FrameReader] = {}
        self._arrived: dict[tuple[str, str], list[int]] = {}
        self._unheard: dict[tuple[str, str], int] = {}

    def arrived(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        """Look for heartbeats in what arrives at the broker."""
        if not to_broker:
            return
        reader = self._readers.get(line)
        if reader is None:
            reader = self._readers[line] = FrameReader(1 << 20)
        try:
            for frame in reader.feed(data):
                key, version, _ = peek(frame)
                if key == HEARTBEAT and version in APIS[HEARTBEAT].request.versions:
                    start = decode_request_header(frame, flexible=True)[1]
                    request = decode(ConsumerGroupHeartbeatRequest, version, frame, start)
                    self.heartbeat(request.group_id, request.member_id, line.arrived_at)
        except (WireError, UnicodeDecodeError):
            return  # somebody hostile

    def heartbeat(self, group: str, member: str, at: int) -> None:
        """One has arrived."""
        times = self._arrived.get((group, member))
        if times is not None and self._unheard[group, member] < FORGIVEN:
            times.append(at)
            self._unheard[group, member] += 1

    def joined(self, fact: MemberJoined) -> None:
        self._arrived[fact.group, fact.member] = [fact.at]
        self._unheard[fact.group, fact.member] = 0

    def accepted(self, fact: HeartbeatAccepted) -> None:
        self._unheard[fact.group, fact.member] = 0

    def not_taken(self, fact: HeartbeatFailed) -> None:
        """The coordinator was not there: that heartbeat has changed nothing."""
        if self._unheard.get((fact.group, fact.member), 0):
            self._unheard[fact.group, fact.member] -= 1

    def left(self, fact: MemberLeft) -> None:
        self._arrived.pop((fact.group, fact.member), None)

    def expelled(self, fact: MemberExpelled) -> None:
        times = self._arrived.pop((fact.group, fact.member), None)
        if times is None:
            return
        times = sorted([*times, fact.at])
        gap = max(after - before for before, after in itertools.pairwise(times))
        if gap < self.session_us:
            self.alarm(
                f"{fact.member} of {fact.group} is expelled, silent for {gap / 1e6:.1f} s at most,"
                f" its session has {self.session_us / 1e6:.1f} s"
            )
