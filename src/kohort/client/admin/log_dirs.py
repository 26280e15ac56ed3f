# SPDX-License-Identifier: Apache-2.0
"""Log directories: which partitions a broker stores where, and how large they are (KIP-113)."""

from collections.abc import Iterable, Sequence

from kohort.client.admin.answers import Arrived
from kohort.client.admin.broker_views import LogDirDescription, LogDirReplica
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.single_requests import broker_by_id
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

_ROUNDS = 5  # how often brokers may come between a question and the look behind it
WITH_ERROR, WITH_CORDON = 3, 5  # versions of DescribeLogDirs

LogDirs = dict[str, LogDirDescription]


async def describe_log_dirs(
    cluster: Cluster,
    broker_ids: Iterable[int] | None,
    partitions: Iterable[TopicPartition] | None,
    *,
    deadline: float,
    arrived: Arrived[int, LogDirs] | None = None,
) -> Outcomes[int, LogDirs]:
    """See `AdminClient.describe_log_dirs`."""
    topics = None
    if partitions is not None:
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]

    async def ask(node: Node, ids: Sequence[int], deadline: float) -> dict[int, LogDirs | ApiError]:
        connection = await cluster.connection(node.address, deadline)
        answer: DescribeLogDirsResponse = await connection.ask(
            DescribeLogDirsRequest(topics=topics), deadline=deadline
        )
        version = connection.version(DescribeLogDirsRequest)
        code = answer.error_code
        if version < WITH_ERROR and not answer.results:  # how these say that the right lacks
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if code:
            return dict.fromkeys(ids, explained(api_error(code), cluster.principal, "", "Describe"))
        (broker_id,) = ids  # that of this node
        return {
            broker_id: {result.log_dir: _description(result, version) for result in answer.results}
        }

    locate = broker_by_id(cluster, lambda broker_id: broker_id)
    outcomes: dict[int, LogDirs | ApiError] = {}
    wanted = sorted(await cluster.nodes(deadline)) if broker_ids is None else broker_ids
    for _ in range(_ROUNDS):
        outcomes |= await settle(cluster, wanted, locate, ask, deadline=deadline, arrived=arrived)
        if broker_ids is not None:
            break
        try:
            there = await cluster.nodes(deadline)
        except ApiError:
            break  # as where a silent broker has used up the time: what has come counts
        wanted = sorted(there.keys() - outcomes.keys())
        if not wanted:
            break
    return Outcomes(outcomes)


def _description(result: DescribeLogDirsResult, version: int) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, partition.partition_index): LogDirReplica(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in result.topics
        for partition in topic.partitions
    }
    return LogDirDescription(
        result.log_dir,
        dict(sorted(replicas.items())),
        result.total_bytes if result.total_bytes >= 0 else None,
        result.usable_bytes if result.usable_bytes >= 0 else None,
        result.is_cordoned if version >= WITH_CORDON else None,
        api_error(result.error_code) if result.error_code else None,
    )
