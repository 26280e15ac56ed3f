# SPDX-License-Identifier: Apache-2.0
"""1,000 members join one group of a topic with 1,000 partitions, until the group is Stable.

Each member has its connection and behaves as the Java consumer: it answers a change at once and
otherwise heartbeats every half second. The members are one asyncio process, whose processor time is
told: where it nears the wall time, only the server's processor time compares.
"""

import asyncio
import contextlib
import resource
import time

import uvloop
from bench import Bench
from figures import Figure
from processes import cpu_seconds
from servers import Server
from wire_client import Link, Member, is_stable, make_topics, wait_for_coordinator

MEMBERS = 1000
PARTITIONS = 1000
POLL_SECONDS = 0.5
TOPIC = "t1000"
LIMIT_SECONDS = 180.0


def own_cpu() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


class Crowd:
    """All members of one group, and what their joining cost."""

    def __init__(self, server: Server, group: str) -> None:
        self.server, self.group = server, group
        self.members = [Member(group, TOPIC) for _ in range(MEMBERS)]
        self.done = asyncio.Event()

    async def live(self, link: Link, member: Member) -> None:
        while not self.done.is_set():
            changed = member.learn(await link.call(member.request(), 1))
            if changed and member.acknowledge is not None:
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.done.wait(), POLL_SECONDS)

    async def watch(self, link: Link) -> None:
        """Ask the coordinator only when the members agree: a description of 1,000 costs it dear."""
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            epochs = {member.epoch for member in self.members}
            owned = sum(len(own) for member in self.members for own in member.owned.values())
            agreed = len(epochs) == 1 and owned == PARTITIONS
            if agreed and await is_stable(link, self.group, epochs):
                self.done.set()
                return
            await asyncio.sleep(0.01)
        raise RuntimeError(f"{self.server.name}: {MEMBERS} members not stable in {LIMIT_SECONDS} s")

    async def join(self) -> tuple[float, float, float]:
        """Seconds to Stable, processor seconds of the server, and of the members."""
        links = [await Link.open(self.server.port) for _ in range(MEMBERS + 1)]
        before, own, begin = cpu_seconds(self.server.pid), own_cpu(), time.monotonic()
        lives = [
            asyncio.create_task(self.live(link, member))
            for link, member in zip(links, self.members, strict=False)
        ]
        await asyncio.gather(self.watch(links[-1]))
        took = time.monotonic() - begin
        spent, own = cpu_seconds(self.server.pid) - before, own_cpu() - own
        await asyncio.gather(*lives)
        for link in links:
            link.close()
        held = sorted(len(own) for member in self.members for own in member.owned.values())
        if held != [PARTITIONS // MEMBERS] * MEMBERS:
            raise RuntimeError(f"{self.server.name} did not spread the partitions: {held[-5:]}")
        return took, spent, own


def run(bench: Bench) -> list[Figure]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    figures = []
    for interval_ms in (1000, 0):
        figures += measure(bench, interval_ms)
    return figures


def measure(bench: Bench, interval_ms: int) -> list[Figure]:
    what = f"1,000 members to Stable, interval {interval_ms} ms"
    goal = 1.0 if interval_ms else None
    wall = Figure(f"{what}: wall", "s", more_is_better=False)
    cpu = Figure(f"{what}: server", "CPU-s", more_is_better=False, goal=goal)
    busiest = 0.0
    with bench.started({"group.consumer.assignment.interval.ms": interval_ms}) as servers:
        for server in servers:
            make_topics(server.port, {TOPIC: PARTITIONS})
            wait_for_coordinator(server.port)
        time.sleep(3)
        for turn in range(max(3, bench.rounds // 2)):
            for server in bench.order(servers, turn):
                crowd = Crowd(server, f"crowd-{interval_ms}-{turn}")
                took, spent, own = uvloop.run(crowd.join())
                wall.add(server.name, took)
                cpu.add(server.name, spent)
                busiest = max(busiest, own / took)
    wall.note = f"the members' process was busy up to {busiest:.0%}"
    return [wall, cpu]
