# SPDX-License-Identifier: Apache-2.0
"""Elections: partitions get their preferred leader back, or any at all (KIP-183, KIP-460)."""

from collections.abc import Iterable, Sequence
from functools import partial

from kohort.client.admin.broker_views import ElectionType
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.single_requests import settle_one
from kohort.client.admin.topics import controller, left_ms
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)

ELECTION_TYPES: dict[ElectionType, int] = {"preferred": 0, "unclean": 1}
ANY_REPLICA = Need(1, "an unclean election", "KIP-460, Apache Kafka 2.4")

Elections = dict[TopicPartition, ApiError | None]


async def elect_leaders(
    cluster: Cluster,
    election_type: ElectionType,
    partitions: Iterable[TopicPartition] | None,
    *,
    deadline: float,
) -> Outcomes[TopicPartition, None]:
    """See `AdminClient.elect_leaders`."""
    elect = partial(_elect, cluster, election_type)
    locate = controller(cluster)
    if partitions is not None:
        return Outcomes(
            await settle(cluster, partitions, locate, elect, deadline=deadline, repeatable=False)
        )

    async def elect_all(node: Node, deadline: float) -> Elections:
        return await elect(node, None, deadline)

    found = await settle_one(cluster, "", locate, elect_all, deadline=deadline, repeatable=False)
    return Outcomes(dict(sorted(found.items())))


async def _elect(
    cluster: Cluster,
    election_type: ElectionType,
    node: Node,
    partitions: Sequence[TopicPartition] | None,
    deadline: float,
) -> Elections:
    wanted = None
    if partitions is not None:
        wanted = [
            TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    request = ElectLeadersRequest(
        election_type=ELECTION_TYPES[election_type],
        topic_partitions=wanted,
        timeout_ms=left_ms(deadline),
    )
    answer: ElectLeadersResponse = await cluster.ask(
        node, request, deadline=deadline, need=ANY_REPLICA if election_type == "unclean" else None
    )
    if answer.error_code:
        raise explained(api_error(answer.error_code), cluster.principal, "", "Alter")
    return {
        TopicPartition(topic.topic, partition.partition_id): (
            api_error(partition.error_code, partition.error_message)
            if partition.error_code
            else None
        )
        for topic in answer.replica_election_results
        for partition in topic.partition_result
    }
