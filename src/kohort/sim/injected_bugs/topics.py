# SPDX-License-Identifier: Apache-2.0
"""Bugs in what is known of topics, and of where each of them is served."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from kohort.coordinator.consumer import metadata
from kohort.errors import StorageError
from kohort.java import coordinator_partition
from kohort.machines.topics import Topics
from kohort.server import catalog, cluster, placement
from kohort.server.partitions import partition_table
from kohort.server.partitions.disk_work import PartitionKey
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.storage import directory


def shard_by_index() -> Iterator[None]:
    """The shard of a group follows from how many logs are open."""
    shard_of, start = placement.Placement.shard_of, cluster.Cluster.start
    running: list[cluster.Cluster] = []

    def started(self: cluster.Cluster, *arguments: Any, **more: Any) -> None:
        running[:] = [self]
        start(self, *arguments, **more)

    def by_index(self: placement.Placement, group_id: Any) -> Any:
        shards = sorted(running[0].drivers)
        if not shards:
            return shard_of(self, group_id)
        return shards[coordinator_partition(group_id, len(shards))]

    with (
        replace_attribute(cluster.Cluster, "start", started),
        replace_attribute(placement.Placement, "shard_of", by_index),
    ):
        yield


def delete_by_name() -> Iterator[None]:
    """The folders of a deleted topic are removed by its name, whoever's they are by now."""
    delete = directory.LogDirectory.delete

    def by_name(self: Any, topic: str, indexes: Any, topic_id: Any) -> Any:
        self.topic_id = lambda _topic, _index: topic_id
        try:
            return delete(self, topic, indexes, topic_id)
        finally:
            del self.topic_id

    def everything(_self: Any, topic: Any) -> list[int]:
        return list(range(topic.partitions))

    with (
        replace_attribute(directory.LogDirectory, "delete", by_name),
        replace_attribute(partition_table.PartitionTable, "_leaving", everything),
    ):
        yield


def delete_unwritten() -> Iterator[None]:
    """A deletion is written down only when the logs of the topic are gone."""
    save = catalog.Catalog.save

    def with_leaving(self: catalog.Catalog, draft: catalog.Draft) -> None:
        leaving = {topic.name: topic for topic in draft.deleting}
        topics = {**leaving, **draft.by_name}
        save(self, catalog.Draft(topics, (), draft.reserved_producer_id))

    with replace_attribute(catalog.Catalog, "save", with_leaving):
        yield


def open_once() -> Iterator[None]:
    """A log that the disk has refused to open is not tried again."""
    places_without = partition_table.PartitionTable._places_without  # noqa: SLF001

    def once(self: Any, topics: Any) -> list[PartitionKey]:
        return [place for place in places_without(self, topics) if place not in self._refused]

    with replace_attribute(partition_table.PartitionTable, "_places_without", once):
        yield


def producer_id_twice() -> Iterator[None]:
    """After a start producer ids begin where the last block began, not where it ended."""
    read = catalog.Catalog._read  # noqa: SLF001

    def too_low(self: Any, copy: Any) -> None:
        read(self, copy)
        self._next_producer_id = max(0, self._next_producer_id - catalog._PRODUCER_ID_BLOCK)  # noqa: SLF001

    with replace_attribute(catalog.Catalog, "_read", too_low):
        yield


def unnoticed_topic() -> Iterator[None]:
    """Groups that wait for a topic are not told when it is made."""
    changes = metadata.changes

    def of_known(before: Topics, after: Topics) -> tuple[list[str], list[str]]:
        changed, deleted = changes(before, after)
        return [name for name in changed if name in before.by_name], deleted

    with replace_attribute(metadata, "changes", of_known):
        yield


def refused_stands() -> Iterator[None]:
    """Every fifth change of the catalog is on the disk, and is refused all the same."""
    save = catalog.Catalog.save
    numbers = count(1)

    def refusing(self: catalog.Catalog, draft: catalog.Draft) -> None:
        save(self, draft)
        if not next(numbers) % 5:
            raise StorageError("the name cannot be synced")

    with replace_attribute(catalog.Catalog, "save", refusing):
        yield


def growth_unwritten() -> Iterator[None]:
    """The catalog has of each topic the number of partitions that it was made with."""
    entry = catalog._entry  # noqa: SLF001
    first: dict[bytes, int] = {}

    def small(topic: catalog.Topic) -> Any:
        partitions = first.setdefault(topic.topic_id, topic.partitions)
        return entry(msgspec.structs.replace(topic, partitions=partitions))

    with replace_attribute(catalog, "_entry", small):
        yield


def deleted_lives() -> Iterator[None]:
    """After a start a topic whose logs are still being removed is there again."""
    read = catalog.Catalog._read  # noqa: SLF001

    def with_leaving(self: Any, copy: Any) -> None:
        read(self, copy)
        for topic in self.deleting:
            if self.by_name.setdefault(topic.name, topic) is topic:
                self.by_id[topic.topic_id] = topic
        self.deleting = []

    with replace_attribute(catalog.Catalog, "_read", with_leaving):
        yield
