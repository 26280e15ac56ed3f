# SPDX-License-Identifier: Apache-2.0
"""The brokers of a cluster, and what is said of the cluster as a whole (KIP-700)."""

from kohort.client.admin.single_requests import anybody, settle_one
from kohort.client.admin.topic_views import NodeDescription, Nodes
from kohort.client.network.cluster import Cluster, Node, nodes_of
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import api_error
from kohort.security.acls import operations_in
from kohort.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kohort.wire.messages.metadata import MetadataResponse

FENCED = Need(2, "a look at fenced brokers", "KIP-1073, Apache Kafka 4.0")


async def describe_cluster(
    cluster: Cluster,
    *,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
    deadline: float,
) -> Nodes:
    """See `AdminClient.describe_cluster`."""
    metadata = await cluster.brokers_and(None, deadline)
    away = _away(metadata)
    if not (include_authorized_operations or include_fenced_brokers):
        return Nodes(
            (
                NodeDescription(node.id, node.host, node.port, node.rack)
                for _, node in sorted(nodes_of(metadata).items())
            ),
            away=away,
            cluster_id=metadata.cluster_id,
            controller_id=metadata.controller_id if metadata.controller_id >= 0 else None,
        )
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        include_fenced_brokers=include_fenced_brokers,
    )

    async def ask(node: Node, deadline: float) -> DescribeClusterResponse:
        answer: DescribeClusterResponse = await cluster.ask(
            node, request, deadline=deadline, need=FENCED if include_fenced_brokers else None
        )
        if answer.error_code:
            error = api_error(answer.error_code, answer.error_message)
            raise explained(error, cluster.principal, "", "Describe")
        return answer

    answer = await settle_one(cluster, "", anybody(cluster), ask, deadline=deadline)
    return Nodes(
        (
            NodeDescription(
                broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced
            )
            for broker in sorted(answer.brokers, key=lambda broker: broker.broker_id)
        ),
        away=away,
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id if answer.controller_id >= 0 else None,
        authorized_operations=operations_in(answer.cluster_authorized_operations),
    )


def _away(metadata: MetadataResponse) -> tuple[int, ...]:
    replicas = {
        replica
        for topic in metadata.topics
        for partition in topic.partitions
        for replica in partition.replica_nodes
    }
    return tuple(sorted(replicas - nodes_of(metadata).keys()))
