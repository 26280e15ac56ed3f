"""The calls of AdminClient about brokers, topics by id, records and leaders."""

from collections.abc import Iterable

from kohort.client.admin import (
    cluster_description,
    operation_arguments,
    topics_by_id,
)
from kohort.client.admin.calls import AdminCalls
from kohort.client.admin.topics_by_id import Id
from kohort.client.admin.views import Nodes, Outcomes, TopicDescription


class ClusterOperations(AdminCalls):
    """What a cluster is made of: its brokers, disks, features and leaders."""

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
    ) -> Nodes:
        """The brokers that the cluster has now, sorted by id, with its id and its controller. Its
        `away` are the ids of those that should have replicas of a topic, and are not among them.

        Args:
            include_authorized_operations: also what this client may do with the cluster (KIP-430);
                needs DescribeCluster v0.
            include_fenced_brokers: also brokers that are registered and have no part in it
                (KIP-1073); needs DescribeCluster v2.

        Raises:
            UnsupportedVersionError: the broker is too old for what is included.
        """
        return await cluster_description.describe_cluster(
            self._cluster,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
            deadline=self._deadline(),
        )

    async def describe_topics_by_id(self, ids: Id | Iterable[Id]) -> Outcomes[Id, TopicDescription]:
        """Topics by their ids (KIP-516): 16 bytes, or the text that Kafka's tools show.

        Raises UnsupportedVersionError below Metadata v12.
        """
        return await topics_by_id.describe_topics_by_id(
            self._cluster, operation_arguments.topic_ids(ids), deadline=self._deadline()
        )

    async def delete_topics_by_id(self, ids: Id | Iterable[Id]) -> Outcomes[Id, None]:
        """Delete topics with all their records, by id (KIP-516): none that has a name anew.

        No request is sent twice. A broker below DeleteTopics v6 is sent none at all.
        """
        return await topics_by_id.delete_topics_by_id(
            self._cluster, operation_arguments.topic_ids(ids), deadline=self._deadline()
        )
