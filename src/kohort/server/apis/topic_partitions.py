# SPDX-License-Identifier: Apache-2.0
"""DescribeTopicPartitions: topics by name, a page at a time (KIP-966)."""

from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import DESCRIBE, TOPIC, check, operations
from kohort.server.apis.leaders import state_of
from kohort.server.catalog import Topic, check_topic_name
from kohort.server.node import Node
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.steps import StepBudget, Steps
from kohort.terms import NO_TOPIC_ID, Millis
from kohort.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def describe_topic_partitions(
    node: Node, call: Call[DescribeTopicPartitionsRequest], _now: Millis
) -> Steps[Any]:
    """Topics by name, up to a number of partitions; a cursor says where to go on."""
    request = call.request
    config = node.cluster.config
    catalog = node.cluster.catalog
    may, client = node.cluster.may, call.client
    names = sorted({topic.name for topic in request.topics})
    if not names:  # all that there are for this client
        names = sorted(name for name in catalog.by_name if may(client, DESCRIBE, TOPIC, name))
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"cursor at partition {cursor.partition_index}, expected at least 0",
            )
        if request.topics and cursor.topic_name not in names:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"cursor at topic {cursor.topic_name!r}, expected one of those asked for",
            )
        names = [name for name in names if name >= cursor.topic_name]
    # A page is never empty, or a client that follows the cursor would never reach the end.
    left = max(1, min(request.response_partition_limit, config.max_request_partition_size_limit))
    answer = PiecewiseAnswer(node, call, "topics")
    step_budget = StepBudget()
    for name in names:
        if left <= 0:
            return _page(answer, Cursor(topic_name=name, partition_index=0))
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        try:
            check(may, client, DESCRIBE, TOPIC, name)
        except ApiError as refused:
            answer.add(_refused(name, refused))
            continue
        if step_budget.is_over():
            yield
        topic = catalog.by_name.get(name)
        described = yield from _described(node, name, topic, first, left, step_budget)
        if topic is not None and topic.topic_id not in catalog.by_id:  # deleted meanwhile
            topic = None
            described = _unknown(name)
        described.topic_authorized_operations = operations(may, client, TOPIC, name)
        count = len(described.partitions)
        answer.add(described, 1 + count)
        left -= count
        if topic is not None and first < topic.partitions > first + count:
            return _page(answer, Cursor(topic_name=name, partition_index=first + count))
    return _page(answer, None)


def _page(answer: PiecewiseAnswer, next_cursor: Cursor | None) -> Any:
    return answer.whole(DescribeTopicPartitionsResponse(next_cursor=next_cursor))


def _described(
    node: Node, name: str, topic: Topic | None, first: int, limit: int, step_budget: StepBudget
) -> Steps[DescribeTopicPartitionsResponseTopic]:
    """One topic, from a partition on. Refusals show the authorised operations, too."""
    if topic is None:
        return _unknown(name)
    partitions = []
    for index in range(first, min(topic.partitions, first + limit)):
        if step_budget.is_over():
            yield
        state = state_of(node, topic, index)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=state.error_code,
                partition_index=index,
                leader_id=state.leader_id,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.in_sync,
                offline_replicas=state.offline,
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    try:
        check_topic_name(name)
    except ApiError as error:
        return _refused(name, error)
    return _refused(name, ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def _refused(name: str, error: ApiError) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error.code, name=name, topic_id=NO_TOPIC_ID, partitions=[]
    )
