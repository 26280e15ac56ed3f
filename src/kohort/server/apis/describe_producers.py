# SPDX-License-Identifier: Apache-2.0
"""DescribeProducers: who has written to a partition, to find transactions that nobody ends
(KIP-664).
"""

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import READ
from kohort.server.apis.leaders import led_partition, topic_named
from kohort.server.node import Node
from kohort.server.partitions.log_reader import PendingReadError
from kohort.server.partitions.log_reads import STEP_BATCHES
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.steps import STEP_ELEMENTS, StepBudget, Steps
from kohort.terms import Millis
from kohort.wire.codec import piecewise_encoder
from kohort.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

_NO_OFFSET = -1
_TEXTS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def describe_producers(node: Node, call: Call[DescribeProducersRequest], now: Millis) -> Steps[Any]:
    """Each partition by itself. A producer without an open transaction is there as well, until it
    has been silent for producer.id.expiration.ms.

    A partition with many producers stands in an element of its own, beside its topic's others.
    """
    told: set[tuple[str, int]] = set()  # a partition that is named again is answered once
    answer = PiecewiseAnswer(node, call, "topics")
    step_budget = StepBudget()
    for wanted in call.request.topics:
        if step_budget.is_over():
            yield
        answers: list[PartitionResponse] = []
        for index in wanted.partition_indexes:
            if (wanted.name, index) in told:
                continue
            told.add((wanted.name, index))
            found = PartitionResponse(partition_index=index)
            try:
                states = yield from _states(node, call, wanted.name, index, now)
            except ApiError as error:
                found.error_code, states = error.code, iter(())
                found.error_message = _TEXTS.get(error.code)
            found.active_producers = list(islice(states, STEP_ELEMENTS))
            if len(found.active_producers) < STEP_ELEMENTS:
                answers.append(found)
                if step_budget.is_over(1 + len(found.active_producers)):
                    yield
            else:
                answer.add_encoded((yield from _encoded(wanted.name, found, states, call.version)))
        if answers or not wanted.partition_indexes:
            answer.add(TopicResponse(name=wanted.name, partitions=answers), 1 + len(answers))
    return answer.whole()


def _states(
    node: Node, call: Call[DescribeProducersRequest], name: str, index: int, now: Millis
) -> Steps[Iterator[ProducerState]]:
    """The producers of a partition, which may have to be read from its log. Raises ApiError."""
    while True:
        partition = led_partition(node, topic_named(node, call.client, READ, name), index)
        try:
            producers = partition.active_producers(now)
            break
        except PendingReadError as error:
            if error.unread is not None:
                error.unread.read_on(STEP_BATCHES)
        yield
    return (
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=_NO_OFFSET if begun is None else begun,
        )
        for producer, begun in producers
    )


def _encoded(
    name: str, found: PartitionResponse, more: Iterator[ProducerState], version: int
) -> Generator[None, None, list[bytes]]:
    """A topic with one partition that has more producers than are encoded at once."""
    partition = piecewise_encoder(
        PartitionResponse, version, "active_producers", DescribeProducersResponse
    )
    topic = piecewise_encoder(TopicResponse, version, "partitions", DescribeProducersResponse)
    pieces: list[bytes] = []
    count = 0
    while found.active_producers:
        count += len(found.active_producers)
        pieces.append(partition.elements(found))
        yield
        found.active_producers = list(islice(more, STEP_ELEMENTS))
    first, last = topic.around(TopicResponse(name=name), 1)
    before, behind = partition.around(found, count)
    return [first, before, *pieces, behind, last]
