# SPDX-License-Identifier: Apache-2.0
"""One-partition OffsetCommits, each group on its own, without fsync but where it is said."""

from bench import Bench
from figures import Figure
from load import Load
from servers import KohortServer, wait_until_answering
from wire_client import (
    commit_request,
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

GOAL = 0.7
VERSION = 9
TOPIC = "t100"


def answer(code: int) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(error_code=code)
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name=TOPIC, partitions=[partition])]
    )


def load(groups: int, connections: int) -> Load:
    frames = [
        frame(commit_request(f"commit-{number:04d}", [(TOPIC, [number % 100])]), VERSION)
        for number in range(groups)
    ]
    return Load(frames, connections, place_of_error(answer(0), answer(1), VERSION))


def run(bench: Bench) -> list[Figure]:
    few, many = load(50, 50), load(1000, 1000)
    figures = []
    with bench.started() as servers:
        for server in servers:
            make_topics(server.port, {TOPIC: 100})
            wait_for_coordinator(server.port)
        for one in (few, many):
            name = f"OffsetCommit of 1 partition, {one.connections:,} connections"
            figure = Figure(name, "1/CPU-s", more_is_better=True, goal=GOAL)
            loads = {server.name: one for server in servers}
            figures.append(bench.steady(figure, servers, loads))
        if "kohort" in bench.names:
            figures.append(synced(bench, few, figures[0]))
    return figures


def synced(bench: Bench, load: Load, unsynced: Figure) -> Figure:
    """Kohort with fdatasync before each answer, beside Kafka without: what the promise costs."""
    server = KohortServer({"log.sync": "group"})
    try:
        server.launch()
        wait_until_answering(server)
        make_topics(server.port, {TOPIC: 100})
        wait_for_coordinator(server.port)
        figure = Figure(
            "the same with log.sync=group, 50 connections",
            "1/CPU-s",
            more_is_better=True,
            note="Kafka's figure is the one without fsync",
        )
        bench.steady(figure, [server], {"kohort": load})
        figure.kafka = list(unsynced.kafka)
        return figure
    finally:
        server.close()
