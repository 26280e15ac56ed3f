# SPDX-License-Identifier: Apache-2.0
"""How long the next record that a group reads has been there: the records' own times, by Fetch.

No request turns an offset into a time, so the record at the offset is read: one Fetch for all
partitions of a leader, a few kilobytes of each. What the log does not prove is a bound and has a
reason; it is never a bare number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topics import leaders, list_offsets
from kohort.client.admin.views import Outcomes
from kohort.client.fetcher.decoding import AbortedBatchFilter, records_of
from kohort.client.fetcher.record import AnyRecord
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.environment import environment
from kohort.errors import ApiError, ErrorCode, WireError, api_error
from kohort.figures import Bound, Figure
from kohort.terms import TopicPartition, by_topic
from kohort.wire.batch import HEADER_SIZE, check, peek
from kohort.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

DELETED = "deleted"
COMPACTED = "compacted"
NO_TIMESTAMP = "no_timestamp"
CLOCK = "clock"
NOT_READ = "not_read"

_BY_NAME = 12  # the last version that names topics
_FIRST_BYTES, _MORE_BYTES = 16 << 10, 1 << 20  # of a partition: at first, and where these end early
_ANSWER_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class TimeLag:
    """For how long the oldest unread record has been in its partition, in seconds.

    `bound` says what `seconds` is to the truth: EXACT, AT_LEAST, or UNKNOWN with None. `reason`
    says why it is not exact: `deleted` (the record at the offset is below the start of the log;
    this is the age of the first one that is left), `compacted` (it was removed; this is the age of
    the next one), `no_timestamp` (the record has none), `clock` (its time is ahead of this
    machine's), `not_read` (the time was up). The times are the producers' where `timestamp_type` is
    "create", and may be wrong; "append" is the broker's. Nothing to read is 0, without a record.
    """

    seconds: float | None
    bound: Bound = Bound.EXACT
    reason: str | None = None
    record_offset: int | None = None
    timestamp_ms: int | None = None
    timestamp_type: Literal["create", "append"] | None = None

    @property
    def figure(self) -> Figure:
        """The same as a figure, which prints itself with its bound."""
        return Figure(self.seconds, self.bound, 0.0, self.reason)


_NOT_READ = TimeLag(None, Bound.UNKNOWN, NOT_READ)
_NOTHING = TimeLag(0.0)


async def time_lags(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    *,
    read_committed: bool,
    deadline: float,
) -> Outcomes[TopicPartition, TimeLag]:
    """See `AdminClient.time_lags`."""
    first = _Reading(cluster, offsets, read_committed=read_committed)
    outcomes = await first.run(deadline)
    outside = [
        key
        for key, outcome in outcomes.items()
        if isinstance(outcome, ApiError) and outcome.code is ErrorCode.OFFSET_OUT_OF_RANGE
    ]
    if not outside:
        return Outcomes(outcomes)
    starts = await list_offsets(
        cluster, dict.fromkeys(outside, "earliest"), read_committed=False, deadline=deadline
    )
    outcomes |= starts.failed
    found = {key: start.offset or 0 for key, start in starts.succeeded.items()}
    outcomes |= {key: _NOTHING for key in found if offsets[key] >= found[key]}  # beyond the end
    below = {key: start for key, start in found.items() if offsets[key] < start}
    again = _Reading(cluster, below, read_committed=read_committed)
    again.are_deleted = True
    return Outcomes({**outcomes, **await again.run(deadline)})


class _Reading:
    """Reads on from each offset, to the first record that a consumer would get."""

    def __init__(
        self, cluster: Cluster, offsets: Mapping[TopicPartition, int], *, read_committed: bool
    ) -> None:
        self.are_deleted = False  # whether there were records before these offsets
        self._cluster = cluster
        self._read_committed = read_committed
        self._places = dict(offsets)  # where to read on
        self._expected = dict(offsets)  # the offset that the record has, if none was removed
        self._cut: set[TopicPartition] = set()  # partitions of which more bytes are wanted

    async def run(self, deadline: float) -> dict[TopicPartition, TimeLag | ApiError]:
        return await settle(
            self._cluster,
            self._places,
            leaders(self._cluster),
            self._ask,
            deadline=deadline,
            unfinished=lambda lag: lag is _NOT_READ,
        )

    async def _ask(
        self, node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, TimeLag | ApiError]:
        answer: FetchResponse = await self._cluster.ask(
            node, self._request(keys), deadline=deadline, at_most=_BY_NAME
        )
        if answer.error_code:
            return dict.fromkeys(keys, api_error(answer.error_code))
        outcomes: dict[TopicPartition, TimeLag | ApiError] = {}
        for topic in answer.responses:
            for partition in topic.partitions:
                key = TopicPartition(topic.topic, partition.partition_index)
                if partition.error_code:
                    outcomes[key] = api_error(partition.error_code)
                elif key in self._places:
                    outcomes[key] = self._lag_or_error(key, partition)
        return outcomes

    def _request(self, keys: Sequence[TopicPartition]) -> FetchRequest:
        topics = [
            FetchTopic(
                topic=name,
                partitions=[
                    self._partition(TopicPartition(name, partition)) for partition in partitions
                ],
            )
            for name, partitions in by_topic(keys).items()
        ]
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_ANSWER_BYTES,
            isolation_level=int(self._read_committed),
            topics=topics,
        )

    def _partition(self, key: TopicPartition) -> FetchPartition:
        return FetchPartition(
            partition=key.partition,
            fetch_offset=self._places[key],
            partition_max_bytes=_MORE_BYTES if key in self._cut else _FIRST_BYTES,
        )

    def _lag_or_error(self, key: TopicPartition, answer: PartitionData) -> TimeLag | ApiError:
        try:
            record = self._first_record(key, answer)
        except WireError as error:
            text = f"{key} at offset {self._places[key]}: {error}"
            return ApiError(ErrorCode.CORRUPT_MESSAGE, text)
        if record is not None:
            return self._lag(key, record)
        end = answer.last_stable_offset if self._read_committed else answer.high_watermark
        if self._places[key] < end:
            self._cut.add(key)
            return _NOT_READ
        return TimeLag(0.0, Bound.AT_LEAST, DELETED) if self.are_deleted else _NOTHING

    def _first_record(self, key: TopicPartition, answer: PartitionData) -> AnyRecord | None:
        """The first record from the place on; the place moves over what nobody gets: markers of
        transactions, aborted records, and batches that compaction has emptied.
        """
        data, position = answer.records or b"", 0
        aborted = AbortedBatchFilter(answer.aborted_transactions) if self._read_committed else None
        while position < len(data):
            if len(data) - position < HEADER_SIZE:  # a broker may cut the last batch anywhere
                return None
            header = peek(data, position)
            if header.length > len(data) - position:
                return None
            if header.last_offset >= self._places[key]:
                check(data, position, header)
            if aborted is None:
                is_hidden = header.is_control
            else:
                is_hidden = aborted.drops(data, position, header)
            if header.last_offset >= self._places[key]:
                if not is_hidden:
                    found = records_of(key, data, position, header, self._places[key])
                    if found:
                        return found[0]
                elif header.base_offset <= self._expected[key]:
                    self._expected[key] = header.last_offset + 1
                self._places[key] = header.last_offset + 1
            position += header.length
        return None

    def _lag(self, key: TopicPartition, record: AnyRecord) -> TimeLag:
        at = (record.offset, record.timestamp_ms, record.timestamp_type)
        if record.timestamp_ms < 0:
            return TimeLag(None, Bound.UNKNOWN, NO_TIMESTAMP, record.offset)
        now_ms = environment().clock.time_ns() // 1_000_000
        seconds = (now_ms - record.timestamp_ms) / 1000
        if seconds < 0:
            return TimeLag(0.0, Bound.AT_LEAST, CLOCK, *at)
        if self.are_deleted:
            return TimeLag(seconds, Bound.AT_LEAST, DELETED, *at)
        if record.offset != self._expected[key]:
            return TimeLag(seconds, Bound.AT_LEAST, COMPACTED, *at)
        return TimeLag(seconds, Bound.EXACT, None, *at)
