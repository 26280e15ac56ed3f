"""A scripted cluster whose topics have ids and epochs, and logs that are asked for offsets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.client.fetching.batches import T0
from tests.client.scripted import Asked, Scripted

from kohort.client.cluster import Node
from kohort.client.fetching.finding import Finding
from kohort.client.fetching.record import Place
from kohort.client.fetching.settings import FetchSettings
from kohort.client.fetching.track import Track
from kohort.client.metadata import Metadata
from kohort.terms import TopicPartition
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kohort.wire.messages.metadata import MetadataResponse
from kohort.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

EARLIEST, LATEST = -2, -1


class Cast(Scripted):
    """`epochs` are of leaders, `ids` of topics. `log` is where each partition begins and ends, and
    `ends` the epoch and the end that are told for the epoch of a record; `codes` refuse requests
    for a partition, one after the other.
    """

    def __init__(self, nodes: int = 1, *, topics: dict[str, list[int]] | None = None) -> None:
        super().__init__(nodes)
        self.topics = topics or {"t": [0]}
        self.epochs: dict[TopicPartition, int] = {}
        self.ids: dict[str, bytes] = {}
        self.topic_codes: dict[str, int] = {}
        self.log: dict[TopicPartition, tuple[int, int]] = {}
        self.ends: dict[TopicPartition, tuple[int, int]] = {}
        self.codes: dict[type, dict[TopicPartition, list[int]]] = {}
        self.answers[ListOffsetsRequest] = self.list_offsets
        self.answers[OffsetForLeaderEpochRequest] = self.leader_epochs

    def refusing(self, request: type, *codes: int, of: TopicPartition = T0) -> None:
        """Answer requests of this kind with these codes, each once, and then as usual."""
        self.codes.setdefault(request, {})[of] = list(codes)

    def code(self, request: type, partition: TopicPartition) -> int:
        left = self.codes.get(request, {}).get(partition)
        return left.pop(0) if left else 0

    def _metadata(self, asked: Asked) -> MetadataResponse:
        answer = super()._metadata(asked)
        for topic in answer.topics:
            name = topic.name or ""
            topic.topic_id = self.ids.get(name, bytes(16))
            topic.error_code = self.topic_codes.get(name, topic.error_code)
            for one in topic.partitions:
                one.leader_epoch = self.epochs.get(TopicPartition(name, one.partition_index), 0)
        return answer

    def list_offsets(self, asked: Asked) -> ListOffsetsResponse:
        def found(partition: TopicPartition, timestamp: int) -> Any:
            code = self.code(ListOffsetsRequest, partition)
            begin, end = self.log.get(partition, (0, 0))
            known = {EARLIEST: begin, LATEST: end}
            offset = -1 if code else known.get(timestamp, -1)
            return ListOffsetsPartitionResponse(
                partition_index=partition.partition,
                error_code=code,
                timestamp=-1,
                offset=offset,
                leader_epoch=-1 if offset < 0 else self.epochs.get(partition, 0),
            )

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        found(TopicPartition(topic.name, one.partition_index), one.timestamp)
                        for one in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )

    def leader_epochs(self, asked: Asked) -> OffsetForLeaderEpochResponse:
        def found(partition: TopicPartition, epoch: int) -> Any:
            code = self.code(OffsetForLeaderEpochRequest, partition)
            last = self.log.get(partition, (0, 0))[1]
            told, end = self.ends.get(partition, (epoch, last))
            return EpochEndOffset(
                partition=partition.partition, error_code=code, leader_epoch=told, end_offset=end
            )

        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        found(TopicPartition(topic.topic, one.partition), one.leader_epoch)
                        for one in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )


@asynccontextmanager
async def finding(cast: Cast, **settings: Any) -> AsyncIterator[Finding]:
    metadata = Metadata(cast.cluster())
    yield Finding(metadata, FetchSettings(**settings))
    await metadata.cluster.close()


async def look(found: Finding, *tracks: Track) -> None:
    """Find out what is missing of these, once."""
    await found.leaders([one for one in tracks if one.leader is None])
    by_leader: dict[Node, list[Track]] = {}
    for one in tracks:
        if one.leader is not None:
            by_leader.setdefault(one.leader, []).append(one)
    await asyncio.gather(*(found.places(leader, some) for leader, some in by_leader.items()))


def track(partition: TopicPartition = T0, where: Place | str | None = None, **given: Any) -> Track:
    made = Track(partition, FetchSettings(**given))
    made.go_to(where)
    return made


def now() -> float:
    return asyncio.get_running_loop().time()
