# SPDX-License-Identifier: Apache-2.0
"""One broker of the cluster, as its clients see it: a node id, and what it serves.

A process may hold several nodes. They share everything except which partitions and which groups
each of them serves. A node is seen through one of its listeners, which has addresses of its own.
"""

from collections.abc import Sequence

from kohort.config.listeners import listener_text
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client
from kohort.security.acls import AclOperation
from kohort.server.access import GROUP, everyone_may, refusal
from kohort.server.catalog import TRANSACTIONS_TOPIC
from kohort.server.cluster import Cluster
from kohort.server.coordinators.coordinator_partitions import Driver, TransactionDriver
from kohort.server.internal_topics import create_transactions_topic
from kohort.server.placement import Endpoint
from kohort.terms import GroupId, PartitionIndex
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kohort.wire.offered import offered_versions

_CLIENT_SIDE = (
    ConsumerGroupPrepareAssignmentRequest.api_key,  # type: ignore[attr-defined]
    ConsumerGroupInstallAssignmentRequest.api_key,  # type: ignore[attr-defined]
)


class Node:
    """A broker id, and the part of the cluster that it answers for."""

    def __init__(
        self,
        cluster: Cluster,
        node_id: int,
        endpoints: Sequence[Endpoint] = (),
        listeners: Sequence[str] = (),
        advertised: Sequence[str] = (),
    ) -> None:
        """`endpoints` are the addresses of all nodes, as those clients are told that ask this one;
        without them they are the cluster's. `listeners` and `advertised` are texts of all listeners
        of this node, as in the settings.
        """
        self.cluster = cluster
        self.id = node_id
        self.endpoints = {one.id: one for one in endpoints or cluster.placement.brokers}
        self.listeners = tuple(listeners) or cluster.config.listeners
        here = self.endpoints[node_id]
        self.advertised = tuple(advertised) or (listener_text(here.host, here.port),)
        self.served = offered_versions(cluster.config.api_versions_max)
        if not cluster.config.group_consumer_client_assignors_enable:
            for key in _CLIENT_SIDE:
                self.served.pop(key, None)

    def driver_for(self, client: Client, operation: AclOperation, group_id: GroupId) -> Driver:
        """The shard of a group, for somebody who wants something of it. Raises ApiError as
        `driver_of` does, and first of all when the client may not.
        """
        cluster = self.cluster
        may = cluster.may
        if may is not everyone_may and not may(client, operation, GROUP, group_id):
            raise refusal(GROUP, with_text=False)
        placement = cluster.placement
        if not placement.is_alone:
            return self.driver_of(group_id)
        driver = cluster.drivers.get(placement.shard_of(group_id))
        if driver is None:
            raise self._not_open(group_id)
        return driver

    def driver_of(self, group_id: GroupId) -> Driver:
        """The shard of a group. Raises ApiError where it is elsewhere or not open."""
        cluster = self.cluster
        placement = cluster.placement
        if not placement.is_alone and placement.coordinator_of(group_id) != self.id:
            raise ApiError(
                ErrorCode.NOT_COORDINATOR, f"this broker does not coordinate the group {group_id!r}"
            )
        driver = cluster.drivers.get(placement.shard_of(group_id))  # as below, by one call less
        if driver is None:
            raise self._not_open(group_id)
        return driver

    def driver_anywhere(self, group_id: GroupId) -> Driver:
        """The shard of a group, whichever node coordinates it: its settings may be asked of any.
        Raises ApiError where it is not open.
        """
        driver = self.cluster.drivers.get(self.cluster.placement.shard_of(group_id))
        if driver is None:
            raise self._not_open(group_id)
        return driver

    def _not_open(self, group_id: GroupId) -> ApiError:
        shard = self.cluster.placement.shard_of(group_id)
        return ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"the log of group {group_id!r} is partition {shard}, which is not open",
        )

    def transaction_coordinator_of(self, transactional_id: str) -> TransactionDriver:
        """The machine of a transactional id. Raises ApiError where it is elsewhere or not open."""
        cluster = self.cluster
        found = cluster.placement.transaction_coordinator_of(transactional_id)
        if found is None:
            create_transactions_topic(cluster, lambda _error: None)
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "the topic of transactions is being made"
            )
        index, coordinator = found
        if coordinator != self.id:
            raise ApiError(
                ErrorCode.NOT_COORDINATOR,
                f"this broker does not coordinate the transactional id {transactional_id!r}",
            )
        return self._transaction_coordinator(index, transactional_id)

    def transaction_coordinator_anywhere(self, transactional_id: str) -> TransactionDriver:
        """The machine of a transactional id, whichever node it belongs to: the nodes share a
        process. Raises ApiError where it is not open.
        """
        found = self.cluster.placement.transaction_coordinator_of(transactional_id)
        if found is None:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"no producer has the transactional id {transactional_id!r}",
            )
        return self._transaction_coordinator(found[0], transactional_id)

    def _transaction_coordinator(
        self, index: PartitionIndex, transactional_id: str
    ) -> TransactionDriver:
        """The machine of a partition of transactions. Raises ApiError while it is not open."""
        driver = self.cluster.transaction_coordinators.get(index)
        if driver is None:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"the log of transactional id {transactional_id!r} is partition {index}, "
                "which is not open",
            )
        return driver

    def transaction_coordinators(self) -> list[TransactionDriver]:
        """The machines of all transactions that this node coordinates."""
        cluster = self.cluster
        topic = cluster.catalog.by_name.get(TRANSACTIONS_TOPIC)
        return [
            driver
            for index, driver in sorted(cluster.transaction_coordinators.items())
            if topic is not None and cluster.placement.leader(topic, index) == self.id
        ]

    def drivers(self) -> list[Driver]:
        """The shards of all groups that this node coordinates, as far as their logs are open."""
        cluster = self.cluster
        topic = cluster.offsets_topic()
        return [
            driver
            for index, driver in sorted(cluster.drivers.items())
            if cluster.placement.leader(topic, index) == self.id
        ]
