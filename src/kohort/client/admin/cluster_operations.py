# SPDX-License-Identifier: Apache-2.0
"""The calls of AdminClient about brokers, topics by id, records and leaders."""

from collections.abc import Iterable, Mapping, Sequence

from kohort.client.admin import hints
from kohort.client.admin.answers import OutcomeAnswers
from kohort.client.admin.arguments import INT32_MAX
from kohort.client.admin.calls import AdminCalls
from kohort.client.topic_partitions import ByPartition, Partition
from kohort.terms import TopicPartition


class ClusterOperations(AdminCalls):
    """What a cluster is made of: its brokers, disks, features and leaders."""

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> "hints.Nodes":
        """The brokers that the cluster has now, sorted by id, with its id and its controller. Its
        `away` are the ids of those that should have replicas of a topic, and are not among them.

        Args:
            include_authorized_operations: also what this client may do with the cluster (KIP-430);
                needs DescribeCluster v0.
            include_fenced_brokers: also brokers that are registered and have no part in it
                (KIP-1073); needs DescribeCluster v2.
            timeout: seconds that this call may take, instead of those of the client.

        Raises:
            UnsupportedVersionError: the broker is too old for what is included.
        """
        from kohort.client.admin import cluster_description

        return await cluster_description.describe_cluster(
            self._cluster,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
            deadline=self._deadline(timeout),
        )

    async def wait_for_broker(self, *, timeout: float | None = None) -> None:
        """Wait until any broker answers: all may be starting. Other calls fail at once where every
        address refuses the connection. A warning in the log says what is waited for.

        Args:
            timeout: seconds that this call may take, instead of those of the client.

        Raises:
            ConnectionFailedError, RequestTimeoutError: no broker answers in time.
            AuthenticationError: a broker answers, and refuses this client.
        """
        await self._cluster.reach(self._deadline(timeout))

    async def describe_topics_by_id(
        self, ids: "hints.Id | Iterable[hints.Id]", *, timeout: float | None = None
    ) -> "hints.Outcomes[hints.Id, hints.TopicDescription]":
        """Topics by their ids (KIP-516): 16 bytes, or the text that Kafka's tools show.

        Raises UnsupportedVersionError below Metadata v12.
        """
        from kohort.client.admin import operation_arguments, topics_by_id

        return await topics_by_id.describe_topics_by_id(
            self._cluster, operation_arguments.topic_ids(ids), deadline=self._deadline(timeout)
        )

    async def delete_topics_by_id(
        self, ids: "hints.Id | Iterable[hints.Id]", *, timeout: float | None = None
    ) -> "hints.Outcomes[hints.Id, None]":
        """Delete topics with all their records, by id (KIP-516): never another topic that got
        the same name later.

        No request is sent twice. A broker below DeleteTopics v6 is sent none at all.
        """
        from kohort.client.admin import operation_arguments, topics_by_id

        return await topics_by_id.delete_topics_by_id(
            self._cluster, operation_arguments.topic_ids(ids), deadline=self._deadline(timeout)
        )

    def delete_records(
        self, before: ByPartition[int | str], *, timeout: float | None = None
    ) -> OutcomeAnswers[TopicPartition, int]:
        """Delete records from the start of partitions (KIP-107): one request to each leader.

        Args:
            before: (topic, index) -> the first offset that stays, or "latest" to delete all that
                consumers can see now.
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            The offset at which each partition begins now; OFFSET_OUT_OF_RANGE where the offset is
            behind the end, POLICY_VIOLATION for a topic that is only compacted.
        """
        from kohort.client.admin import operation_arguments, records

        offsets = operation_arguments.before_offsets(before)
        return self._answers(
            timeout,
            lambda deadline, arrived: records.delete_records(
                self._cluster, offsets, deadline=deadline, arrived=arrived
            ),
        )

    async def elect_leaders(
        self,
        election_type: "hints.ElectionType" = "preferred",
        partitions: Iterable[Partition] | None = None,
        *,
        timeout: float | None = None,
    ) -> "hints.Outcomes[TopicPartition, None]":
        """Have leaders elected: the preferred one (KIP-183), or with "unclean" a replica that may
        lack records, where no other is left (KIP-460).

        Args:
            election_type: "preferred" or "unclean"; the latter needs ElectLeaders v1.
            partitions: pairs of (topic, index). None means all that need an election, and the
                result then has these alone.
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            None for each that has a new leader, ELECTION_NOT_NEEDED where it stays.
        """
        from kohort.client.admin import elections, operation_arguments

        return await elections.elect_leaders(
            self._cluster,
            operation_arguments.election_type(election_type),
            operation_arguments.partitions_or_all(partitions),
            deadline=self._deadline(timeout),
        )

    async def alter_partition_reassignments(
        self,
        replicas: ByPartition[Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> "hints.Outcomes[TopicPartition, None]":
        """Give partitions other replicas (KIP-455). The cluster then copies what they have;
        `list_partition_reassignments` says which are still on their way.

        No request is sent twice.

        Args:
            replicas: (topic, index) -> the ids of the brokers, the preferred leader first. None
                ends a reassignment that is under way: the partition stays where it was.
            allow_replication_factor_change: with False other numbers of replicas than now are
                refused; needs AlterPartitionReassignments v1 (KIP-860).
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            NO_REASSIGNMENT_IN_PROGRESS where there is none to end, INVALID_REPLICA_ASSIGNMENT for
            brokers that the cluster does not have.
        """
        from kohort.client.admin import operation_arguments, reassignments

        return await reassignments.alter_partition_reassignments(
            self._cluster,
            operation_arguments.replicas(replicas),
            allow_replication_factor_change=allow_replication_factor_change,
            deadline=self._deadline(timeout),
        )

    async def list_partition_reassignments(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> "dict[TopicPartition, hints.PartitionReassignment]":
        """The partitions that are about to get other replicas (KIP-455), sorted: of these, or with
        None of all. One that is not on its way, or does not exist, is not in the result.
        """
        from kohort.client.admin import operation_arguments, reassignments

        return await reassignments.list_partition_reassignments(
            self._cluster,
            operation_arguments.partitions_or_all(partitions),
            deadline=self._deadline(timeout),
        )

    def describe_log_dirs(
        self,
        broker_ids: int | Iterable[int] | None = None,
        *,
        partitions: Iterable[Partition] | None = None,
        timeout: float | None = None,
    ) -> "OutcomeAnswers[int, dict[str, hints.LogDirDescription]]":
        """Log directories of brokers, by broker id and path, and the sizes of the partitions in
        them (KIP-113).

        Args:
            broker_ids: one or several; None for all that the cluster has now.
            partitions: only these as pairs of (topic, index); None for all.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import log_dirs, operation_arguments

        ids = None
        if broker_ids is not None:
            ids = operation_arguments.numbers("broker_ids", broker_ids, INT32_MAX)
        places = operation_arguments.partitions_or_all(partitions)
        return self._answers(
            timeout,
            lambda deadline, arrived: log_dirs.describe_log_dirs(
                self._cluster, ids, places, deadline=deadline, arrived=arrived
            ),
        )

    async def describe_features(
        self, *, broker_id: int | None = None, timeout: float | None = None
    ) -> "hints.FeatureMetadata":
        """The features of the cluster, and those that a broker supports (KIP-584): `broker_id`, or
        any with None. Raises UnsupportedVersionError below ApiVersions v3.
        """
        from kohort.client.admin import features, operation_arguments

        return await features.describe_features(
            self._cluster, operation_arguments.broker(broker_id), deadline=self._deadline(timeout)
        )

    async def update_features(
        self,
        updates: "Mapping[str, hints.FeatureUpdate]",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, None]":
        """Change the levels of features (KIP-584): all of them, or none.

        Args:
            updates: name -> FeatureUpdate. A level that falls needs "safe_downgrade", or
                "unsafe_downgrade" where metadata may be lost (KIP-778).
            validate_only: only check whether it could be done; needs UpdateFeatures v1, as a
                downgrade does.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import features, operation_arguments

        return await features.update_features(
            self._cluster,
            operation_arguments.feature_updates(updates),
            validate_only=validate_only,
            deadline=self._deadline(timeout),
        )
