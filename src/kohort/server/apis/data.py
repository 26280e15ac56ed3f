"""Records: producer ids, Produce, ListOffsets, OffsetForLeaderEpoch, DeleteRecords. Fetch: beside.

Every partition of a request is answered by itself: what is wrong with one leaves the others alone.
"""

from collections import Counter
from typing import TYPE_CHECKING

from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode, StorageError, WireError
from kohort.server.apis import unsupported
from kohort.server.apis.fetch import fetch
from kohort.server.apis.leaders import check_leader_epoch, leader_epoch, led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.partitions import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Partition,
)
from kohort.terms import Millis, TopicId
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kohort.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kohort.wire.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from kohort.server.node import Node

__all__ = [
    "delete_records",
    "fetch",
    "init_producer_id",
    "list_offsets",
    "offset_for_leader_epoch",
    "produce",
]

READ_COMMITTED = 1

# The first version of ListOffsets that knows each special timestamp; -1 and -2 were always there.
_SPECIAL_SINCE = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 32767

# Upstream shows the start of the log in these refusals: they were made with the log in hand.
_START_IS_TOLD = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TIMESTAMP,
    }
)


def _no_transactions(transactional_id: str) -> ApiError:
    if not transactional_id:
        return ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    return unsupported.transactions(transactional_id)


# --- InitProducerId


def init_producer_id(
    node: "Node", call: Call[InitProducerIdRequest], now: Millis
) -> InitProducerIdResponse:
    """A new id for an idempotent producer, whatever it had before."""
    del now
    transactional_id = call.request.transactional_id
    if transactional_id is not None:
        raise _no_transactions(transactional_id)
    try:
        producer_id = node.cluster.catalog.new_producer_id()
    except StorageError as error:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


# --- Produce


def produce(node: "Node", call: Call[ProduceRequest], now: Millis) -> None:
    """Append each batch to its partition, and answer when all of them are durable: one that was
    there already may still be on its way to the disk. With acks=0 nothing is answered, and a
    refusal closes.
    """
    request = call.request
    touched: list[Partition] = []
    try:
        response, refused = _produced(node, request, call.version, now, touched)
    except ApiError as error:
        if request.acks == 0:
            call.token.skip()
            raise WireError(str(error)) from error
        raise
    if request.acks != 0:
        node.cluster.answer_behind(call.token, response, touched)
        return
    call.token.skip()
    if refused:
        raise WireError("a Produce with acks=0 was refused; closing is the only way to say so")


def _produced(
    node: "Node",
    request: ProduceRequest,
    version: int,
    now: Millis,
    touched: list[Partition],
) -> tuple[ProduceResponse, bool]:
    """The answer, and whether something in it is a refusal. `touched` gets the partitions."""
    if request.transactional_id is not None:
        raise _no_transactions(request.transactional_id)
    if request.acks not in (-1, 0, 1):
        raise ApiError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, expected -1, 0 or 1"
        )
    refused = False
    elsewhere: dict[int, NodeEndpoint] = {}
    responses = []
    for wanted in request.topic_data:
        topic = topic_named(node, wanted.name, TopicId(wanted.topic_id), by_id=version >= 13)
        answers = []
        for data in wanted.partition_data:
            try:
                partition = _own_partition(node, topic, data.index)
                answers.append(_append(node, partition, data, now))
                touched.append(partition)
            except ApiError as error:
                refused = True
                answers.append(_refused(node, topic, data.index, error, elsewhere))
        responses.append(
            TopicProduceResponse(
                name=wanted.name, topic_id=wanted.topic_id, partition_responses=answers
            )
        )
    return (
        ProduceResponse(responses=responses, node_endpoints=list(elsewhere.values())),
        refused,
    )


def _own_partition(node: "Node", topic: Topic | ApiError, index: int) -> Partition:
    partition = led_partition(node, topic, index)
    if partition.topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {partition.topic.name} is internal and takes no records from clients",
        )
    return partition


def _append(
    node: "Node", partition: Partition, data: PartitionProduceData, now: Millis
) -> PartitionProduceResponse:
    appended = partition.append(data.records, now)
    if appended.size_bytes:
        node.cluster.wrote(partition, now, appended.size_bytes)
    return PartitionProduceResponse(
        index=data.index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.start,
    )


def _refused(
    node: "Node",
    topic: Topic | ApiError,
    index: int,
    error: ApiError,
    elsewhere: dict[int, NodeEndpoint],
) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        error_message=error.message or None,
    )
    if isinstance(topic, ApiError):
        return response
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = node.cluster.leader(topic, index)
        response.current_leader = LeaderIdAndEpoch(
            leader_id=leader, leader_epoch=leader_epoch(node, topic.name, index)
        )
        one = node.cluster.node(leader)
        if one is not None:
            elsewhere[leader] = NodeEndpoint(node_id=leader, host=one.host, port=one.port)
    elif error.code in _START_IS_TOLD:
        partition = node.cluster.partition(topic.name, index)
        if partition is not None:
            response.log_start_offset = partition.log.start
    return response


# --- ListOffsets


def list_offsets(node: "Node", call: Call[ListOffsetsRequest], now: Millis) -> ListOffsetsResponse:
    """The offset of a time or a special point. A partition named twice is refused, once."""
    del now
    request = call.request
    committed = request.isolation_level == READ_COMMITTED
    topics = []
    for wanted in request.topics:
        topic = topic_named(node, wanted.name)
        counts = Counter(one.partition_index for one in wanted.partitions)
        answers = [
            ListOffsetsPartitionResponse(
                partition_index=index, error_code=ErrorCode.INVALID_REQUEST
            )
            for index, count in counts.items()
            if count > 1
        ]
        for one in wanted.partitions:
            if counts[one.partition_index] == 1:
                try:
                    answers.append(_found(node, topic, one, call.version, committed=committed))
                except ApiError as error:
                    answers.append(
                        ListOffsetsPartitionResponse(
                            partition_index=one.partition_index, error_code=error.code
                        )
                    )
        topics.append(ListOffsetsTopicResponse(name=wanted.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _found(
    node: "Node",
    topic: Topic | ApiError,
    wanted: ListOffsetsPartition,
    version: int,
    *,
    committed: bool,
) -> ListOffsetsPartitionResponse:
    timestamp = wanted.timestamp
    if timestamp < -2 and version < _SPECIAL_SINCE.get(timestamp, _NEVER):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} is not known in v{version}"
        )
    partition = led_partition(node, topic, wanted.partition_index)
    check_leader_epoch(partition, wanted.current_leader_epoch)
    end = partition.last_stable_offset if committed else partition.high_watermark
    found = partition.find(timestamp, end)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=0,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


# --- OffsetForLeaderEpoch


def offset_for_leader_epoch(
    node: "Node", call: Call[OffsetForLeaderEpochRequest], now: Millis
) -> OffsetForLeaderEpochResponse:
    """Where an epoch ended (KIP-320). Nothing was ever cut off, so each is good to the end."""
    del now
    topics = []
    for wanted in call.request.topics:
        topic = topic_named(node, wanted.topic)
        answers = []
        for one in wanted.partitions:
            try:
                answers.append(_epoch_end(node, topic, one))
            except ApiError as error:
                answers.append(EpochEndOffset(error_code=error.code, partition=one.partition))
        topics.append(OffsetForLeaderTopicResult(topic=wanted.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def _epoch_end(
    node: "Node", topic: Topic | ApiError, wanted: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition = led_partition(node, topic, wanted.partition)
    check_leader_epoch(partition, wanted.current_leader_epoch)
    if not 0 <= wanted.leader_epoch <= partition.leader_epoch:
        return EpochEndOffset(error_code=0, partition=wanted.partition)
    return EpochEndOffset(
        error_code=0,
        partition=wanted.partition,
        leader_epoch=wanted.leader_epoch,
        end_offset=partition.high_watermark,
    )


# --- DeleteRecords


def delete_records(
    node: "Node", call: Call[DeleteRecordsRequest], now: Millis
) -> DeleteRecordsResponse:
    """Move the start of partitions forward (KIP-107)."""
    del now
    topics = []
    for wanted in call.request.topics:
        topic = topic_named(node, wanted.name)
        answers = []
        for one in wanted.partitions:
            try:
                answers.append(_deleted(node, topic, one))
            except ApiError as error:
                answers.append(
                    DeleteRecordsPartitionResult(
                        partition_index=one.partition_index,
                        low_watermark=-1,
                        error_code=error.code,
                    )
                )
        topics.append(DeleteRecordsTopicResult(name=wanted.name, partitions=answers))
    return DeleteRecordsResponse(topics=topics)


def _deleted(
    node: "Node", topic: Topic | ApiError, wanted: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    partition = led_partition(node, topic, wanted.partition_index)
    if partition.topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"records of {partition.topic.name} are the coordinator's to delete",
        )
    if partition.config.compacted and not partition.config.deleted:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{partition} is compacted, records cannot be deleted"
        )
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index,
        low_watermark=partition.delete_before(wanted.offset),
        error_code=0,
    )
