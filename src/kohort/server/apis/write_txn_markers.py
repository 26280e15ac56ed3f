"""WriteTxnMarkers: what one broker asks another; here, what a tool asks about a transaction that
nobody ends (KIP-664).
"""

from typing import Any

from kohort.coordinator.effects import Call, Marker, Producer
from kohort.coordinator.offsets.transactional import EndOffsets
from kohort.errors import ApiError, ErrorCode
from kohort.server.access import ALTER, CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, refusal
from kohort.server.apis.leaders import led_partition
from kohort.server.catalog import OFFSETS_TOPIC
from kohort.server.node import Node
from kohort.server.outbox import ANYTHING
from kohort.server.tokens import Gather, Mapped, Token
from kohort.terms import PartitionIndex
from kohort.wire.messages import write_txn_markers as wire
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def write_markers(node: Node, call: Call[WriteTxnMarkersRequest]) -> None:
    """Each marker goes to each of its partitions, and is answered once it is durable there."""
    may, client = node.cluster.may, call.client
    if not any(
        may(client, operation, CLUSTER, CLUSTER_NAME) for operation in (CLUSTER_ACTION, ALTER)
    ):
        raise refusal(CLUSTER)
    places = [
        (marker, topic.name, index)
        for marker in call.request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]

    def merge(codes: list[int]) -> WriteTxnMarkersResponse:
        left = iter(codes)
        return WriteTxnMarkersResponse(
            markers=[
                wire.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        wire.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                wire.WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=next(left)
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in call.request.markers
            ]
        )

    if not places:
        call.token.answer(merge([]))
        return
    gather = Gather(call.token, len(places), merge)
    for number, (marker, name, index) in enumerate(places):
        part = gather.part(number)
        try:
            _write(node, call, marker, name, index, part)
        except ApiError as error:
            part.answer(error.code)


def _write(
    node: Node,
    call: Call[Any],
    marker: WritableTxnMarker,
    name: str,
    index: int,
    token: Token,
) -> None:
    """Write one marker; the token is answered with its code. Raises ApiError."""
    cluster = node.cluster
    topic = cluster.catalog.by_name.get(name) or ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = led_partition(node, topic, index)
    producer = Producer(marker.producer_id, marker.producer_epoch)
    partition.check_marker(producer, marker.coordinator_epoch, cluster.now)
    shard = cluster.drivers.get(PartitionIndex(index)) if name == OFFSETS_TOPIC else None
    if shard is not None:
        ends = EndOffsets(producer, Marker(marker.transaction_result, marker.coordinator_epoch))
        told = Mapped(token, lambda error: error.code if error else ErrorCode.NONE)
        cluster.submit(shard, Call(told, ends, 0, call.client))
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
