# SPDX-License-Identifier: Apache-2.0
"""1,000 static members of one group are restarted one by one (KIP-345), and nobody rebalances.

What counts is the server's processor time for all restarts. A KIP-848 member says that it goes for
a while and comes back under a new id; a classic one comes back without a word and asks for its
assignment. That no epoch and no generation has moved is checked.
"""

import asyncio
import resource
from typing import Any, TypeVar

import uvloop
from bench import Bench
from figures import Figure
from processes import cpu_seconds
from servers import Server
from wire_client import (
    Link,
    Member,
    heartbeat_request,
    make_topics,
    settle,
    wait_for_coordinator,
)

from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kohort.wire.codec import encode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MEMBERS = 1000
TOPIC = "t1000"
MINUTES_MS = 5 * 60_000
SETTINGS = {
    "group.max.session.timeout.ms": MINUTES_MS,
    "group.initial.rebalance.delay.ms": 3000,  # all classic members are there for the first one
}
AWAY = -2
VERSION = (0).to_bytes(2)  # in front of what a classic member says and is given

Answer = TypeVar("Answer", bound=Any)


class StaticMember(Member):
    """A KIP-848 member with an instance id."""

    def __init__(self, group: str, instance_id: str) -> None:
        super().__init__(group, TOPIC)
        self.instance_id = instance_id

    def request(self) -> ConsumerGroupHeartbeatRequest:
        return self._named(super().request())

    def farewell(self) -> ConsumerGroupHeartbeatRequest:
        """It goes for a while."""
        return self._named(heartbeat_request(self.group, self.id, AWAY))

    def _named(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatRequest:
        request.instance_id = self.instance_id
        return request


async def consumers(server: Server, group: str) -> float:
    """Processor seconds of the server for the restarts of KIP-848 members."""
    link = await Link.open(server.port)
    members = [StaticMember(group, f"instance-{number}") for number in range(MEMBERS)]
    await settle(link, members)
    epoch = members[0].epoch
    before = cpu_seconds(server.pid)
    for member in members:
        _checked(server, await link.call(member.farewell(), 1))
        successor = StaticMember(group, member.instance_id)
        successor.learn(await link.call(successor.request(), 1))
        if (successor.epoch, successor.owned) != (epoch, member.owned):
            raise RuntimeError(f"{server.name}: {member.instance_id} has not what it had")
    spent = cpu_seconds(server.pid) - before
    link.close()
    return spent


async def classic_members(server: Server, group: str) -> float:
    """Processor seconds of the server for the restarts of classic members."""
    links = [await Link.open(server.port) for _ in range(MEMBERS)]
    instances = [f"instance-{number}" for number in range(MEMBERS)]
    joins = zip(links, instances, strict=True)
    joined = await asyncio.gather(*(link.call(_join(group, one), 9) for link, one in joins))
    leader = next(one for one in joined if one.member_id == one.leader)
    shares = [
        SyncGroupRequestAssignment(member_id=one.member_id, assignment=_assignment(partition))
        for partition, one in enumerate(leader.members)
    ]
    given = await asyncio.gather(
        *(
            link.call(_sync(group, one, shares if one is leader else []), 5)
            for link, one in zip(links, joined, strict=True)
        )
    )
    before = cpu_seconds(server.pid)
    for link, instance, was in zip(links, instances, given, strict=True):
        again = _checked(server, await link.call(_join(group, instance), 9))
        synced = _checked(server, await link.call(_sync(group, again, []), 5))
        if (again.generation_id, synced.assignment) != (leader.generation_id, was.assignment):
            raise RuntimeError(f"{server.name}: {instance} has not what it had")
    spent = cpu_seconds(server.pid) - before
    for link in links:
        link.close()
    return spent


def _join(group: str, instance_id: str) -> JoinGroupRequest:
    subscription = ConsumerProtocolSubscription(topics=[TOPIC])
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=MINUTES_MS,
        rebalance_timeout_ms=MINUTES_MS,
        member_id="",
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=VERSION + encode(subscription, 0))
        ],
    )


def _sync(
    group: str, joined: JoinGroupResponse, shares: list[SyncGroupRequestAssignment]
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=shares,
    )


def _assignment(partition: int) -> bytes:
    mine = TopicPartition(topic=TOPIC, partitions=[partition])
    return VERSION + encode(ConsumerProtocolAssignment(assigned_partitions=[mine]), 0)


def _checked(server: Server, answer: Answer) -> Answer:
    if answer.error_code:
        raise RuntimeError(f"{server.name}: {type(answer).__name__}: error {answer.error_code}")
    return answer


def run(bench: Bench) -> list[Figure]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    figures = []
    with bench.started(SETTINGS) as servers:
        for server in servers:
            make_topics(server.port, {TOPIC: MEMBERS})
            wait_for_coordinator(server.port)
        for name, restart in (("KIP-848", consumers), ("classic", classic_members)):
            figure = Figure(f"1,000 static {name} members restarted", "CPU-s", more_is_better=False)
            for turn in range(max(3, bench.rounds // 2)):
                for server in bench.order(servers, turn):
                    group = f"static-{name}-{turn}"
                    figure.add(server.name, uvloop.run(restart(server, group)))
            figures.append(figure)
    return figures
