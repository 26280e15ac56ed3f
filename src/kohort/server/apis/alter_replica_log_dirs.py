# SPDX-License-Identifier: Apache-2.0
"""AlterReplicaLogDirs: a node has one data directory, so its partitions are there already
(KIP-113).
"""

from kohort.errors import ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import ALTER, CLUSTER, CLUSTER_NAME, check
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def alter_replica_log_dirs(
    node: Node, call: Call[AlterReplicaLogDirsRequest], _now: Millis
) -> AlterReplicaLogDirsResponse:
    """The directory of this node is a success without work; there is no other one. Of a partition
    that is named for several directories the last one counts, and is answered, as upstream does.
    """
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    wanted: dict[str, dict[int, str]] = {}
    for directory in call.request.dirs:
        for topic in directory.topics:
            wanted.setdefault(topic.name, {}).update(
                dict.fromkeys(topic.partitions, directory.path)
            )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=_code(node, name, index, path)
                    )
                    for index, path in paths.items()
                ],
            )
            for name, paths in wanted.items()
        ]
    )


def _code(node: Node, name: str, index: int, path: str) -> ErrorCode:
    """The directory is looked at first, as upstream does."""
    cluster = node.cluster
    if path != cluster.logs.place:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = cluster.catalog.by_name.get(name)
    if topic is None or not 0 <= index < topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if node.id not in cluster.placement.replicas(topic, index):
        return ErrorCode.REPLICA_NOT_AVAILABLE
    partition = cluster.partition(name, index)
    if partition is None or partition.failed:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
