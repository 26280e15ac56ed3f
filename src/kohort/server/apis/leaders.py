"""From what a request names to the partition that this node leads."""

from typing import TYPE_CHECKING

from kohort.errors import ApiError, ErrorCode
from kohort.server.catalog import Topic
from kohort.server.partitions import Partition
from kohort.terms import NO_TOPIC_ID, TopicId

if TYPE_CHECKING:
    from kohort.server.node import Node

_NOT_SAID = -1


def topic_named(
    node: "Node", name: str, topic_id: TopicId = NO_TOPIC_ID, *, by_id: bool = False
) -> Topic | ApiError:
    """The topic, or why there is none: an answer for each of its partitions."""
    if by_id:
        topic = node.cluster.catalog.by_id.get(topic_id)
        return topic or ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    topic = node.cluster.catalog.by_name.get(name)
    return topic or ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def led_partition(node: "Node", topic: Topic | ApiError, index: int) -> Partition:
    """The partition, if this node leads it. Raises ApiError."""
    if isinstance(topic, ApiError):
        raise topic
    cluster = node.cluster
    partition = cluster.partition(topic.name, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic.name} has {topic.partitions} partitions, {index} was asked for",
        )
    if len(cluster.node_ids) > 1 and cluster.leader(topic, index) != node.id:
        raise ApiError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{partition} is led by node {cluster.leader(topic, index)}, not by {node.id}",
        )
    return partition


def check_leader_epoch(partition: Partition, current: int) -> None:
    """Raises ApiError for a client that knows of another leader than this one (KIP-320)."""
    if current in (_NOT_SAID, partition.leader_epoch):
        return
    code = (
        ErrorCode.UNKNOWN_LEADER_EPOCH
        if current > partition.leader_epoch
        else ErrorCode.FENCED_LEADER_EPOCH
    )
    raise ApiError(
        code, f"{partition} is at leader epoch {partition.leader_epoch}, request says {current}"
    )


def leader_epoch(node: "Node", topic: str, index: int) -> int:
    """The leader epoch of a partition, whichever node leads it."""
    partition = node.cluster.partition(topic, index)
    return 0 if partition is None else partition.leader_epoch
