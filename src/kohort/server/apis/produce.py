"""Produce: each batch goes to its partition, and is answered by itself.

Several entries of one topic are answered as one, as upstream does. Of several batches for one
partition upstream writes only the last, without an error for the others; here each is written.
"""

from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.server import incoming
from kohort.server.access import WRITE
from kohort.server.apis import unsupported
from kohort.server.apis.leaders import led_partition, topic_named, whereabouts
from kohort.server.catalog import Topic
from kohort.server.incoming import RefusedRecords
from kohort.server.node import Node
from kohort.server.partitions import Partition
from kohort.terms import Millis, TopicId
from kohort.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

# Upstream's refusals show the start of the log once it has looked at the log, except these.
_START_IS_NOT_TOLD = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_NO_OFFSET = -1


def produce(node: Node, call: Call[ProduceRequest], now: Millis) -> None:
    """Append each batch to its partition, and answer when all of them are durable, also a batch
    that was there already. With acks=0 there is no answer, and a refusal closes the connection.
    """
    request = call.request
    touched: list[Partition] = []
    try:
        response, refused = _produced(node, call, now, touched)
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
    node: Node, call: Call[ProduceRequest], now: Millis, touched: list[Partition]
) -> tuple[ProduceResponse, bool]:
    """The answer, and whether it holds a refusal. `touched` gets the written partitions."""
    request, version = call.request, call.version
    if request.transactional_id is not None:
        raise unsupported.transactional(node.cluster.may, call.client, request.transactional_id)
    for wanted in request.topic_data:
        for data in wanted.partition_data:
            incoming.check_readable(data.records)  # before anything is written
    refused = False
    elsewhere: dict[int, NodeEndpoint] = {}
    by_topic: dict[tuple[str, bytes], list[PartitionProduceResponse]] = {}
    for wanted in request.topic_data:
        topic = topic_named(
            node,
            call.client,
            WRITE,
            wanted.name,
            TopicId(wanted.topic_id),
            by_id=version >= 13,
        )
        answers = by_topic.setdefault((wanted.name, wanted.topic_id), [])
        for data in wanted.partition_data:
            try:
                partition = _own_partition(node, topic, data.index)
                batch = incoming.one_batch(data.records, version)
                _check_acks(request.acks)
                answers.append(_append(node, partition, data.index, batch, now))
                touched.append(partition)
            except ApiError as error:
                refused = True
                answers.append(_refused(node, topic, data.index, error, elsewhere))
    responses = [
        TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=answers)
        for (name, topic_id), answers in by_topic.items()
        if answers
    ]
    return (
        ProduceResponse(responses=responses, node_endpoints=list(elsewhere.values())),
        refused,
    )


def _check_acks(acks: int) -> None:
    if acks not in (-1, 0, 1):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}, expected -1, 0 or 1")


def _own_partition(node: Node, topic: Topic | ApiError, index: int) -> Partition:
    partition = led_partition(node, topic, index)
    if partition.topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {partition.topic.name} is internal and takes no records from clients",
        )
    return partition


def _append(
    node: Node, partition: Partition, index: int, batch: bytes, now: Millis
) -> PartitionProduceResponse:
    try:
        appended = partition.append(batch, now)
    except ApiError as error:
        raise _InLog(error, partition) from error
    if appended.size_bytes:
        node.cluster.wrote(partition, now, appended.size_bytes)
    return PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.start,
    )


class _InLog(ApiError):  # noqa: N818  (where it comes from)
    """A refusal that was made after looking at the log."""

    def __init__(self, error: ApiError, partition: Partition) -> None:
        super().__init__(error.code, error.message)
        self.records = error.records if isinstance(error, RefusedRecords) else ()
        self.start = _NO_OFFSET if error.code in _START_IS_NOT_TOLD else partition.log.start


def _refused(
    node: Node,
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
    if isinstance(error, _InLog):
        response.log_start_offset = error.start
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text)
            for place, text in error.records
        ]
    elif error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and isinstance(topic, Topic):
        leader, epoch = whereabouts(node, topic, index)
        response.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=epoch)
        elsewhere[leader.id] = NodeEndpoint(node_id=leader.id, host=leader.host, port=leader.port)
    return response
