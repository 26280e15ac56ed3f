"""DescribeProducers: who has written to a partition, to find transactions that nobody ends
(KIP-664).
"""

from typing import Any

from kohort.coordinator.effects import Call
from kohort.errors import ApiError
from kohort.server.access import READ
from kohort.server.apis.leaders import led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.server.pace import Pace
from kohort.server.piecewise import PiecewiseAnswer
from kohort.server.steps import Steps
from kohort.terms import Millis
from kohort.wire.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

_NO_OFFSET = -1


def describe_producers(node: Node, call: Call[DescribeProducersRequest], now: Millis) -> Steps[Any]:
    """Each partition by itself. A producer without an open transaction is there as well, until it
    has been silent for producer.id.expiration.ms.
    """
    told: set[tuple[str, int]] = set()  # a partition that is named again is answered once
    answer = PiecewiseAnswer(node, call, "topics")
    pace = Pace()
    for wanted in call.request.topics:
        if pace.is_over():
            yield
        topic = topic_named(node, call.client, READ, wanted.name)
        answers = []
        for index in wanted.partition_indexes:
            if (wanted.name, index) in told:
                continue
            told.add((wanted.name, index))
            try:
                answers.append(_described(node, topic, index, now))
            except ApiError as error:
                answers.append(PartitionResponse(partition_index=index, error_code=error.code))
            if pace.is_over(1 + len(answers[-1].active_producers)):
                yield
                topic = topic_named(node, call.client, READ, wanted.name)
        if answers or not wanted.partition_indexes:
            answer.add(TopicResponse(name=wanted.name, partitions=answers), 1 + len(answers))
    return answer.whole()


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
