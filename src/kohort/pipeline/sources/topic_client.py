# SPDX-License-Identifier: Apache-2.0
"""Questions to the leaders of a topic's partitions: bounds, offsets by time, and batches.

A leader that moves, starts or cannot be reached is looked up again until `PATIENCE_S` is over. A
cluster that has never answered is not asked again: an address that is wrong stays wrong. No group
is joined, and records are read up to the high watermark, those of open and aborted transactions
too: so the rows are those of the log, and reading leaves nothing in it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from kohort.client.network.cluster import Node, nodes_of
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    UnsupportedVersionError,
    WireError,
    api_error,
)
from kohort.pipeline.sources.admin_query import CLIENT_ID, run_query
from kohort.pipeline.sources.cluster_place import cluster_place
from kohort.pipeline.sources.log_position import Identity, SourceError
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.security.settings import NO_SECURITY, Security
from kohort.terms import NO_TOPIC_ID, uuid_text
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataResponse
from kohort.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

PATIENCE_S = 60.0
EARLIEST, LATEST = -2, -1
_REQUEST_S = 30.0
_LOOK_BYTES = 1 << 14
_NAMES_TOPICS = 12  # the last version of Fetch that does
_UNCOMMITTED = 0
_CONSUMER = -1
_NOT_ALLOWED = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


class _PassingError(SourceError):
    """What may be otherwise in a moment."""


class Leader(NamedTuple):
    """Who leads a partition, and since which election."""

    node: Node
    epoch: int


def cluster_id(bootstrap: str, security: Security = NO_SECURITY) -> str | None:
    """Which cluster answers there. Raises SourceError."""

    async def ask() -> str | None:
        async with TopicClient(bootstrap, GROUP_LOG, security) as client:
            return (await client.metadata()).cluster_id

    return run_query(bootstrap, ask)


class TopicClient:
    """One topic of a live cluster. Methods raise SourceError; used as a context. A cluster that
    `is_known` has answered before: any failure of it may pass.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        security: Security = NO_SECURITY,
        *,
        is_known: bool = False,
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.identity = Identity()
        self.leaders: dict[int, Leader] = {}
        self.partitions: tuple[int, ...] = ()
        self._cluster = cluster_place(bootstrap, security).cluster(CLIENT_ID)
        self._is_known = is_known

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._cluster.close()

    async def ask(self, node: Node, request: Any) -> Any:
        """Ask one broker another question. Raises what `Cluster.ask` raises."""
        return await self._cluster.ask(node, request, deadline=_now() + _REQUEST_S)

    async def metadata(self) -> MetadataResponse:
        """What the cluster says of itself and of the topic. Raises SourceError."""
        try:
            return await self._cluster.metadata([self.topic], deadline=_now() + _REQUEST_S)
        except UnsupportedVersionError as error:
            raise SourceError(f"the cluster at {self.bootstrap} is too old: {error}") from error
        except AuthenticationError as error:
            text = f"the cluster at {self.bootstrap} cannot be asked: {_text(error)}"
            raise SourceError(text) from error
        except (ApiError, WireError) as error:
            raise _PassingError(
                f"the cluster at {self.bootstrap} cannot be asked: {_text(error)}; is it up, and "
                "does it listen there?"
            ) from error

    async def look_up(self) -> None:
        """Ask who leads which partition, until there is an answer."""
        deadline = _now() + PATIENCE_S
        attempt = 0
        while True:
            try:
                return await self._look_up()
            except _PassingError:
                if not self._is_known or not await self._cluster.pause(attempt, deadline):
                    raise
            attempt += 1

    async def _look_up(self) -> None:
        answer = await self.metadata()
        found = next((topic for topic in answer.topics if topic.name == self.topic), None)
        code = found.error_code if found is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if found is None or code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            hint = ": it is made when the first group commits" if self.topic == GROUP_LOG else ""
            raise _PassingError(f"the cluster at {self.bootstrap} has no topic {self.topic}{hint}")
        if code:
            raise self._refused(api_error(code))
        nodes = nodes_of(answer)
        topic_id = found.topic_id if found.topic_id != NO_TOPIC_ID else None
        self.identity = Identity(answer.cluster_id, uuid_text(topic_id) if topic_id else None)
        self.partitions = tuple(sorted(partition.partition_index for partition in found.partitions))
        self.leaders = {
            partition.partition_index: Leader(nodes[partition.leader_id], partition.leader_epoch)
            for partition in found.partitions
            if partition.leader_id in nodes
        }
        self._is_known = True

    async def offsets(self, partitions: Iterable[int], timestamp: int) -> dict[int, int]:
        """Partition -> first offset not older than a time, or -1; EARLIEST and LATEST are times."""

        def request(share: Sequence[int]) -> ListOffsetsRequest:
            wanted = [
                ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in share
            ]
            topic = ListOffsetsTopic(name=self.topic, partitions=wanted)
            return ListOffsetsRequest(
                replica_id=_CONSUMER, isolation_level=_UNCOMMITTED, topics=[topic]
            )

        def read(answer: Any) -> dict[int, Any]:
            return {
                partition.partition_index: partition
                for part in answer.topics
                for partition in part.partitions
            }

        found = await self._ask(partitions, request, read)
        return {index: partition.offset for index, partition in found.items()}

    async def fetch(
        self, wanted: Mapping[int, int], *, limit_bytes: int, wait_ms: int = 0
    ) -> dict[int, PartitionData]:
        """Batches from these offsets on, each partition's up to the limit.

        An error OFFSET_OUT_OF_RANGE is left in the answer. Of several partitions some may come
        without records though they have some: ask again for those alone.
        """

        def request(share: Sequence[int]) -> FetchRequest:
            parts = [
                FetchPartition(
                    partition=index, fetch_offset=wanted[index], partition_max_bytes=limit_bytes
                )
                for index in share
            ]
            return FetchRequest(
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=limit_bytes * len(share),
                isolation_level=_UNCOMMITTED,
                topics=[FetchTopic(topic=self.topic, partitions=parts)],
            )

        def read(answer: Any) -> dict[int, Any]:
            if answer.error_code:
                raise api_error(answer.error_code)
            return {
                partition.partition_index: partition
                for part in answer.responses
                for partition in part.partitions
            }

        return await self._ask(wanted, request, read, at_most=_NAMES_TOPICS)

    async def batches_at(self, wanted: Mapping[int, int]) -> dict[int, bytes]:
        """The first batches from an offset on, by partition: at least one, if there are any."""
        found = {}
        answers = await self.fetch(wanted, limit_bytes=_LOOK_BYTES) if wanted else {}
        for index, offset in wanted.items():
            answer = answers[index]
            if not answer.records and not answer.error_code:
                # One of several may be left out; the first of an answer comes in any case.
                answer = (await self.fetch({index: offset}, limit_bytes=_LOOK_BYTES))[index]
            found[index] = answer.records or b""
        return found

    async def log_end(self, partition: int) -> int | None:
        """Where the leader's log ends, beyond what is replicated; None where it does not tell."""
        leader = self.leaders.get(partition)
        if leader is None or leader.epoch < 0:
            return None
        wanted = OffsetForLeaderPartition(partition=partition, leader_epoch=leader.epoch)
        topic = OffsetForLeaderTopic(topic=self.topic, partitions=[wanted])
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=[topic])
        try:
            answer = await self.ask(leader.node, request)
        except (ApiError, UnsupportedVersionError, WireError):
            return None
        found = (part for topic in answer.topics for part in topic.partitions)
        return next((part.end_offset for part in found if part.end_offset >= 0), None)

    async def _ask(
        self,
        partitions: Iterable[int],
        request: Callable[[Sequence[int]], Any],
        read: Callable[[Any], dict[int, Any]],
        *,
        at_most: int = 32767,
    ) -> dict[int, Any]:
        """Ask each leader once for all its partitions; again for those that may still succeed."""
        deadline = _now() + PATIENCE_S
        left = dict.fromkeys(partitions)
        found: dict[int, Any] = {}
        attempt = 0
        while left:
            troubles = await self._round(left, found, request, read, at_most)
            if left and not await self._cluster.pause(attempt, deadline):
                index = next(iter(left))
                raise SourceError(
                    f"partition {index} of {self.topic} cannot be read: {_text(troubles[index])}, "
                    f"for {PATIENCE_S:.0f} seconds"
                )
            attempt += 1
        return found

    async def _round(
        self,
        left: dict[int, None],
        found: dict[int, Any],
        request: Callable[[Sequence[int]], Any],
        read: Callable[[Any], dict[int, Any]],
        at_most: int,
    ) -> dict[int, Exception]:
        """One try for the partitions that are left: answers move to `found`; for the others it
        returns the reason.
        """
        troubles: dict[int, Exception] = dict.fromkeys(
            left, ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "nobody leads it")
        )
        if not left.keys() <= self.leaders.keys():
            try:
                await self._look_up()
            except _PassingError as error:
                if not self._is_known:
                    raise
                return dict.fromkeys(left, error)
        shares: dict[Node, list[int]] = {}
        for index in left:
            if index in self.leaders:
                shares.setdefault(self.leaders[index].node, []).append(index)

        async def asked(node: Node, share: list[int]) -> dict[int, Any] | Exception:
            try:
                answer = await self._cluster.ask(
                    node, request(share), deadline=_now() + _REQUEST_S, at_most=at_most
                )
                return read(answer)
            except (ApiError, WireError) as error:
                return error
            except UnsupportedVersionError as error:
                raise SourceError(f"{node} is too old: {error}") from error

        answers = await asyncio.gather(*(asked(node, share) for node, share in shares.items()))
        for share, answer in zip(shares.values(), answers, strict=True):
            for index in share:
                part = answer.get(index) if isinstance(answer, dict) else None
                code = part.error_code if part is not None else ErrorCode.UNKNOWN_SERVER_ERROR
                if code in {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}:
                    found[index] = part
                    del left[index]
                    continue
                trouble = answer if isinstance(answer, Exception) else api_error(code)
                if isinstance(trouble, ApiError) and not trouble.code.retriable:
                    raise self._refused(trouble)
                troubles[index] = trouble
                self.leaders.pop(index, None)
        return troubles

    def _refused(self, error: ApiError) -> SourceError:
        if error.code in _NOT_ALLOWED:
            return SourceError(
                f"topic {self.topic} may not be read: allow this client Describe and Read on it "
                f"({error.code.name})"
            )
        kind = _PassingError if error.code.retriable else SourceError
        return kind(f"topic {self.topic} at {self.bootstrap} cannot be read: {_text(error)}")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _text(error: Exception) -> str:
    return (error.message or error.code.name) if isinstance(error, ApiError) else str(error)
