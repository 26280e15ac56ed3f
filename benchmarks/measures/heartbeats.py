# SPDX-License-Identifier: Apache-2.0
"""Steady heartbeats of members that truly joined. KIP-848: 50 groups of one, 100 groups of ten;
classic: 50 groups of one.
"""

import asyncio
import time

from bench import Bench
from figures import Figure
from load import Load
from servers import Server
from wire_client import (
    Connection,
    frame,
    heartbeat_request,
    join_groups,
    make_topics,
    place_of_error,
    stable_member,
    wait_for_coordinator,
)

from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kohort.wire.messages.heartbeat import HeartbeatResponse

GOAL = 1.2
VERSION = 1
CLASSIC_VERSION = 4
# News of a topic moves its subscribers' epochs on Kafka; members that join later are spared it.
METADATA_SECONDS = 3.0


def joined(server: Server, groups: int, each: int, connections: int) -> Load:
    names = [f"beat-{groups}x{each}-{number:04d}" for number in range(groups)]
    members = asyncio.run(join_groups(server.port, names, each, "t10"))
    frames = [
        frame(heartbeat_request(member.group, member.id, member.epoch), VERSION)
        for member in members
    ]
    answer = ConsumerGroupHeartbeatResponse
    error_at = place_of_error(answer(), answer(error_code=1), VERSION)
    return Load(frames, connections, error_at)


def joined_classic(server: Server, groups: int) -> Load:
    with Connection(server.port) as link:
        beats = [stable_member(link, f"classic-{number:04d}") for number in range(groups)]
    frames = [frame(beat, CLASSIC_VERSION) for beat in beats]
    error_at = place_of_error(HeartbeatResponse(), HeartbeatResponse(error_code=1), CLASSIC_VERSION)
    return Load(frames, groups, error_at)


def run(bench: Bench) -> list[Figure]:
    figures = []
    with bench.started() as servers:
        for server in servers:
            make_topics(server.port, {"t10": 10})
            wait_for_coordinator(server.port)
        time.sleep(METADATA_SECONDS)
        for groups, each in ((50, 1), (100, 10)):
            connections = groups * each
            loads = {server.name: joined(server, groups, each, connections) for server in servers}
            name = f"KIP-848 heartbeats, {connections:,} connections"
            figure = Figure(name, "1/CPU-s", more_is_better=True, goal=GOAL)
            figures.append(bench.steady(figure, servers, loads))
        loads = {server.name: joined_classic(server, 50) for server in servers}
        figure = Figure(
            "classic heartbeats, 50 connections", "1/CPU-s", more_is_better=True, goal=GOAL
        )
        figures.append(bench.steady(figure, servers, loads))
    return figures
