"""Where things are: the shard of a group, the node of a partition, the brokers told to clients.

Today the nodes of one process are all there is. Callers do not rely on that: the nodes that
coordinate groups and the brokers that Metadata shows may become different ones.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from kohort.java import text_hash
from kohort.server.catalog import OFFSETS_TOPIC, Catalog, Topic
from kohort.terms import GroupId, PartitionIndex


class Endpoint(NamedTuple):
    """A node and its address, as told to clients."""

    id: int
    host: str
    port: int


class Placement:
    """The map of one cluster. The topics are those of the catalog at the moment of the question."""

    def __init__(self, catalog: Catalog, brokers: Sequence[Endpoint] = ()) -> None:
        self._catalog = catalog
        self.brokers: tuple[Endpoint, ...] = tuple(brokers)
        self.node_ids: tuple[int, ...] = tuple(one.id for one in self.brokers)
        self._by_id = {one.id: one for one in self.brokers}

    @property
    def controller_id(self) -> int:
        """The node that clients send changes of topics to; any other takes them as well."""
        return self.node_ids[0]

    def endpoint(self, node_id: int) -> Endpoint:
        """Where a node is."""
        return self._by_id[node_id]

    def leader(self, topic: Topic, index: int) -> int:
        """The id of the node that serves a partition."""
        return topic.leader(index, self.node_ids)

    def shard_of(self, group_id: GroupId) -> PartitionIndex:
        """The partition of __consumer_offsets that a group lives in, whether it is open or not."""
        return coordinator_partition(group_id, self._catalog.by_name[OFFSETS_TOPIC].partitions)

    def coordinator_of(self, group_id: GroupId) -> Endpoint:
        """The node that coordinates a group."""
        leader = self.leader(self._catalog.by_name[OFFSETS_TOPIC], self.shard_of(group_id))
        return self._by_id[leader]


@lru_cache(maxsize=65536)
def coordinator_partition(group_id: str, partitions: int) -> PartitionIndex:
    """The partition that holds a group, as upstream computes it: abs(hash) mod partitions.

    The absolute value of the smallest integer is taken as 0.
    """
    value = text_hash(group_id)
    return PartitionIndex(0 if value == -(1 << 31) else abs(value) % partitions)
