# SPDX-License-Identifier: Apache-2.0
"""Where things are: the shard of a group, the node of a partition, the brokers told to clients.

Today the nodes of one process are all there is. Callers do not rely on that: the nodes that
coordinate groups and the brokers that Metadata shows may become different ones. A node may leave
and come back, and a partition may be given to another node: its log stays where it is. What a node
has led goes to others, or to nobody where only its replicas may take its place.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kohort.java import coordinator_partition
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Catalog, Topic
from kohort.terms import GroupId, PartitionIndex

NOBODY = -1  # leads a partition that has no leader
_SHORT = 100  # characters of an id that is remembered: a client could fill the memory with them
_REMEMBERED = 65_536  # ids


class Endpoint(NamedTuple):
    """A node and its address, as told to clients."""

    id: int
    host: str
    port: int
    rack: str | None = None


class Placement:
    """The map of one cluster. The topics are those of the catalog at the moment of the question."""

    def __init__(self, catalog: Catalog, brokers: Sequence[Endpoint] = ()) -> None:
        self._catalog = catalog
        self.brokers: tuple[Endpoint, ...] = tuple(brokers)  # those that serve
        self.node_ids: tuple[int, ...] = tuple(
            broker.id for broker in self.brokers
        )  # all that are known
        self.is_alone = len(self.node_ids) < 2  # whoever is asked coordinates everything
        self._by_id = {broker.id: broker for broker in self.brokers}
        self._has_racks = any(broker.rack is not None for broker in self.brokers)
        self._moved: dict[tuple[str, int], int] = {}  # partitions that were given to a node
        self._irreplaceable: set[int] = set()  # those that are away, and nobody stands in for them
        self._as_planned = True  # nobody is away and nothing was moved
        self._known: dict[tuple[str, int], PartitionIndex] = {}  # of ids, by how many there are

    @property
    def controller_id(self) -> int:
        """The node that clients send changes of topics to; any other takes them as well."""
        return self.brokers[0].id

    def leader(self, topic: Topic, index: int) -> int:
        """The id of the node that serves a partition, or NOBODY."""
        if self._as_planned:
            return topic.leader(index, self.node_ids)
        planned = topic.replicas(index, self.node_ids)
        first = self._moved.get((topic.name, index), planned[0])
        for broker in (first, *planned):
            if self.serves(broker):
                return broker
        if self._irreplaceable.issuperset(planned):
            return NOBODY
        return min(
            (broker.id for broker in self.brokers), key=lambda broker: (broker < first, broker)
        )

    def replicas(self, topic: Topic, index: int) -> list[int]:
        """The ids of the nodes of a partition, also of those that are away. A leader that is none
        of them by plan stands first.
        """
        planned = topic.replicas(index, self.node_ids)
        if self._as_planned:
            return planned
        leader = self.leader(topic, index)
        return planned if leader in (NOBODY, *planned) else [leader, *planned]

    def racks(self, topic: Topic) -> tuple[tuple[str, ...], ...]:
        """The racks of the replicas of each partition, as planned: nodes that come and go, and
        partitions that are led elsewhere, do not change them. Empty where no node has a rack.
        """
        if not self._has_racks:
            return ()
        return tuple(
            tuple(
                rack
                for node_id in topic.replicas(index, self.node_ids)
                if (rack := self._by_id[node_id].rack) is not None
            )
            for index in range(topic.partitions)
        )

    def serves(self, node_id: int) -> bool:
        """Whether a node is there."""
        return any(broker.id == node_id for broker in self.brokers)

    def move(self, topic: Topic, index: int, node_id: int) -> None:
        """Let another node lead a partition, for as long as the cluster lives."""
        self._moved[topic.name, index] = node_id
        self._as_planned = False

    def leave(self, node_id: int, *, replaced: bool = True) -> None:
        """A node serves no more: what it has led goes to others. Where it is not replaced, only
        another replica of a partition leads that. One node must be left.
        """
        if not replaced:
            self._irreplaceable.add(node_id)
        self.brokers = tuple(broker for broker in self.brokers if broker.id != node_id)
        self._as_planned = False

    def join(self, node_id: int) -> None:
        """A node serves again what it served before."""
        self._irreplaceable.discard(node_id)
        present = {broker.id for broker in self.brokers} | {node_id}
        self.brokers = tuple(broker for key, broker in self._by_id.items() if key in present)
        self._as_planned = len(self.brokers) == len(self.node_ids) and not self._moved

    def shard_of(self, group_id: GroupId) -> PartitionIndex:
        """The partition of __consumer_offsets that a group lives in, whether it is open or not."""
        place = group_id, self._catalog.by_name[OFFSETS_TOPIC].partitions
        known = self._known.get(place)
        return self._partition_of(place) if known is None else known

    def coordinator_of(self, group_id: GroupId) -> int:
        """The id of the node that coordinates a group, or NOBODY."""
        return self.leader(self._catalog.by_name[OFFSETS_TOPIC], self.shard_of(group_id))

    def transaction_coordinator_of(
        self, transactional_id: str
    ) -> tuple[PartitionIndex, int] | None:
        """The partition of __transaction_state that an id lives in, and the node that coordinates
        its transactions, or NOBODY. None while there is no such topic.
        """
        topic = self._catalog.by_name.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        place = transactional_id, topic.partitions
        known = self._known.get(place)
        index = self._partition_of(place) if known is None else known
        return index, self.leader(topic, index)

    def _partition_of(self, place: tuple[str, int]) -> PartitionIndex:
        """The partition of an id, of so many. Short ids are asked for again and again."""
        partition = coordinator_partition(*place)
        if len(place[0]) <= _SHORT:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[place] = partition
        return partition
