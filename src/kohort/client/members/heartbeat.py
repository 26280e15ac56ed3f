# SPDX-License-Identifier: Apache-2.0
"""What a member of the KIP-848 protocol says in a ConsumerGroupHeartbeat (version 1).

A field that is left out means "as before". So a heartbeat names only what the coordinator does not
know for sure. After a join, an error or a lost answer it knows nothing for sure: then the heartbeat
is full, and the coordinator answers a full one with the whole assignment.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kohort.client.members.events import TopicIdPartition, in_order
from kohort.terms import GroupId, MemberId, PartitionIndex, TopicId
from kohort.wire.messages.consumer_group_heartbeat import (
    ClientAssignor,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN, LEAVE = 0, -1  # epochs of a member that is not in the group
LEAVE_FOR_A_WHILE = -2  # a static member that will be back


class Offer(NamedTuple):
    """An assignor that the member can run itself (see `docs/client-assignors.md`).

    It reads metadata of the versions `minimum_version` to `maximum_version`, and tells its own.
    Another `reason` asks for another assignment.
    """

    name: str
    minimum_version: int = 0
    maximum_version: int = 0
    reason: int = 0
    metadata_version: int = 0
    metadata: bytes = b""


class MemberConfig(NamedTuple):
    """What a member wants: topics by name, by a regular expression, or both.

    `rebalance_timeout_ms` is the time it has for giving a partition up. `server_assignor` is its
    vote for the assignor. The rack and the vote cannot be taken back, only changed. `offers` are
    its own assignors, the preferred one first; None for a member that never has any.
    """

    names: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = 300_000
    server_assignor: str | None = None
    rack: str | None = None
    offers: tuple[Offer, ...] | None = None


class MemberIds(NamedTuple):
    """Who speaks. Every heartbeat of a static member has its instance id (KIP-345)."""

    group_id: GroupId
    member_id: MemberId
    instance_id: str | None


class HeartbeatFields(NamedTuple):
    """All that a member can say about itself in one heartbeat. `owned` is ascending."""

    config: MemberConfig
    owned: tuple[TopicIdPartition, ...]


def request_of(
    name: MemberIds, epoch: int, tell: HeartbeatFields, known: HeartbeatFields | None
) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat that tells what the coordinator does not know; `known` is None for nothing.

    An empty expression is told in full heartbeats too: it takes back one that was told before.
    """
    wants, knew = tell.config, None if known is None else known.config
    owned = None if known is not None and known.owned == tell.owned else _by_topic(tell.owned)
    if knew is None:
        return ConsumerGroupHeartbeatRequest(
            **name._asdict(),
            member_epoch=epoch,
            rack_id=wants.rack,
            rebalance_timeout_ms=wants.rebalance_timeout_ms,
            subscribed_topic_names=list(wants.names),
            subscribed_topic_regex=wants.regex,
            server_assignor=wants.server_assignor,
            topic_partitions=owned,
            client_assignors=_on_the_wire(wants.offers),
        )
    timeout_ms = wants.rebalance_timeout_ms
    return ConsumerGroupHeartbeatRequest(
        **name._asdict(),
        member_epoch=epoch,
        rack_id=None if wants.rack == knew.rack else wants.rack,
        rebalance_timeout_ms=-1 if timeout_ms == knew.rebalance_timeout_ms else timeout_ms,
        subscribed_topic_names=None if wants.names == knew.names else list(wants.names),
        subscribed_topic_regex=None if wants.regex == knew.regex else wants.regex,
        server_assignor=(
            None if wants.server_assignor == knew.server_assignor else wants.server_assignor
        ),
        topic_partitions=owned,
        client_assignors=None if wants.offers == knew.offers else _on_the_wire(wants.offers),
    )


def farewell(name: MemberIds, *, for_good: bool) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat of a member that leaves. Nothing but its ids counts."""
    return ConsumerGroupHeartbeatRequest(
        **name._asdict(), member_epoch=LEAVE if for_good else LEAVE_FOR_A_WHILE
    )


def assignment_in(answer: ConsumerGroupHeartbeatResponse) -> frozenset[TopicIdPartition] | None:
    """The whole assignment that an answer carries, None for "as before".

    Numbers below zero name no partition; they are passed over, and so is what is named twice.
    """
    if answer.assignment is None:
        return None
    return frozenset(
        TopicIdPartition(TopicId(topic.topic_id), PartitionIndex(index))
        for topic in answer.assignment.topic_partitions
        for index in topic.partitions
        if index >= 0
    )


def _on_the_wire(offers: tuple[Offer, ...] | None) -> list[ClientAssignor] | None:
    if offers is None:
        return None
    return [
        ClientAssignor(
            name=offer.name,
            minimum_version=offer.minimum_version,
            maximum_version=offer.maximum_version,
            reason=offer.reason,
            metadata_version=offer.metadata_version,
            metadata_bytes=offer.metadata,
        )
        for offer in offers
    ]


def _by_topic(partitions: Iterable[TopicIdPartition]) -> list[TopicPartitions]:
    topics: dict[TopicId, list[int]] = {}
    for partition in in_order(partitions):
        topics.setdefault(partition.topic_id, []).append(partition.partition)
    return [
        TopicPartitions(topic_id=topic, partitions=indexes) for topic, indexes in topics.items()
    ]
