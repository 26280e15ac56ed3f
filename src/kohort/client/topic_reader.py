# SPDX-License-Identifier: Apache-2.0
"""Fetch: read partitions of topics from an offset on. It joins no group.

A reader keeps its place in each partition. Unless it reads committed records only, it reads up to
the high watermark, with the records of open and aborted transactions.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topic_views import TopicDescription
from kohort.client.admin.topics import describe_topics, leaders, list_offsets
from kohort.client.fetcher.decoding import AbortedBatchFilter, records_of, whole_batches
from kohort.client.fetcher.record import AnyRecord
from kohort.client.network.cluster import Cluster, Node
from kohort.client.topic_partitions import Partition
from kohort.errors import ApiError, ErrorCode, WireError, api_error
from kohort.figures import counted
from kohort.terms import TopicPartition
from kohort.wire.batch import check
from kohort.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

BY_NAME = 12  # the last version that names topics
PARTITION_BYTES = 1 << 20
ANSWER_BYTES = 8 << 20
_WRONG_PLACE = ErrorCode.OFFSET_OUT_OF_RANGE


class TopicReader:
    """Reads partitions. `places` has the offset of the next record of each.

    `topic_ids` tell a topic from another one that gets its name later. `partition_bytes` is how
    much of a partition one answer may have.
    """

    def __init__(
        self,
        cluster: Cluster,
        places: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes | None] | None = None,
        *,
        read_committed: bool = False,
        partition_bytes: int = PARTITION_BYTES,
    ) -> None:
        self._read_committed = read_committed
        self._partition_bytes = partition_bytes
        self.topic_ids = dict(topic_ids or {})
        self.places = dict(places)
        self.notes: list[str] = []
        self._cluster = cluster
        self._nodes: dict[TopicPartition, Node] = {}
        self._trouble: ApiError | WireError | None = None

    @classmethod
    async def open(
        cls,
        cluster: Cluster,
        wanted: Iterable[str | Partition],
        *,
        when: Literal["earliest", "latest"],
        deadline: float,
        read_committed: bool = False,
    ) -> "TopicReader":
        """Stand at the beginning of these partitions, and of all of these topics, or at the end.

        Raises ApiError for a topic or a partition that is not there.
        """
        asked = list(wanted)
        names = dict.fromkeys(one if isinstance(one, str) else one[0] for one in asked)
        found = (await describe_topics(cluster, names, deadline=deadline)).all()
        places = list(dict.fromkeys(place for one in asked for place in _partitions(one, found)))
        begin = await offsets_of(cluster, places, when, deadline, read_committed=read_committed)
        ids = {name: topic.topic_id for name, topic in found.items()}
        return cls(cluster, begin, ids, read_committed=read_committed)

    async def ends(self, deadline: float) -> dict[TopicPartition, int]:
        """Where each partition ends now, for who reads as this reader does. Raises ApiError."""
        return await offsets_of(
            *(self._cluster, list(self.places), "latest", deadline),
            read_committed=self._read_committed,
        )

    def try_again(self) -> None:
        """What could not be read is asked for again by the next `read`."""
        self._trouble = None

    async def read(
        self, *, wait_ms: int, deadline: float, of: Collection[TopicPartition] | None = None
    ) -> list[AnyRecord]:
        """The next records of every partition that has some, or of these, in order within each.

        Waits up to `wait_ms` when there are none. When records at a place have been deleted, the
        place moves to the new beginning, and when the log was cut before a place, to its end, with
        a line in `notes`. Once the records of all other partitions have been returned, raises
        ApiError for a partition that cannot be read, and WireError for one whose bytes are damaged.
        """
        if self._trouble is not None:
            raise self._trouble
        found: list[AnyRecord] = []
        for place, outcome in (
            await self._fetch(self.places if of is None else of, wait_ms, deadline)
        ).items():
            if isinstance(outcome, ApiError) and outcome.code is _WRONG_PLACE:
                await self._move(place, deadline)
            elif isinstance(outcome, ApiError):
                text = f"{place}: {outcome.message or 'it cannot be read'}"
                self._trouble = ApiError(outcome.code, text)
            else:
                try:
                    found.extend(self._taken(place, outcome))
                except WireError as error:
                    self._trouble = error
        if self._trouble is not None and not found:
            raise self._trouble
        return found

    async def _fetch(
        self, places: Collection[TopicPartition], wait_ms: int, deadline: float
    ) -> Mapping[TopicPartition, PartitionData | ApiError]:
        look_up = leaders(self._cluster)

        async def locate(
            keys: Sequence[TopicPartition], deadline: float
        ) -> dict[TopicPartition, Node | ApiError]:
            """Find the leaders. They are remembered from read to read, until one refuses."""
            missing = [key for key in keys if key not in self._nodes]
            fresh = await look_up(missing, deadline) if missing else {}
            self._nodes.update(
                {key: node for key, node in fresh.items() if not isinstance(node, ApiError)}
            )
            return {key: self._nodes.get(key) or fresh[key] for key in keys}

        async def ask(
            node: Node, keys: Sequence[TopicPartition], deadline: float
        ) -> dict[TopicPartition, PartitionData | ApiError]:
            for key in keys:  # forgotten until it has answered: then a failure looks it up anew
                self._nodes.pop(key, None)
            answer: FetchResponse = await self._cluster.ask(
                node, self._request(keys, wait_ms), deadline=deadline, at_most=BY_NAME
            )
            if answer.error_code:
                return dict.fromkeys(keys, api_error(answer.error_code))
            outcomes: dict[TopicPartition, PartitionData | ApiError] = {}
            for name, partition in (
                (topic.topic, partition)
                for topic in answer.responses
                for partition in topic.partitions
            ):
                place = TopicPartition(name, partition.partition_index)
                outcomes[place] = (
                    api_error(partition.error_code) if partition.error_code else partition
                )
                if not partition.error_code:
                    self._nodes[place] = node
            return outcomes

        return await settle(self._cluster, places, locate, ask, deadline=deadline)

    def _request(self, keys: Sequence[TopicPartition], wait_ms: int) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for key in keys:
            partition = FetchPartition(
                partition=key.partition,
                fetch_offset=self.places[key],
                partition_max_bytes=self._partition_bytes,
            )
            topics.setdefault(key.topic, []).append(partition)
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=ANSWER_BYTES,
            isolation_level=int(self._read_committed),
            topics=[FetchTopic(topic=name, partitions=parts) for name, parts in topics.items()],
        )

    def _taken(self, place: TopicPartition, answer: PartitionData) -> Iterator[AnyRecord]:
        """The records of an answer from our place on; the place moves with them."""
        data = answer.records or b""
        begin = self.places[place]
        aborted = AbortedBatchFilter(answer.aborted_transactions) if self._read_committed else None
        try:
            for position, header in whole_batches(data):
                if header.last_offset < self.places[place]:
                    if aborted is not None:
                        aborted.drops(data, position, header)
                    continue
                check(data, position, header)
                is_hidden = (
                    header.is_control if aborted is None else aborted.drops(data, position, header)
                )
                if not is_hidden:
                    yield from records_of(place, data, position, header, self.places[place])
                self.places[place] = header.last_offset + 1
        except WireError as error:
            raise WireError(f"{place} from offset {self.places[place]} on: {error}") from None
        if data and self.places[place] == begin:  # they would come again and again
            text = f"{len(data)} bytes were sent, and nothing from there on"
            raise WireError(f"{place} from offset {begin} on: {text}")

    async def _move(self, place: TopicPartition, deadline: float) -> None:
        before = self.places[place]
        name = place.topic
        topic = (await describe_topics(self._cluster, [name], deadline=deadline))[name]
        end = (await offsets_of(self._cluster, [place], "latest", deadline))[place]
        if before > end and topic.topic_id == self.topic_ids.get(name):
            self.places[place] = end  # what is before it was read
        else:
            self.places |= await offsets_of(self._cluster, [place], "earliest", deadline)
        self.notes.append(f"{place} has no offset {before}, going on at {self.places[place]}")


def _partitions(
    wanted: str | Partition, found: Mapping[str, TopicDescription]
) -> Iterator[TopicPartition]:
    name, index = (wanted, None) if isinstance(wanted, str) else wanted
    have = [partition.partition for partition in found[name].partitions]
    if index is not None and index not in have:
        text = f"topic {name} has no partition {index}, it has {counted(len(have), 'partition')}"
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    yield from (TopicPartition(name, one) for one in (have if index is None else [index]))


async def offsets_of(
    cluster: Cluster,
    places: Iterable[TopicPartition],
    when: str,
    deadline: float,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """The offset behind the last record of each partition, or of its first one: "latest" or
    "earliest". `read_committed` leaves out what is behind the first open transaction. Raises
    ApiError.
    """
    found = await list_offsets(
        cluster, dict.fromkeys(places, when), read_committed=read_committed, deadline=deadline
    )
    return {place: offset.offset or 0 for place, offset in found.all().items()}
