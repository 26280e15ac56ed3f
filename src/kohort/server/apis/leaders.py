# SPDX-License-Identifier: Apache-2.0
"""From what a request names to the partition that this node leads."""

from typing import NamedTuple

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client
from kohort.security.acls import AclOperation
from kohort.server.access import TOPIC, refusal
from kohort.server.catalog import Topic
from kohort.server.coordinators.coordinator_partitions import MACHINE_FACTORIES
from kohort.server.node import Node
from kohort.server.partitions.partition import Partition
from kohort.server.placement import NOBODY, Endpoint
from kohort.terms import NO_TOPIC_ID, TopicId

NOT_SAID = -1  # as a leader epoch


def topic_named(
    node: Node,
    client: Client,
    operation: AclOperation,
    name: str,
    topic_id: TopicId = NO_TOPIC_ID,
    *,
    by_id: bool = False,
    is_broker: bool = False,
) -> Topic | ApiError:
    """The topic, or the error that each of its partitions gets. One that `is_broker` may do what
    brokers do, so it is asked for no right to the topic.
    """
    cluster = node.cluster
    if by_id:
        topic = cluster.catalog.by_id.get(topic_id)
        if topic is None:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = topic.name
    else:
        topic = cluster.catalog.by_name.get(name)
    if not is_broker and not cluster.may(client, operation, TOPIC, name):
        return refusal(TOPIC, with_text=False)
    return topic or ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def led_partition(node: Node, topic: Topic | ApiError, index: int) -> Partition:
    """The partition, if this node leads it. Raises ApiError."""
    if isinstance(topic, ApiError):
        raise ApiError(topic.code, topic.message)  # each error has frames of its own
    cluster = node.cluster
    partition = cluster.partition(topic.name, index)
    if partition is None:
        raise _without_partition(node, topic, index)
    if not cluster.placement.is_alone:
        leader = cluster.placement.leader(topic, index)
        if leader != node.id:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{partition} is led by node {leader}, not by {node.id}",
            )
    return partition


def _without_partition(node: Node, topic: Topic, index: int) -> ApiError:
    if not 0 <= index < topic.partitions:
        return ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic.name} has {topic.partitions} partitions, {index} was asked for",
        )
    reason = node.cluster.table.why_closed(topic.name, index)
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic.name}-{index} is not open: {reason}")


def check_leader_epoch(partition: Partition, current: int) -> None:
    """Raises ApiError where the client knows another leader epoch than this one (KIP-320)."""
    if current in (NOT_SAID, partition.leader_epoch):
        return
    code = (
        ErrorCode.UNKNOWN_LEADER_EPOCH
        if current > partition.leader_epoch
        else ErrorCode.FENCED_LEADER_EPOCH
    )
    raise ApiError(
        code, f"{partition} is at leader epoch {partition.leader_epoch}, request says {current}"
    )


class PartitionState(NamedTuple):
    """What clients are told about a partition."""

    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    offline: list[int]


def state_of(node: Node, topic: Topic, index: int) -> PartitionState:
    """The state of a partition. It has no leader while its log is not open, or while its nodes are
    away and nobody stands in for them; those that were in sync last are then told as such. Where a
    coordinator has failed on its log, the leader is offline: its records are there to be read, and
    our clients know that what it coordinates is in no listing.
    """
    cluster = node.cluster
    placement = cluster.placement
    replicas = placement.replicas(topic, index)
    offline = [replica for replica in replicas if not placement.serves(replica)]
    in_sync = [replica for replica in replicas if replica not in offline] if offline else replicas
    nodes = replicas, in_sync or replicas, offline
    partition = cluster.partition(topic.name, index)
    if partition is None:
        cluster.table.why_closed(topic.name, index)
        return PartitionState(ErrorCode.LEADER_NOT_AVAILABLE, NOBODY, -1, *nodes)
    leader = placement.leader(topic, index)
    if topic.name in MACHINE_FACTORIES and cluster.has_failed(topic.name, index):
        nodes = replicas, in_sync or replicas, sorted({*offline, leader} - {NOBODY})
    code = ErrorCode.LEADER_NOT_AVAILABLE if leader == NOBODY else ErrorCode.NONE
    return PartitionState(code, leader, partition.leader_epoch, *nodes)


def leader_epoch(node: Node, topic: str, index: int) -> int:
    """The leader epoch of a partition, whichever node leads it."""
    partition = node.cluster.partition(topic, index)
    return 0 if partition is None else partition.leader_epoch


def whereabouts(node: Node, topic: Topic, index: int) -> tuple[Endpoint | None, int]:
    """The node that leads a partition, if one does, and its leader epoch (KIP-951)."""
    placement = node.cluster.placement
    leader = placement.leader(topic, index)
    where = None if leader == NOBODY else node.endpoints[leader]
    return where, leader_epoch(node, topic.name, index)
