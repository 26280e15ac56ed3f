# SPDX-License-Identifier: Apache-2.0
"""DeleteRecords: the start of partitions moves forward (KIP-107)."""

from kohort.errors import ApiError, ErrorCode, UnsettledError
from kohort.machines.effects import Call
from kohort.server.access import DELETE
from kohort.server.apis.leaders import led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.server.partitions.log_starts import StartMove
from kohort.server.partitions.partition import Partition
from kohort.server.requests.steps import StepBudget, Steps
from kohort.terms import Millis
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def delete_records(
    node: Node, call: Call[DeleteRecordsRequest], _now: Millis
) -> Steps[DeleteRecordsResponse | None]:
    """Delete records of each partition. One that is refused leaves the others alone.

    The answer waits until the disk has noted where the logs begin now, all of them at once.
    """
    step_budget = StepBudget()
    deletion = _Deletion(call)
    by_topic: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for wanted in call.request.topics:
        topic = topic_named(node, call.client, DELETE, wanted.name)
        results = by_topic.setdefault(wanted.name, [])  # several entries are answered as one
        for partition in wanted.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=-1
            )
            results.append(result)
            try:
                deletion.judge(node, topic, partition, result)
            except ApiError as error:
                result.error_code = error.code
            if step_budget.is_over():
                yield
                topic = topic_named(node, call.client, DELETE, wanted.name)
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=results)
            for name, results in by_topic.items()
            if results
        ]
    )
    return deletion.begin(node, response)


class _Deletion:
    """One request, and the partitions that still have to begin later for it."""

    def __init__(self, call: Call[DeleteRecordsRequest]) -> None:
        self._token = call.token
        self._moves: dict[StartMove, DeleteRecordsPartitionResult] = {}
        self._unsettled: UnsettledError | None = None
        self._response = DeleteRecordsResponse()

    def judge(
        self,
        node: Node,
        topic: Topic | ApiError,
        wanted: DeleteRecordsPartition,
        result: DeleteRecordsPartitionResult,
    ) -> None:
        """Find out where a partition is to begin. Raises ApiError."""
        partition = _deletable(led_partition(node, topic, wanted.partition_index))
        start = partition.new_start(wanted.offset)
        result.low_watermark = partition.log.start
        if start > partition.log.start:
            self._moves[StartMove(partition, start, self._moved)] = result

    def begin(self, node: Node, response: DeleteRecordsResponse) -> DeleteRecordsResponse | None:
        """Have the partitions begin later; the response if they all begin there already."""
        if not self._moves:
            return response
        self._response = response
        table = node.cluster.table
        for move in list(self._moves):
            topic = move.partition.topic
            if table.open.get((topic.name, move.partition.index)) is move.partition:
                table.starts.move(move)
            else:  # it was deleted since it was judged
                move.error = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                self._moved(move)
        return None

    def _moved(self, move: StartMove) -> None:
        """One partition begins later, or does not. With the last one the request is answered; not
        so where a restart may find either start.
        """
        result = self._moves.pop(move)
        match move.error:
            case None:
                result.low_watermark = move.partition.log.start
            case UnsettledError() as error:
                self._unsettled = error
            case ApiError(code=code):
                result.low_watermark, result.error_code = -1, code
            case _:
                result.low_watermark, result.error_code = -1, ErrorCode.KAFKA_STORAGE_ERROR
        if self._moves:
            return
        if self._unsettled is not None:
            self._token.fail(self._unsettled)
        else:
            self._token.answer(self._response)


def _deletable(partition: Partition) -> Partition:
    """Raises ApiError where clients may not delete records."""
    if partition.topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"records of {partition.topic.name} are the coordinator's to delete",
        )
    if partition.failed:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} is out of service")
    if partition.config.compacted and not partition.config.deleted:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{partition} is compacted, records cannot be deleted"
        )
    return partition
