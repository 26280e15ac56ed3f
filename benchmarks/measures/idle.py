# SPDX-License-Identifier: Apache-2.0
"""Resident memory of a broker that has answered one group and then idled for five seconds."""

import time

from bench import Bench
from figures import Figure
from processes import cpu_seconds, resident_mib
from wire_client import wait_for_coordinator

IDLE_SECONDS = 5.0


def run(bench: Bench) -> list[Figure]:
    memory = Figure("idle: resident memory", "MiB", more_is_better=False, goal=1 / 6)
    cpu = Figure("idle: processor time", "CPU-ms/s", more_is_better=False)
    with bench.started() as servers:
        for server in servers:
            wait_for_coordinator(server.port)
        time.sleep(IDLE_SECONDS)
        before = [cpu_seconds(server.pid) for server in servers]
        for server in servers:
            memory.add(server.name, resident_mib(server.pid))
        time.sleep(IDLE_SECONDS)
        for server, then in zip(servers, before, strict=True):
            cpu.add(server.name, (cpu_seconds(server.pid) - then) / IDLE_SECONDS * 1000)
    return [memory, cpu]
