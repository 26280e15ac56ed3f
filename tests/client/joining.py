# SPDX-License-Identifier: Apache-2.0
"""Members made of single requests, so that a test says when they do what."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.waiting import SOON_S

from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.network.connection import Connection
from kohort.records import consumer_protocol
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

COMMIT_BY_NAME = 9


def soon(seconds: float = SOON_S) -> float:
    return asyncio.get_running_loop().time() + seconds


@contextlib.asynccontextmanager
async def coordinator(bootstrap: str, group_id: str) -> AsyncIterator[Connection]:
    """A connection to the group's coordinator, once it has one."""
    cluster = Cluster([Address.of(one) for one in bootstrap.split(",")], client_id="member")
    deadline = soon()
    while True:
        node = (await cluster.coordinators([group_id], deadline))[group_id]
        if not isinstance(node, Exception):
            break
        assert await cluster.pause(3, deadline), node
    try:
        yield await cluster.connection(node.address, deadline)
    finally:
        await cluster.close()


async def commit(
    connection: Connection,
    group_id: str,
    offsets: dict[tuple[str, int], int],
    *,
    member_id: str = "",
    epoch: int = -1,
) -> list[int]:
    """Commit, and return the codes; without a member as tools do."""
    topics: dict[str, list[Any]] = {}
    for (topic, index), offset in offsets.items():
        partition = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata="test"
        )
        topics.setdefault(topic, []).append(partition)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=each) for name, each in topics.items()
        ],
    )
    deadline = soon()
    while True:
        answer = await connection.ask(request, deadline=deadline, at_most=COMMIT_BY_NAME)
        codes = [one.error_code for topic in answer.topics for one in topic.partitions]
        if not {14, 15, 16} & set(codes) or asyncio.get_running_loop().time() > deadline:
            return codes
        await asyncio.sleep(0.05)


class ConsumerMember:
    """A member of a KIP-848 group."""

    def __init__(self, connection: Connection, group_id: str, member_id: str) -> None:
        self.connection = connection
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 0
        self.owned: list[TopicPartitions] = []

    async def heartbeat(self, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, **fields
        )
        answer = await self.connection.ask(request, deadline=soon())
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = [
                    TopicPartitions(topic_id=one.topic_id, partitions=list(one.partitions))
                    for one in answer.assignment.topic_partitions
                ]
        return answer

    async def join(self, *topics: str, instance_id: str | None = None) -> None:
        """Join, and heartbeat until something is owned and acknowledged."""
        deadline = soon()
        fields: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": list(topics),
            "topic_partitions": [],
            "instance_id": instance_id,
        }
        while True:
            answer = await self.heartbeat(**fields)
            assert answer.error_code in (0, 14, 15, 16), answer
            if self.owned:
                break
            assert asyncio.get_running_loop().time() < deadline
            fields = {} if self.epoch > 0 else fields
            await asyncio.sleep(0.05)
        await self.heartbeat(topic_partitions=self.owned)

    async def leave(self) -> None:
        self.epoch = -1
        await self.heartbeat()


async def join_classic(
    connection: Connection,
    group_id: str,
    topic: str,
    indexes: list[int],
    *,
    instance_id: str | None = None,
    protocol_type: str = "consumer",
) -> str:
    """Join a classic group as its only member and take these partitions; returns the member id."""
    subscription = consumer_protocol.ConsumerProtocolSubscription(
        topics=[topic], owned_partitions=[]
    )
    protocol = JoinGroupRequestProtocol(
        name="range", metadata=consumer_protocol.encode(subscription)
    )
    member_id, deadline = "", soon()
    while True:
        joined = await connection.ask(
            JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=member_id,
                group_instance_id=instance_id,
                protocol_type=protocol_type,
                protocols=[protocol],
            ),
            deadline=deadline,
        )
        if joined.error_code == 0:
            break
        assert joined.error_code in (14, 15, 16, 79), joined
        member_id = joined.member_id
        await asyncio.sleep(0.05)
    assignment = consumer_protocol.ConsumerProtocolAssignment(
        assigned_partitions=[consumer_protocol.TopicPartition(topic=topic, partitions=indexes)]
    )
    synced = await connection.ask(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=joined.member_id, assignment=consumer_protocol.encode(assignment)
                )
            ],
        ),
        deadline=deadline,
    )
    assert synced.error_code == 0
    return joined.member_id


async def leave_classic(connection: Connection, group_id: str, member_id: str) -> None:
    answer = await connection.ask(
        LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=member_id)]),
        deadline=soon(),
    )
    assert answer.error_code == 0
