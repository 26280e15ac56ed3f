# SPDX-License-Identifier: Apache-2.0
"""OffsetForLeaderEpoch: where the records of a leader ended (KIP-320)."""

from typing import Any

from kohort.errors import ApiError
from kohort.machines.effects import Call
from kohort.server.access import DESCRIBE, may_act_as_broker
from kohort.server.apis.leaders import check_leader_epoch, led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.steps import StepBudget, Steps
from kohort.terms import Millis
from kohort.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

_NO_EPOCH = -1


def offset_for_leader_epoch(
    node: Node, call: Call[OffsetForLeaderEpochRequest], _now: Millis
) -> Steps[Any]:
    """Where the records of an epoch ended: where those of the next one begin (KIP-320)."""
    client = call.client
    is_broker = may_act_as_broker(node.cluster.may, client)
    answer = PiecewiseAnswer(node, call, "topics")
    step_budget = StepBudget()
    for wanted in call.request.topics:
        if step_budget.is_over():
            yield
        topic = topic_named(node, client, DESCRIBE, wanted.topic, is_broker=is_broker)
        answers = []
        for partition in wanted.partitions:
            if step_budget.is_over():
                yield
                topic = topic_named(node, client, DESCRIBE, wanted.topic, is_broker=is_broker)
            try:
                answers.append(_epoch_end(node, topic, partition))
            except ApiError as error:
                answers.append(EpochEndOffset(error_code=error.code, partition=partition.partition))
        answer.add(
            OffsetForLeaderTopicResult(topic=wanted.topic, partitions=answers), 1 + len(answers)
        )
    return answer.whole()


def _epoch_end(
    node: Node, topic: Topic | ApiError, wanted: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition = led_partition(node, topic, wanted.partition)
    check_leader_epoch(partition, wanted.current_leader_epoch)
    found = None if wanted.leader_epoch == _NO_EPOCH else partition.epoch_end(wanted.leader_epoch)
    if found is None:
        return EpochEndOffset(error_code=0, partition=wanted.partition)
    epoch, end = found
    return EpochEndOffset(
        error_code=0, partition=wanted.partition, leader_epoch=epoch, end_offset=end
    )
