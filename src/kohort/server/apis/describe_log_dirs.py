"""DescribeLogDirs: how large the partitions of this node are (KIP-113). There is one directory."""

from kohort.coordinator.effects import Call
from kohort.server.access import CLUSTER, CLUSTER_NAME, DESCRIBE, check
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def describe_log_dirs(
    node: Node, call: Call[DescribeLogDirsRequest], _now: Millis
) -> DescribeLogDirsResponse:
    """Partitions that do not exist, or are not open, are left out. How large the volume is, is not
    told: -1 says so.
    """
    cluster = node.cluster
    check(cluster.may, call.client, DESCRIBE, CLUSTER, CLUSTER_NAME)
    wanted: dict[str, list[int]] = {}
    if call.request.topics is None:
        for topic in cluster.catalog.by_name.values():
            wanted[topic.name] = list(range(topic.partitions))
    else:
        for asked in call.request.topics:
            wanted.setdefault(asked.topic, []).extend(asked.partitions)
    topics = []
    for name, indexes in wanted.items():
        known = cluster.catalog.by_name.get(name)
        partitions = [] if known is None else _sizes(node, known, indexes)
        if partitions:
            topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
    result = DescribeLogDirsResult(log_dir=cluster.logs.place, topics=topics)
    return DescribeLogDirsResponse(results=[result])


def _sizes(node: Node, topic: Topic, indexes: list[int]) -> list[DescribeLogDirsPartition]:
    found = []
    for index in dict.fromkeys(indexes):
        if not 0 <= index < topic.partitions:
            continue
        partition = node.cluster.partition(topic.name, index)
        if partition is not None and node.id in node.cluster.placement.replicas(topic, index):
            found.append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=partition.log.size_bytes,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
    return found
