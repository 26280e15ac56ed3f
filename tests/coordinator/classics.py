# SPDX-License-Identifier: Apache-2.0
"""Requests of classic members, short enough for tests to be read."""

from typing import Any

from tests.coordinator.desk import Asked, Desk

from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SUBSCRIBED = encode(ConsumerProtocolSubscription(topics=["orders"], owned_partitions=[]))
QUICK = {"group_initial_rebalance_delay_ms": 0}


def join_request(member_id: str = "", group_id: str = "g", **fields: Any) -> JoinGroupRequest:
    protocols = fields.pop("protocols", {"range": SUBSCRIBED})
    return JoinGroupRequest(
        **{
            "group_id": group_id,
            "member_id": member_id,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols.items()
            ],
            **fields,
        }
    )


def join(desk: Desk, member_id: str = "", version: int = 9, **fields: Any) -> Asked:
    return desk.ask(join_request(member_id, **fields), version)


def newcomer(desk: Desk, **fields: Any) -> tuple[str, Asked]:
    """A member that asks for its id and joins with it (KIP-394)."""
    member_id = join(desk, **fields).answer.member_id
    return member_id, join(desk, member_id, **fields)


def sync_request(
    member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    return SyncGroupRequest(
        **{
            "group_id": "g",
            "member_id": member_id,
            "generation_id": generation,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                SyncGroupRequestAssignment(member_id=one, assignment=assignment)
                for one, assignment in (assignments or {}).items()
            ],
            **fields,
        }
    )


def sync(
    desk: Desk,
    member_id: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    **fields: Any,
) -> Asked:
    return desk.ask(sync_request(member_id, generation, assignments, **fields), 5)


def stable(desk: Desk, size: int = 1, **fields: Any) -> list[str]:
    """A group at rest, the leader first; each member is assigned its own id."""
    members = [newcomer(desk, **fields)[0]]
    while len(members) < size:
        members.append(newcomer(desk, **fields)[0])
        for member_id in members[:-1]:
            join(desk, member_id, **fields)
    group = desk.shard.groups.classic("g")
    sync(desk, group.leader, group.generation, {one: one.encode() for one in members})
    for member_id in members[1:]:
        assert sync(desk, member_id, group.generation).answer.error_code == 0
    return members


def heartbeat(desk: Desk, member_id: str, generation: int, **fields: Any) -> int:
    request = HeartbeatRequest(
        **{"group_id": "g", "member_id": member_id, "generation_id": generation, **fields}
    )
    code: int = desk.told(request, 4).error_code
    return code


def leave(desk: Desk, *members: str | tuple[str, str], version: int = 5) -> Any:
    identities = [
        MemberIdentity(member_id=one)
        if isinstance(one, str)
        else MemberIdentity(member_id=one[0], group_instance_id=one[1])
        for one in members
    ]
    return desk.told(LeaveGroupRequest(group_id="g", members=identities), version)


def commit_request(offsets: dict[tuple[str, int], int], **fields: Any) -> OffsetCommitRequest:
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    metadata = fields.pop("metadata", "")
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(
        **{
            "group_id": "g",
            "member_id": "",
            "topics": [
                OffsetCommitRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in by_topic.items()
            ],
            **fields,
        }
    )


def commit(
    desk: Desk, offsets: dict[tuple[str, int], int], version: int = 9, **fields: Any
) -> dict[tuple[str, int], int]:
    """The error code of each partition."""
    answer = desk.told(commit_request(offsets, **fields), version)
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }
