# SPDX-License-Identifier: Apache-2.0
"""A scripted cluster whose topics have ids and epochs, and logs that are asked for offsets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.client.consumer.running import SOON_S
from tests.client.fetcher.batches import T0
from tests.client.scripted import CLOSE, ReceivedRequest, ScriptedCluster
from tests.client.scripted import Node as Scene

from kohort.client.fetcher.fetcher import Fetcher
from kohort.client.fetcher.partition_lookup import PartitionLookup
from kohort.client.fetcher.partition_state import TopicPartitionState
from kohort.client.fetcher.record import OffsetAndEpoch
from kohort.client.fetcher.settings import FetchSettings
from kohort.client.network.cluster import Node
from kohort.client.network.metadata import Metadata
from kohort.errors import ErrorCode, KohortError
from kohort.terms import TopicPartition
from kohort.wire import frames
from kohort.wire.apis import APIS
from kohort.wire.batch import peek
from kohort.wire.codec import decode, encode
from kohort.wire.frames import decode_request_header, encode_response
from kohort.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
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

Topic = tuple[str, bytes]
Known = dict[tuple[Topic, int], FetchPartition]


class Cast(ScriptedCluster):
    """`epochs` are of leaders, `ids` of topics. `log` is where each partition begins and ends, and
    `ends` the epoch and the end that are told for the epoch of a record; `codes` refuse requests
    for a partition, one after the other.

    Fetches are answered from the `batches` of partitions, by their leaders and by `followers`, as
    soon as there is something, or after the time that a reader waits for it. `script` has answers
    for the next ones, as in `answers`, and None for what is usual.
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
        self.batches: dict[TopicPartition, list[bytes]] = {}
        self.followers: set[int] = set()
        self.preferred: dict[TopicPartition, int] = {}
        self.script: list[Callable[[ReceivedRequest], Any] | None] = []
        self.sessions: dict[int, Known] | None = {}  # None: the broker keeps none
        self.session_epochs: dict[int, int] = {}
        self.answers[ListOffsetsRequest] = self.list_offsets
        self.answers[OffsetForLeaderEpochRequest] = self.leader_epochs
        self._last_session = 100
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await super().__aexit__()

    def put(self, partition: TopicPartition, *batches: bytes) -> None:
        """Append these to the partition."""
        log = self.batches.setdefault(partition, [])
        log += batches
        first, last = peek(log[0]), peek(log[-1])
        self.log[partition] = (first.base_offset, last.last_offset + 1)

    def refusing(self, request: type, *codes: int, of: TopicPartition = T0) -> None:
        """Answer requests of this kind with these codes, each once, and then as usual."""
        self.codes.setdefault(request, {})[of] = list(codes)

    def code(self, request: type, partition: TopicPartition) -> int:
        left = self.codes.get(request, {}).get(partition)
        return left.pop(0) if left else 0

    def _metadata(self, asked: ReceivedRequest) -> MetadataResponse:
        answer = super()._metadata(asked)
        for topic in answer.topics:
            name = topic.name or ""
            topic.topic_id = self.ids.get(name, bytes(16))
            topic.error_code = self.topic_codes.get(name, topic.error_code)
            for one in topic.partitions:
                one.leader_epoch = self.epochs.get(TopicPartition(name, one.partition_index), 0)
        return answer

    def list_offsets(self, asked: ReceivedRequest) -> ListOffsetsResponse:
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

    def leader_epochs(self, asked: ReceivedRequest) -> OffsetForLeaderEpochResponse:
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

    # Fetches

    async def _answer(self, node: Scene, frame: bytes, writer: asyncio.StreamWriter) -> bool:
        key, version, correlation_id = frames.peek(frame)
        if key != FetchRequest.api_key:
            return await super()._answer(node, frame, writer)
        flexible = APIS[key].flexible(version)
        _, start = decode_request_header(frame, flexible=flexible)
        request = decode(FetchRequest, version, frame, start)
        asked = ReceivedRequest(node.id, request, version)
        self.asked.append(asked)
        task = asyncio.create_task(self._fetch(asked, correlation_id, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _fetch(
        self, asked: ReceivedRequest, number: int, writer: asyncio.StreamWriter
    ) -> None:
        scripted = self.script.pop(0) if self.script else None
        answer = scripted(asked) if scripted is not None else await self._usual(asked)
        if answer is CLOSE:
            writer.transport.abort()
        elif isinstance(answer, bytes):  # no message at all
            writer.write(encode_response(number, answer, flexible=asked.version >= 12))
        elif answer is not None:
            body = encode(answer, asked.version)
            writer.write(encode_response(number, body, flexible=asked.version >= 12))

    async def _usual(self, asked: ReceivedRequest) -> FetchResponse:
        request = asked.request
        session_id, known = 0, dict(_named(request))
        if request.session_epoch == 0 and self.sessions is not None:
            self._last_session = session_id = self._last_session + 1
            self.sessions[session_id], self.session_epochs[session_id] = known, 1
        elif request.session_epoch > 0:
            session_id = request.session_id
            if session_id not in (self.sessions or {}):
                return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if request.session_epoch != self.session_epochs[session_id]:
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            assert self.sessions is not None
            self.session_epochs[session_id] += 1
            known = self.sessions[session_id]
            known.update(_named(request))
            for topic in request.forgotten_topics_data:
                for index in topic.partitions:
                    del known[(topic.topic, topic.topic_id), index]
        until = now() + request.max_wait_ms / 1000
        while True:
            answer = self._look_at(asked, known)
            if answer.responses or now() >= until:
                answer.session_id = session_id
                return answer
            await asyncio.sleep(0.002)

    def _look_at(self, asked: ReceivedRequest, known: Known) -> FetchResponse:
        topics: dict[Topic, FetchableTopicResponse] = {}
        for (topic, _), wanted in known.items():
            part = self._part(asked, topic, wanted)
            if part.records or part.error_code or part.preferred_read_replica >= 0:
                name, topic_id = topic
                answer = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[])
                topics.setdefault(topic, answer).partitions.append(part)
        return FetchResponse(responses=list(topics.values()))

    def _part(self, asked: ReceivedRequest, topic: Topic, wanted: FetchPartition) -> PartitionData:
        name = topic[0]
        if asked.version >= 13:
            name = next((one for one, known in self.ids.items() if known == topic[1]), "")
        partition = TopicPartition(name, wanted.partition)
        begin, end = self.log.get(partition, (0, 0))
        part = PartitionData(
            partition_index=wanted.partition,
            log_start_offset=begin,
            high_watermark=end,
            last_stable_offset=end,
        )
        leader = self.topics.get(name, [])[wanted.partition : wanted.partition + 1]
        part.error_code = self.code(FetchRequest, partition)
        if part.error_code:
            return part
        if not name:
            part.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        elif leader != [asked.node] and asked.node not in self.followers:
            part.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not begin <= wanted.fetch_offset <= end:
            part.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif self.preferred.get(partition, asked.node) != asked.node:
            part.preferred_read_replica = self.preferred[partition]
        else:
            left = [
                one
                for one in self.batches.get(partition, [])
                if peek(one).last_offset >= wanted.fetch_offset
            ]
            data = b"".join(left)
            part.records = data[: max(wanted.partition_max_bytes, len(left[0]))] if left else b""
        return part


def _named(request: FetchRequest) -> Known:
    return {
        ((topic.topic, topic.topic_id), one.partition): one
        for topic in request.topics
        for one in topic.partitions
    }


@asynccontextmanager
async def finding(cast: Cast, **settings: Any) -> AsyncIterator[PartitionLookup]:
    metadata = Metadata(cast.cluster())
    yield PartitionLookup(metadata, FetchSettings(**settings))
    await metadata.cluster.close()


async def look(found: PartitionLookup, *states: TopicPartitionState) -> None:
    """Find out what is missing of these, once."""
    await found.leaders([one for one in states if one.leader is None])
    by_leader: dict[Node, list[TopicPartitionState]] = {}
    for one in states:
        if one.leader is not None:
            by_leader.setdefault(one.leader, []).append(one)
    await asyncio.gather(*(found.places(leader, some) for leader, some in by_leader.items()))


def state(
    partition: TopicPartition = T0, where: OffsetAndEpoch | str | None = None, **given: Any
) -> TopicPartitionState:
    made = TopicPartitionState(partition, FetchSettings(**given))
    made.go_to(where)
    return made


def now() -> float:
    return asyncio.get_running_loop().time()


# Fetchers


@asynccontextmanager
async def fetcher(cast: Cast, **settings: Any) -> AsyncIterator[Fetcher]:
    """A fetcher of its cluster. Its requests wait for records longer than any test lasts."""
    metadata = Metadata(cast.cluster())
    given = {"fetch_max_wait_ms": 600_000, "auto_offset_reset": "earliest", **settings}
    made = Fetcher(cast.cluster(), metadata, FetchSettings(**given))
    try:
        async with asyncio.timeout(SOON_S):
            yield made
    finally:
        await made.close()
        await metadata.cluster.close()


async def read(some: Fetcher, count: int) -> dict[TopicPartition, list[int]]:
    """The offsets of so many records, by partition."""
    found: dict[TopicPartition, list[int]] = {}
    left = count
    while left > 0:
        for partition, records in some.take(left).items():
            found.setdefault(partition, []).extend(one.offset for one in records)
            left -= len(records)
        if left > 0:
            await some.wait(now() + SOON_S)
    return found


async def failure(some: Fetcher) -> KohortError:
    """The error that comes where no record does."""
    while True:
        try:
            assert not some.take(100)
        except KohortError as error:
            return error
        await some.wait(now() + SOON_S)
