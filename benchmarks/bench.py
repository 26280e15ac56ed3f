# SPDX-License-Identifier: Apache-2.0
"""How a run is made: which servers, how many rounds, how long, pinned or not."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from figures import Figure
from load import Load, run
from processes import can_pin, pin
from servers import KafkaServer, KohortServer, Server, wait_until_answering

SERVER_CPU, CLIENT_CPU = 0, 1


@dataclass(frozen=True)
class Bench:
    """The choices of the command line. `names` are the servers that are measured."""

    names: tuple[str, ...]
    rounds: int = 5
    seconds: float = 2.0
    warm_seconds: float = 60.0
    pinned: bool = True

    def server(self, name: str, settings: Mapping[str, object] | None = None) -> Server:
        return (KafkaServer if name == "kafka" else KohortServer)(settings or {})

    @contextlib.contextmanager
    def started(self, settings: Mapping[str, object] | None = None) -> Iterator[list[Server]]:
        """All servers, started one after the other and answering; ended on the way out."""
        with contextlib.ExitStack() as stack:
            servers = []
            for name in self.names:
                server = self.server(name, settings)
                stack.callback(server.close)
                server.launch()
                wait_until_answering(server)
                servers.append(server)
            yield servers

    def order(self, servers: list[Server], turn: int) -> list[Server]:
        """Each server goes first in every other round: what drifts hits both alike."""
        return servers if turn % 2 == 0 else servers[::-1]

    def steady(self, figure: Figure, servers: list[Server], loads: Mapping[str, Load]) -> Figure:
        """Requests per CPU-second of the server under a closed loop, warmed up first."""
        pinned = self.pinned and can_pin()
        client_cpu = CLIENT_CPU if pinned else None
        busiest = 0.0
        for server in servers:
            self.warm_up(server, loads[server.name])
            if pinned:
                pin(server.pid, {SERVER_CPU})
        for turn in range(self.rounds):
            for server in self.order(servers, turn):
                answered = run(
                    server, loads[server.name], seconds=self.seconds, client_cpu=client_cpu
                )
                figure.add(server.name, answered.per_cpu_second)
                busiest = max(busiest, answered.client_busy)
        if pinned:
            for server in servers:
                pin(server.pid, {SERVER_CPU, CLIENT_CPU})
        if busiest > 0.9:
            figure.note = f"the load client used {busiest:.0%} of a processor"
        return figure

    def warm_up(self, server: Server, load: Load) -> None:
        """Load a server until it no longer becomes cheaper: its compiler must have had its time.

        A JVM gets both processors for it. Requests are cheaper by a factor of three in the end, and
        the last third takes longest: so three slices without a gain end it, or the limit.
        """
        best, stale, end = 0.0, 0, time.monotonic() + self.warm_seconds
        while stale < 3 and time.monotonic() < end:
            reached = run(server, load, seconds=1.5).per_cpu_second
            stale = 0 if reached > best * 1.03 else stale + 1
            best = max(best, reached)
