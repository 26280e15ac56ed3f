# SPDX-License-Identifier: Apache-2.0
"""Restart with 1,000,000 committed offsets (1,000 groups x 1,000 partitions), and their memory.

The clock runs until every group answers; the stop before is clean on both sides. Kafka has 1 GiB of
heap and touches what it may, so its memory is what it was allowed: what an operator sees.
"""

import time

from bench import Bench
from figures import Figure
from load import Load
from load import run as run_load
from processes import cpu_seconds, resident_mib
from servers import Server, wait_until_answering
from wire_client import (
    COMMITTED,
    LOADING,
    Connection,
    commit_request,
    committed_of,
    fetch_request,
    frame,
    make_topics,
    place_of_error,
    wait_for_coordinator,
)

from kohort.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

GROUPS = 1000
PARTITIONS = 1000
TOPIC = "t1000"
RESTARTS = 3
LIMIT_SECONDS = 300.0


def group(number: int) -> str:
    return f"million-{number:04d}"


def answer(code: int) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(error_code=code)
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name=TOPIC, partitions=[partition])]
    )


def fill(server: Server) -> float:
    """Commit everything; the processor microseconds per offset that it cost the server."""
    make_topics(server.port, {TOPIC: PARTITIONS})
    for number in range(0, GROUPS, 20):  # touch coordinators before the load, which retries nothing
        wait_for_coordinator(server.port, group(number))
    requests = [
        commit_request(group(number), [(TOPIC, range(PARTITIONS))]) for number in range(GROUPS)
    ]
    frames = [frame(request, 9) for request in requests]
    # the array of partitions takes two bytes for its length, as it does here only from 127 on
    error_at = place_of_error(answer(0), answer(1), 9) + 1
    answered = run_load(server, Load(frames, 10, error_at), seconds=LIMIT_SECONDS, requests=GROUPS)
    return answered.server_cpu / GROUPS / PARTITIONS * 1e6


def wait_for_all(server: Server) -> None:
    """Return when the first and the last partition of every group come back as committed."""
    asked = [(TOPIC, [0, PARTITIONS - 1])]
    left = [group(number) for number in range(GROUPS)]
    end = time.monotonic() + LIMIT_SECONDS
    with Connection(server.port) as connection:
        while left:
            if time.monotonic() > end:
                raise RuntimeError(f"{server.name}: {len(left)} groups did not answer")
            result = connection.call(fetch_request([(one, asked) for one in left]), 8)
            waiting = [one for one in result.groups if one.error_code in LOADING]
            result.groups = [one for one in result.groups if one.error_code not in LOADING]
            found = committed_of(result)
            if found != [COMMITTED] * 2 * len(result.groups):
                raise RuntimeError(f"{server.name} lost offsets: it answers {sorted(set(found))}")
            left = [one.group_id for one in waiting]
            if left:
                time.sleep(0.005)


def run(bench: Bench) -> list[Figure]:
    commit = Figure("1 M offsets: commit, 1,000 a request", "CPU-us each", more_is_better=False)
    filled = Figure("1 M offsets: memory once committed", "MiB", more_is_better=False)
    wall = Figure("1 M offsets: restart to all groups", "s", more_is_better=False, goal=1.0)
    cpu = Figure("1 M offsets: processor time of it", "CPU-s", more_is_better=False)
    memory = Figure("1 M offsets: memory once loaded", "MiB", more_is_better=False, goal=1 / 8)
    with bench.started() as servers:
        for server in servers:
            commit.add(server.name, fill(server))
            time.sleep(2)
            filled.add(server.name, resident_mib(server.pid))
        for turn in range(RESTARTS):
            for server in bench.order(servers, turn):
                server.stop()
                begin = time.monotonic()
                server.launch()
                wait_until_answering(server)
                wait_for_all(server)
                wall.add(server.name, time.monotonic() - begin)
                cpu.add(server.name, cpu_seconds(server.pid))
                time.sleep(2)
                memory.add(server.name, resident_mib(server.pid))
    return [commit, filled, wall, cpu, memory]
