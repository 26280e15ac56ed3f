"""DeleteRecords: the start of partitions moves forward (KIP-107)."""

from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode
from kohort.server.access import DELETE
from kohort.server.apis.leaders import led_partition, topic_named
from kohort.server.catalog import Topic
from kohort.server.node import Node
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
) -> DeleteRecordsResponse:
    """Delete records of each partition. One that is refused leaves the others alone."""
    by_topic: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for wanted in call.request.topics:
        topic = topic_named(node, call.client, DELETE, wanted.name)
        answers = by_topic.setdefault(wanted.name, [])  # several entries are answered as one
        for partition in wanted.partitions:
            try:
                answers.append(_deleted(node, topic, partition))
            except ApiError as error:
                answers.append(
                    DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index,
                        low_watermark=-1,
                        error_code=error.code,
                    )
                )
    topics = [
        DeleteRecordsTopicResult(name=name, partitions=answers)
        for name, answers in by_topic.items()
        if answers
    ]
    return DeleteRecordsResponse(topics=topics)


def _deleted(
    node: Node, topic: Topic | ApiError, wanted: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    partition = led_partition(node, topic, wanted.partition_index)
    if partition.topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"records of {partition.topic.name} are the coordinator's to delete",
        )
    if partition.config.compacted and not partition.config.deleted:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{partition} is compacted, records cannot be deleted"
        )
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index,
        low_watermark=partition.delete_before(wanted.offset),
        error_code=0,
    )
