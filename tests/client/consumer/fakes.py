# SPDX-License-Identifier: Apache-2.0
"""What stands in for the network at the edge of the consumer's own parts."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kohort.client.fetcher import ConsumerRecord, OffsetAndEpoch
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def record(partition: TopicPartition, offset: int, epoch: int = 3) -> ConsumerRecord:
    return ConsumerRecord(
        topic=partition.topic,
        partition=partition.partition,
        offset=offset,
        timestamp_ms=0,
        timestamp_type="create",
        key=None,
        value=b"",
        headers=(),
        leader_epoch=epoch,
    )


class FakeFetcher:
    """Has what a test puts into `ready`, and writes down what it is told."""

    def __init__(self) -> None:
        self.places: dict[TopicPartition, OffsetAndEpoch | None] = {}
        self.ready: dict[TopicPartition, list[ConsumerRecord]] = {}
        self.told: list[tuple[Any, ...]] = []
        self.paused: set[TopicPartition] = set()
        self.ids: dict[str, TopicId] = {}  # as the cluster tells them
        self.reads: dict[TopicPartition, TopicId] = {}  # the topic that a partition is read of
        self.bound = False
        self.on_topic_recreated: Callable[[TopicPartition], None] = lambda _: None

    def add(
        self,
        places: Mapping[TopicPartition, OffsetAndEpoch | None],
        ids: Mapping[TopicPartition, TopicId] | None = None,
        *,
        bound: bool = False,
    ) -> None:
        self.places.update(places)
        self.reads.update(ids or {})
        self.bound = bound

    def topic_id(self, partition: TopicPartition) -> TopicId:
        return self.reads.get(partition, NO_TOPIC_ID)

    async def topic_ids(
        self, partitions: Collection[TopicPartition], _deadline: float
    ) -> dict[TopicPartition, TopicId]:
        return {one: self.ids[one.topic] for one in partitions if one.topic in self.ids}

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            del self.places[partition]
            self.paused.discard(partition)

    def seek(self, partition: TopicPartition, where: Any) -> None:
        self.told.append(("seek", partition, where))
        self.places[partition] = where

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def position(self, partition: TopicPartition) -> OffsetAndEpoch | None:
        return self.places.get(partition)

    def nudge(self) -> None:
        self.told.append(("nudge",))

    def take(self, most: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        found, self.ready = self.ready, {}
        return {partition: some[:most] for partition, some in found.items()}

    async def wait(self, _deadline: float) -> bool:
        return bool(self.ready)
