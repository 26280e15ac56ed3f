# SPDX-License-Identifier: Apache-2.0
"""All committed offsets of a shard, and those that wait for the end of a transaction.

Only the log changes them, in its order.
"""

from collections.abc import Iterator, Mapping

from kohort.coordinator.offsets.table import OffsetCount, TopicOffsets
from kohort.records.schemas import OffsetCommitValue
from kohort.terms import NO_TOPIC_ID, GroupId, Millis, TopicId

NamedPartition = tuple[str, int]
"""The name of a topic, and the index of one of its partitions."""


class _Pending:
    """An offset in an open transaction; `overtaken` once a later record has set its partition."""

    __slots__ = ("offset", "overtaken", "value")

    def __init__(self, value: OffsetCommitValue, offset: int) -> None:
        self.value = value
        self.offset = offset  # of its record
        self.overtaken = False


class Offsets:
    """The committed offsets of every group, by topic, and those of open transactions, by producer.

    Only replay calls the functions that change them.
    """

    def __init__(self) -> None:
        self.committed: dict[GroupId, dict[str, TopicOffsets]] = {}
        self.count = OffsetCount()  # of committed ones
        self._pending: dict[int, dict[GroupId, dict[NamedPartition, _Pending]]] = {}
        self._open: dict[GroupId, dict[NamedPartition, dict[int, _Pending]]] = {}

    def of(self, group_id: GroupId) -> dict[str, TopicOffsets]:
        """What a group has committed, by topic. Not to be changed by the caller."""
        return self.committed.get(group_id, {})

    def group_ids(self) -> list[GroupId]:
        """The groups that have offsets, committed or in open transactions."""
        committed = self.committed
        return [*committed, *(group_id for group_id in self._open if group_id not in committed)]

    def open_partitions(self, group_id: GroupId) -> dict[NamedPartition, dict[int, _Pending]]:
        """The group's partitions that some open transaction has an offset for."""
        return self._open.get(group_id, {})

    def holds(self, group_id: GroupId, topic: str, partition: int) -> bool:
        """Whether the group has an offset for the partition, if only in a transaction."""
        table = self.of(group_id).get(topic)
        if table is not None and partition in table:
            return True
        return (topic, partition) in self.open_partitions(group_id)

    def partitions_of(self, group_id: GroupId) -> Iterator[NamedPartition]:
        """The group's partitions with an offset: committed ones, then those in transactions."""
        tables = self.of(group_id)
        for topic, table in tables.items():
            for partition in table.partitions():
                yield topic, partition
        for topic, partition in self.open_partitions(group_id):
            if topic not in tables or partition not in tables[topic]:
                yield topic, partition

    def of_topics(
        self, group_id: GroupId, topics: Mapping[str, TopicId], until: Millis
    ) -> Iterator[NamedPartition]:
        """The partitions whose offset was committed for one of these topics, by name and id. An
        offset that names no id counts when it was committed up to `until`.
        """
        tables = self.of(group_id)
        for topic, table in tables.items():
            if topic not in topics:
                continue
            if table.topic_id == topics[topic]:
                yield from ((topic, partition) for partition in table.partitions())
            elif table.topic_id == NO_TOPIC_ID:
                yield from ((topic, partition) for partition in table.committed_until(until))
        for (topic, partition), producers in self.open_partitions(group_id).items():
            topic_id = topics.get(topic, NO_TOPIC_ID)
            if topic not in topics or (topic in tables and partition in tables[topic]):
                continue
            if any(
                producer.value.topic_id in (NO_TOPIC_ID, topic_id)
                for producer in producers.values()
            ):
                yield topic, partition

    def of_other_ids(
        self, group_id: GroupId, ids: Mapping[str, TopicId]
    ) -> Iterator[NamedPartition]:
        """The partitions whose offset was committed for a topic of the same name but of another id
        than the one it has here. Names that do not exist here, and offsets without an id, are left
        out.
        """
        tables = self.of(group_id)
        for topic, table in tables.items():
            if table.topic_id not in (NO_TOPIC_ID, ids.get(topic, table.topic_id)):
                for partition in table.partitions():
                    yield topic, partition
        for (topic, partition), producers in self.open_partitions(group_id).items():
            if topic not in ids or (topic in tables and partition in tables[topic]):
                continue
            if any(
                producer.value.topic_id not in (NO_TOPIC_ID, ids[topic])
                for producer in producers.values()
            ):
                yield topic, partition

    def put(
        self,
        group_id: GroupId,
        partition: NamedPartition,
        value: OffsetCommitValue,
        offset: int,
    ) -> None:
        """Set a committed offset. Offsets that open transactions have for the partition, in records
        before this one at `offset`, are overtaken.
        """
        tables = self.committed.get(group_id)
        if tables is None:
            tables = self.committed[group_id] = {}
        topic, index = partition
        table = tables.get(topic)
        if table is None:
            table = tables[topic] = TopicOffsets(value.topic_id, self.count)
        elif value.topic_id != NO_TOPIC_ID:
            table.topic_id = value.topic_id
        table.put(index, value)
        if self._open:
            for pending in self.open_partitions(group_id).get(partition, {}).values():
                if pending.offset < offset:
                    pending.overtaken = True

    def put_pending(
        self,
        group_id: GroupId,
        partition: NamedPartition,
        value: OffsetCommitValue,
        *,
        producer_id: int,
        offset: int,
    ) -> None:
        """Keep an offset until its transaction ends."""
        pending = _Pending(value, offset)
        by_group = self._pending.setdefault(producer_id, {})
        by_group.setdefault(group_id, {})[partition] = pending
        self._open.setdefault(group_id, {}).setdefault(partition, {})[producer_id] = pending

    def remove(self, group_id: GroupId, topic: str, partition: int) -> None:
        """Forget the offset of a partition, and those that open transactions have for it."""
        tables = self.committed.get(group_id)
        table = None if tables is None else tables.get(topic)
        if tables is not None and table is not None:
            table.remove(partition)
            if not table.count:
                del tables[topic]
            if not tables:
                del self.committed[group_id]
        for producer_id in list(self.open_partitions(group_id).get((topic, partition), {})):
            self._close(group_id, (topic, partition), producer_id)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Commit or drop the offsets that the transaction had pending.

        The order of records decides, not the order of markers: an offset that was set later stays.
        """
        for group_id, by_partition in list(self._pending.get(producer_id, {}).items()):
            for partition, pending in list(by_partition.items()):
                self._close(group_id, partition, producer_id)
                if commit and not pending.overtaken:
                    self.put(group_id, partition, pending.value, pending.offset)

    def _close(self, group_id: GroupId, partition: NamedPartition, producer_id: int) -> None:
        producers = self._open[group_id][partition]
        del producers[producer_id]
        if not producers:
            del self._open[group_id][partition]
            if not self._open[group_id]:
                del self._open[group_id]
        by_group = self._pending[producer_id]
        del by_group[group_id][partition]
        if not by_group[group_id]:
            del by_group[group_id]
            if not by_group:
                del self._pending[producer_id]
