# SPDX-License-Identifier: Apache-2.0
"""Fetch: whole batches from many partitions, now or when enough has arrived.

Bytes go from the log to the answer unchanged. A fetch that finds too little is parked. It reads
again when it is woken or when its time is over. Committed records of a long log can be told once
that is read, and a file is read from once its headers are: such a fetch waits for it, whatever its
time.
"""

from collections import deque
from collections.abc import Sequence

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.access import READ, TOPIC, may_act_as_broker, refusal
from kohort.server.apis.leaders import (
    NOT_SAID,
    check_leader_epoch,
    led_partition,
    topic_named,
    whereabouts,
)
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.server.partitions.log_reader import AT_ONCE_BATCHES, PendingRead
from kohort.server.partitions.log_reads import FileHeaders
from kohort.server.partitions.partition import READ_COMMITTED, Partition
from kohort.server.requests.fetch_purgatory import DelayedFetch
from kohort.server.requests.fetch_sessions import FetchSession, TopicKey
from kohort.terms import Millis, Offset, TopicId
from kohort.wire.batch import walk
from kohort.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_BY_ID_SINCE = 13
LEAST_ROOM_BYTES = 1 << 20  # of an answer, however many answers other clients have not read yet
# Refusals that are made before any log is looked at.
_NOT_THERE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


def fetch(node: Node, call: Call[FetchRequest], now: Millis) -> FetchResponse | None:
    """Answer at once when there is enough, an error to tell, or no time to wait; else park."""
    request = call.request
    try:
        session = node.cluster.fetch_sessions.session_of(
            request, uses_ids=call.version >= _BY_ID_SINCE
        )
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    reading = _FetchPass(node, call.client, request, session, call.version)
    response = reading.read()
    if reading.unread:
        late = DelayedFetch(call.token, reading.answer_now, [], 0, now)
        scheduler = node.cluster.scheduler  # thousands may wait for one log
        node.cluster.log_reads.when_read(reading.unread, lambda: scheduler.enter(late))
        return None
    if (
        request.max_wait_ms <= 0
        or reading.found_bytes >= request.min_bytes
        or reading.failed
        or not reading.watched
    ):
        return reading.answer(response)
    parked = node.cluster.park(
        call.token,
        reading.answer_now,
        reading.watched,
        missing_bytes=request.min_bytes - reading.found_bytes,
        deadline=Millis(now + request.max_wait_ms),
    )
    if session is not None:
        session.parked = parked
    return None


class _FetchPass:
    """One fetch: what it wants, and what one pass over the partitions has found."""

    __slots__ = (
        "client",
        "committed",
        "failed",
        "follower",
        "found_bytes",
        "node",
        "request",
        "session",
        "unread",
        "version",
        "wanted",
        "watched",
    )

    def __init__(
        self,
        node: Node,
        client: Client,
        request: FetchRequest,
        session: FetchSession | None,
        version: int,
    ) -> None:
        self.node = node
        self.client = client
        self.request = request
        self.session = session
        self.version = version
        # No other broker has a copy of a partition, so those that ask for one are told so.
        replica_id = max(request.replica_id, request.replica_state.replica_id)
        self.follower = replica_id >= 0
        self.committed = request.isolation_level == READ_COMMITTED
        self.found_bytes = 0
        self.failed = False
        self.unread: (
            list[PendingRead] | None
        ) = []  # these first; None once it is the time to answer
        self.watched: list[tuple[str, int]] = []
        self.wanted: Sequence[tuple[TopicKey, Sequence[FetchPartition]]] = (
            _named_once(request.topics) if session is None else [*session.wanted()]
        )

    def answer_now(self) -> FetchResponse:
        """The second pass of a parked fetch: whatever is there now is the answer."""
        self.unread = None
        return self.answer(self.read())

    def read(self) -> FetchResponse:
        """One pass over all partitions, within the limits of the request."""
        self.found_bytes = 0
        self.failed = False
        self.watched = []
        cluster = self.node.cluster
        room = max(cluster.unsent.left, LEAST_ROOM_BYTES)
        left = min(self.request.max_bytes, cluster.config.fetch_max_bytes, room)
        by_id = self.version >= _BY_ID_SINCE
        is_broker = self.follower and may_act_as_broker(cluster.may, self.client)
        elsewhere: dict[int, NodeEndpoint] = {}
        responses = []
        for (name, topic_id), partitions in self.wanted:
            if not partitions:
                continue
            topic = topic_named(
                self.node, self.client, READ, name, topic_id, by_id=by_id, is_broker=is_broker
            )
            if self.follower and not is_broker:
                topic = refusal(TOPIC)
            answers = []
            for wanted in partitions:
                try:
                    answers.append(self._read_partition(topic, wanted, left - self.found_bytes))
                except ApiError as error:
                    answers.append(self._refused(topic, wanted, error, elsewhere))
            responses.append(
                FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=answers)
            )
        return FetchResponse(responses=responses, node_endpoints=list(elsewhere.values()))

    def answer(self, response: FetchResponse) -> FetchResponse:
        """The answer as the client expects it: with a session, only what has changed."""
        session = self.session
        if session is not None:
            response.session_id = session.session_id
            response.responses = session.changes(
                response.responses, everything=self.request.session_epoch == 0
            )
        return response

    def _read_partition(
        self, topic: Topic | ApiError, wanted: FetchPartition, left: int
    ) -> PartitionData:
        partition = led_partition(self.node, topic, wanted.partition)
        check_leader_epoch(partition, max(wanted.current_leader_epoch, NOT_SAID))
        if self.follower:
            raise _no_replica(partition, wanted)
        self.watched.append((partition.topic.name, wanted.partition))
        if self.unread is not None:
            if self.committed and partition.read_on(AT_ONCE_BATCHES):
                self.unread.append(partition)
            start = Offset(wanted.fetch_offset)
            if partition.log.lacks_index(start):
                self.unread.append(FileHeaders(partition, start))
        if self.unread:  # there will be another pass
            return PartitionData()
        diverged = _diverged(partition, wanted)
        if diverged is not None:
            self.failed = True
            return PartitionData(
                partition_index=wanted.partition,
                error_code=0,
                high_watermark=partition.high_watermark,
                last_stable_offset=partition.last_stable_offset_if_known,
                log_start_offset=partition.log.start,
                diverging_epoch=diverged,
                aborted_transactions=[] if self.committed else None,
                records=b"",
            )
        end = partition.last_stable_offset() if self.committed else partition.high_watermark
        records = b""
        limit = min(wanted.partition_max_bytes, left)
        if limit > 0 or not self.found_bytes:
            records = partition.read(wanted.fetch_offset, max(limit, 0), end)
            # The first batch of an answer comes whatever its size: no client gets stuck (KIP-74).
            if len(records) > max(limit, 0) and self.found_bytes:
                records = b""
            self.found_bytes += len(records)
        return PartitionData(
            partition_index=wanted.partition,
            error_code=0,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset_if_known,
            log_start_offset=partition.log.start,
            aborted_transactions=(
                _aborted(partition, wanted.fetch_offset, records) if self.committed else None
            ),
            records=records,
        )

    def _refused(
        self,
        topic: Topic | ApiError,
        wanted: FetchPartition,
        error: ApiError,
        elsewhere: dict[int, NodeEndpoint],
    ) -> PartitionData:
        """The error of one partition. For some errors others wait on, as upstream's do."""
        not_there = error.code in _NOT_THERE
        if not not_there:
            self.failed = True
        data = PartitionData(
            partition_index=wanted.partition,
            error_code=error.code,
            high_watermark=-1,
            aborted_transactions=[] if not_there else None,
            records=b"",
        )
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and isinstance(topic, Topic):
            leader, epoch = whereabouts(self.node, topic, wanted.partition)
            if leader is not None:
                data.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=epoch)
                elsewhere[leader.id] = NodeEndpoint(
                    node_id=leader.id, host=leader.host, port=leader.port, rack=leader.rack
                )
        return data


def _no_replica(partition: Partition, wanted: FetchPartition) -> ApiError:
    """The refusal of a broker that has no copy of the partition (KIP-392 knows no others)."""
    said_epoch = wanted.current_leader_epoch > NOT_SAID
    return ApiError(
        ErrorCode.UNKNOWN_LEADER_EPOCH if said_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"{partition} has no replica that would fetch from its leader",
    )


def _named_once(topics: list[FetchTopic]) -> Sequence[tuple[TopicKey, Sequence[FetchPartition]]]:
    """The partitions of a fetch without a session. One that is named again is answered once, and as
    it is named last: upstream keeps them in a map.
    """
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        (topic,) = topics
        return (((topic.topic, TopicId(topic.topic_id)), topic.partitions),)
    found: dict[TopicKey, dict[int, FetchPartition]] = {}
    for topic in topics:
        known = found.setdefault((topic.topic, TopicId(topic.topic_id)), {})
        known.update({wanted.partition: wanted for wanted in topic.partitions})
    return [(key, [*known.values()]) for key, known in found.items()]


def _diverged(partition: Partition, wanted: FetchPartition) -> EpochEndOffset | None:
    """Where the reader's records and ours part, when it says of what leader epoch its last ones
    were (KIP-595). Raises ApiError when it is an epoch that was never here.
    """
    last = wanted.last_fetched_epoch
    if last <= NOT_SAID:
        return None
    found = partition.epoch_end(last)
    if found is None or wanted.fetch_offset < partition.log.start:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} begins at {partition.log.start}, its epoch is {partition.leader_epoch}, "
            f"asked for is offset {wanted.fetch_offset} behind a record of epoch {last}",
        )
    epoch, end = found
    if epoch >= last and end >= wanted.fetch_offset:
        return None
    return EpochEndOffset(epoch=epoch, end_offset=end)


def _aborted(partition: Partition, start: int, records: bytes) -> list[AbortedTransaction]:
    """What a reader of committed records must leave out of these."""
    if not records or not partition.aborted(Offset(start), partition.high_watermark):
        return []  # as nearly always: the batches need not be looked at
    last = deque(walk(records), maxlen=1)[0][1]
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first)
        for aborted in partition.aborted(Offset(start), Offset(last.last_offset + 1))
    ]
