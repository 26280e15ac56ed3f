"""DescribeProducers: who has written to a partition, to find transactions that nobody ends
(KIP-664).
"""

from kohort.coordinator.effects import Call
from kohort.errors import ApiError
from kohort.server.access import READ
from kohort.server.apis.leaders import led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

_NO_OFFSET = -1


def describe_producers(
    node: Node, call: Call[DescribeProducersRequest], now: Millis
) -> DescribeProducersResponse:
    """Each partition by itself. A producer without an open transaction is there as well, until it
    has been silent for producer.id.expiration.ms.
    """
    topics = []
    for wanted in call.request.topics:
        topic = topic_named(node, call.client, READ, wanted.name)
        answers = []
        for index in wanted.partition_indexes:
            try:
                answers.append(_described(node, topic, index, now))
            except ApiError as error:
                answers.append(PartitionResponse(partition_index=index, error_code=error.code))
        topics.append(TopicResponse(name=wanted.name, partitions=answers))
    return DescribeProducersResponse(topics=topics)


def _described(node: Node, topic: Topic | ApiError, index: int, now: Millis) -> PartitionResponse:
    partition = led_partition(node, topic, index)
    states = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=_NO_OFFSET if begun is None else begun,
        )
        for producer, begun in partition.active_producers(now)
    ]
    return PartitionResponse(partition_index=index, active_producers=states)
