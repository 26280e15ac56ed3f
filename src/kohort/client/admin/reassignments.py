# SPDX-License-Identifier: Apache-2.0
"""Partitions get other replicas (KIP-455). The controller is asked, and moves them by itself."""

from collections.abc import Iterable, Mapping, Sequence

from kohort.client.admin.broker_views import PartitionReassignment
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.single_requests import settle_one
from kohort.client.admin.topics import controller, left_ms
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kohort.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

SAME_NUMBER = Need(1, "allow_replication_factor_change=False", "KIP-860, Apache Kafka 4.1")

Reassignments = dict[TopicPartition, PartitionReassignment]


async def alter_partition_reassignments(
    cluster: Cluster,
    replicas: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool,
    deadline: float,
) -> Outcomes[TopicPartition, None]:
    """See `AdminClient.alter_partition_reassignments`."""

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, ApiError | None]:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=left_ms(deadline),
            allow_replication_factor_change=allow_replication_factor_change,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=index,
                            replicas=_list(replicas[TopicPartition(topic, index)]),
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(keys).items()
            ],
        )
        answer: AlterPartitionReassignmentsResponse = await cluster.ask(
            node,
            request,
            deadline=deadline,
            need=None if allow_replication_factor_change else SAME_NUMBER,
        )
        if answer.error_code:
            error = api_error(answer.error_code, answer.error_message)
            raise explained(error, cluster.principal, "", "Alter")
        return {
            TopicPartition(topic.name, partition.partition_index): (
                api_error(partition.error_code, partition.error_message)
                if partition.error_code
                else None
            )
            for topic in answer.responses
            for partition in topic.partitions
        }

    return Outcomes(
        await settle(
            cluster, replicas, controller(cluster), ask, deadline=deadline, repeatable=False
        )
    )


def _list(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


async def list_partition_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, *, deadline: float
) -> Reassignments:
    """See `AdminClient.list_partition_reassignments`."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]

    async def ask(node: Node, deadline: float) -> Reassignments:
        request = ListPartitionReassignmentsRequest(timeout_ms=left_ms(deadline), topics=topics)
        answer: ListPartitionReassignmentsResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        if answer.error_code:
            error = api_error(answer.error_code, answer.error_message)
            raise explained(error, cluster.principal, "", "Describe")
        return {
            TopicPartition(topic.name, partition.partition_index): PartitionReassignment(
                tuple(partition.replicas),
                tuple(partition.adding_replicas),
                tuple(partition.removing_replicas),
            )
            for topic in answer.topics
            for partition in topic.partitions
        }

    found = await settle_one(cluster, "", controller(cluster), ask, deadline=deadline)
    return dict(sorted(found.items()))
