# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch of 100 groups with 10 partitions each in one request (KIP-709, version 8)."""

from bench import Bench
from figures import Figure
from load import Load
from servers import Server
from wire_client import (
    COMMITTED,
    Connection,
    commit_request,
    committed_of,
    fetch_request,
    frame,
    make_topics,
    place_of_error,
    wait_for_coordinator,
)

from kohort.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

GOAL = 0.6
VERSION = 8
TOPIC = "t10"
PARTITIONS = range(10)
GROUPS = 200
ASKED = 100


def group(number: int) -> str:
    return f"fetch-{number % GROUPS:04d}"


def answer(code: int) -> OffsetFetchResponse:
    partition = OffsetFetchResponsePartitions(error_code=code)
    topic = OffsetFetchResponseTopics(name=TOPIC, partitions=[partition])
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=group(0), topics=[topic])])


def prepare(server: Server) -> None:
    """Commit what is to be fetched, and look once into a whole answer."""
    make_topics(server.port, {TOPIC: len(PARTITIONS)})
    wait_for_coordinator(server.port)
    with Connection(server.port) as connection:
        for number in range(GROUPS):
            done = connection.call(commit_request(group(number), [(TOPIC, PARTITIONS)]), 9)
            codes = {one.error_code for one in done.topics[0].partitions}
            if codes != {0}:
                raise RuntimeError(f"{server.name} refused a commit with errors {codes}")
        found = committed_of(connection.call(request(0), VERSION))
        if found != [COMMITTED] * ASKED * len(PARTITIONS):
            raise RuntimeError(f"{server.name} answered {len(found)} offsets, {set(found)}")


def request(first: int):
    asked = [(group(first + number), [(TOPIC, PARTITIONS)]) for number in range(ASKED)]
    return fetch_request(asked)


def run(bench: Bench) -> list[Figure]:
    figures = []
    error_at = place_of_error(answer(0), answer(1), VERSION)
    with bench.started() as servers:
        for server in servers:
            prepare(server)
        for connections in (50, 1000):
            frames = [frame(request(number), VERSION) for number in range(connections)]
            load = Load(frames, connections, error_at)
            name = f"OffsetFetch of 100 groups x 10, {connections:,} connections"
            figure = Figure(name, "1/CPU-s", more_is_better=True, goal=GOAL)
            loads = {server.name: load for server in servers}
            figures.append(bench.steady(figure, servers, loads))
    return figures
