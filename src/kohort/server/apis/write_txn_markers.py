# SPDX-License-Identifier: Apache-2.0
"""WriteTxnMarkers: what one broker asks another; here, what a tool asks about a transaction that
nobody ends (KIP-664).
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain

from kohort.coordinator.offsets.transactional import EndOffsets
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client, Marker, Producer
from kohort.server.access import ALTER, CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, refusal
from kohort.server.apis.leaders import led_partition
from kohort.server.catalog import OFFSETS_TOPIC
from kohort.server.coordinators.marker_sender import ANYTHING
from kohort.server.node import Node
from kohort.server.requests.piecewise import answer_in_pieces
from kohort.server.requests.reply_tokens import (
    ContinuationToken,
    GatherToken,
    MappingToken,
    ReplyToken,
    ask_in_sequence,
)
from kohort.server.requests.steps import STEP_ELEMENTS, StepBudget, Steps, slices
from kohort.terms import Millis, PartitionIndex
from kohort.wire.messages import write_txn_markers as wire
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)


def write_markers(node: Node, call: Call[WriteTxnMarkersRequest], _now: Millis) -> Steps[None]:
    """Each marker goes to each of its partitions, and is answered once it is durable there."""
    may, client = node.cluster.may, call.client
    if not any(
        may(client, operation, CLUSTER, CLUSTER_NAME) for operation in (CLUSTER_ACTION, ALTER)
    ):
        raise refusal(CLUSTER)
    markers = call.request.markers
    places: list[tuple[WritableTxnMarker, str, int]] = []
    step_budget = StepBudget()
    for marker in markers:
        if step_budget.is_over():
            yield
        for topic in marker.topics:
            places += [(marker, topic.name, index) for index in topic.partition_indexes]
            if step_budget.is_over(1 + len(topic.partition_indexes)):
                yield
    parts = slices(places, STEP_ELEMENTS)

    def write(token: ReplyToken, number: int) -> None:
        gather = GatherToken(token, len(parts[number]), list)
        for at, (marker, name, index) in enumerate(parts[number]):
            part = gather.part(at)
            act = partial(_write_one, node, client, marker, name, index, part)
            node.cluster.log_reads.attempt(act, part)

    def answer(codes: Iterator[int]) -> None:
        results = (_result(marker, codes) for marker in markers)
        answer_in_pieces(node, call, "markers", results)

    token = ContinuationToken(call.token, answer)
    ask_in_sequence(node.cluster.scheduler, token, len(parts), write, chain.from_iterable)


def _result(marker: WritableTxnMarker, codes: Iterator[int]) -> wire.WritableTxnMarkerResult:
    """The result of a marker; its codes are the next ones."""
    return wire.WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            wire.WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    wire.WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=next(codes)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def _write_one(
    node: Node, client: Client, marker: WritableTxnMarker, name: str, index: int, token: ReplyToken
) -> None:
    """Write one marker; the token is answered with its code. Raises PendingReadError."""
    try:
        _write(node, client, marker, name, index, token)
    except ApiError as error:
        token.answer(error.code)


def _write(
    node: Node, client: Client, marker: WritableTxnMarker, name: str, index: int, token: ReplyToken
) -> None:
    """Raises ApiError or PendingReadError."""
    cluster = node.cluster
    topic = cluster.catalog.by_name.get(name) or ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = led_partition(node, topic, index)
    producer = Producer(marker.producer_id, marker.producer_epoch)
    partition.check_marker(producer, marker.coordinator_epoch, cluster.now)
    shard = cluster.drivers.get(PartitionIndex(index)) if name == OFFSETS_TOPIC else None
    if shard is not None:
        ends = EndOffsets(producer, Marker(marker.transaction_result, marker.coordinator_epoch))
        told = MappingToken(token, lambda error: error.code if error else ErrorCode.NONE)
        cluster.submit(shard, Call(told, ends, 0, client))
        return
    if partition.topic.is_internal:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition.end_transaction(
        producer,
        cluster.now,
        commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
    )
    cluster.wrote(partition, cluster.now, ANYTHING)
    cluster.answer_behind(token, ErrorCode.NONE, [partition])
