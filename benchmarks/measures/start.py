# SPDX-License-Identifier: Apache-2.0
"""From the start of the process to its first answered request, on an empty directory.

Kafka's directory is formatted before; that takes it one more JVM and is not counted. "group
answers" goes on until the internal topic is made and a group's coordinator answers.
"""

import time

from bench import Bench
from figures import Figure
from processes import cpu_seconds
from servers import wait_until_answering
from wire_client import wait_for_coordinator


def run(bench: Bench) -> list[Figure]:
    wall = Figure("start: first answer", "s", more_is_better=False, goal=1 / 5)
    cpu = Figure("start: processor time of it", "CPU-s", more_is_better=False)
    group = Figure("start: first group answers", "s", more_is_better=False)
    for turn in range(bench.rounds):
        for name in bench.names if turn % 2 == 0 else bench.names[::-1]:
            server = bench.server(name)
            try:
                begin = time.monotonic()
                server.launch()
                wait_until_answering(server)
                wall.add(name, time.monotonic() - begin)
                cpu.add(name, cpu_seconds(server.pid))
                wait_for_coordinator(server.port)
                group.add(name, time.monotonic() - begin)
            finally:
                server.close()
    return [wall, cpu, group]
