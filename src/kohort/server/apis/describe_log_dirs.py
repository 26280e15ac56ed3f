# SPDX-License-Identifier: Apache-2.0
"""DescribeLogDirs: how large the partitions of this node are (KIP-113). There is one directory."""

from collections.abc import Iterable

from kohort.machines.effects import Call
from kohort.server.access import CLUSTER, CLUSTER_NAME, DESCRIBE, check
from kohort.server.node import Node
from kohort.server.requests.steps import StepBudget, Steps
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
) -> Steps[DescribeLogDirsResponse]:
    """Partitions that do not exist, or are not open, are left out. How large the volume is, is not
    told: -1 says so.
    """
    cluster = node.cluster
    check(cluster.may, call.client, DESCRIBE, CLUSTER, CLUSTER_NAME)
    wanted: dict[str, Iterable[int]] = {}
    step_budget = StepBudget()
    if call.request.topics is None:
        for topic in cluster.catalog.by_name.values():
            wanted[topic.name] = range(topic.partitions)
    else:
        different: dict[str, dict[int, None]] = {}
        for asked in call.request.topics:
            different.setdefault(asked.topic, {}).update(dict.fromkeys(asked.partitions))
            if step_budget.is_over(1 + len(asked.partitions)):
                yield
        wanted |= different
    topics = []
    for name, indexes in wanted.items():
        partitions = []
        for index in indexes:
            found = _size(node, name, index)
            if found is not None:
                partitions.append(found)
            if step_budget.is_over():
                yield
        if partitions:
            topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
    result = DescribeLogDirsResult(log_dir=cluster.logs.place, topics=topics)
    return DescribeLogDirsResponse(results=[result])


def _size(node: Node, name: str, index: int) -> DescribeLogDirsPartition | None:
    """What is said of a partition; None where it does not exist, or is not open."""
    topic = node.cluster.catalog.by_name.get(name)
    if topic is None or not 0 <= index < topic.partitions:
        return None
    partition = node.cluster.partition(name, index)
    if partition is None or node.id not in node.cluster.placement.replicas(topic, index):
        return None
    return DescribeLogDirsPartition(
        partition_index=index,
        partition_size=partition.log.size_bytes,
        offset_lag=0,
        is_future_key=False,
    )
