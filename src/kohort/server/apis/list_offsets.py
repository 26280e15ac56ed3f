# SPDX-License-Identifier: Apache-2.0
"""ListOffsets: the offset of a time, or of a special point such as the end."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import DESCRIBE
from kohort.server.apis.leaders import check_leader_epoch, led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.server.partitions.log_reader import AT_ONCE_BATCHES, PendingRead
from kohort.server.partitions.log_reads import FileHeaders
from kohort.server.partitions.partition import (
    AT_HAND,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
)
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.reply_tokens import ContinuationToken
from kohort.server.requests.steps import STEP_ELEMENTS, StepBudget, Steps, continue_in_steps
from kohort.terms import Millis
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

# The first version of ListOffsets that knows each special timestamp; every version knows -1 and -2.
_SPECIAL_SINCE = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 32767
_PARTITIONS = attrgetter("partitions")


def list_offsets(node: Node, call: Call[ListOffsetsRequest], _now: Millis) -> Steps[Any]:
    """The offset of a time or a special point. A partition named twice is refused, once. Where
    transactions must be known, this waits until the logs are read.
    """
    request = call.request
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"isolation level is {request.isolation_level}, expected 0 or 1",
        )
    committed = request.isolation_level == READ_COMMITTED
    if committed or any(map(_is_by_time, chain.from_iterable(map(_PARTITIONS, request.topics)))):
        unread = yield from _unread(node, call, committed=committed)
        if unread:
            then = ContinuationToken(
                call.token, lambda _: continue_in_steps(node, call, _answer(node, call))
            )
            node.cluster.log_reads.when_read(unread, lambda: then.answer(None))
            return None
    return (yield from _answer(node, call))


def _is_by_time(wanted: ListOffsetsPartition) -> bool:
    return wanted.timestamp not in AT_HAND


def _unread(
    node: Node, call: Call[ListOffsetsRequest], *, committed: bool
) -> Steps[list[PendingRead]]:
    """What must be read of logs first, and is too much for that to be done at once."""
    unread: dict[PendingRead, None] = {}
    step_budget = StepBudget()
    for asked in call.request.topics:
        if step_budget.is_over():
            yield
        topic = topic_named(node, call.client, DESCRIBE, asked.name)
        for wanted in asked.partitions:
            read = 1
            with suppress(ApiError):  # which is told when it is looked for
                partition = led_partition(node, topic, wanted.partition_index)
                if committed and not partition.is_read:
                    read = STEP_ELEMENTS
                    if partition.read_on(AT_ONCE_BATCHES):
                        unread[partition] = None
                if _is_by_time(wanted) and partition.log.index_some(None, 1):
                    unread[FileHeaders(partition, None)] = None
            if step_budget.is_over(read):
                yield
                topic = topic_named(node, call.client, DESCRIBE, asked.name)
    return list(unread)


def _answer(node: Node, call: Call[ListOffsetsRequest]) -> Steps[Any]:
    request = call.request
    committed = request.isolation_level == READ_COMMITTED
    answer = PiecewiseAnswer(node, call, "topics")
    step_budget = StepBudget()
    for name, partitions in _by_topic(request.topics).items():
        topic = topic_named(node, call.client, DESCRIBE, name)
        counts = Counter(partition.partition_index for partition in partitions)
        answers = [
            ListOffsetsPartitionResponse(
                partition_index=index, error_code=ErrorCode.INVALID_REQUEST
            )
            for index, count in counts.items()
            if count > 1
        ]
        for partition in partitions:
            if counts[partition.partition_index] > 1:
                continue
            try:
                answers.append(_found(node, topic, partition, call.version, committed=committed))
            except ApiError as error:
                index = partition.partition_index
                answers.append(
                    ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
                )
            # By time a batch is read and unfolded, which takes as long as many others.
            if step_budget.is_over(1 if partition.timestamp in AT_HAND else STEP_ELEMENTS):
                yield
                topic = topic_named(node, call.client, DESCRIBE, name)
        answer.add(ListOffsetsTopicResponse(name=name, partitions=answers), 1 + len(answers))
    return answer.whole()


def _by_topic(asked: Sequence[ListOffsetsTopic]) -> dict[str, list[ListOffsetsPartition]]:
    """The partitions asked for, by topic: several entries of one topic count as one."""
    found: dict[str, list[ListOffsetsPartition]] = {}
    for partition in asked:
        if partition.partitions:
            found.setdefault(partition.name, []).extend(partition.partitions)
    return found


def _found(
    node: Node,
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
    end = partition.last_stable_offset() if committed else partition.high_watermark
    found = partition.find(timestamp, end)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=0,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )
