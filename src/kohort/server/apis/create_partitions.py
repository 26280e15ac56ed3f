# SPDX-License-Identifier: Apache-2.0
"""CreatePartitions: more partitions for topics that exist. Records stay where they are."""

from collections import Counter
from collections.abc import Sequence
from itertools import starmap

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import ALTER, TOPIC, check
from kohort.server.apis.topic_changes import (
    change_in_parts,
    check_room,
    check_time,
    checked_assignment,
    judged_topics,
)
from kohort.server.catalog import PARTITIONS_MAX, Draft, Topic
from kohort.server.node import Node
from kohort.server.requests.piecewise import answer_in_pieces
from kohort.terms import Millis
from kohort.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(node: Node, call: Call[CreatePartitionsRequest], _now: Millis) -> None:
    """Each topic grows or is refused by itself."""
    request = call.request
    check_time(request.timeout_ms, request.topics)

    def check_allowed(name: str) -> None:
        check(node.cluster.may, call.client, ALTER, TOPIC, name, with_text=False)

    counts = Counter(topic.name for topic in request.topics)

    def judge(draft: Draft, asked: Sequence[CreatePartitionsTopic]) -> dict[str, Topic | ApiError]:
        return judged_topics(node, draft, asked, counts, check_allowed, _grown)

    def answer(judged: dict[str, Topic | ApiError]) -> None:
        answer_in_pieces(node, call, "results", starmap(_topic_result, judged.items()))

    change_in_parts(node, call, request.topics, judge, answer, validate_only=request.validate_only)


def _topic_result(name: str, outcome: Topic | ApiError) -> CreatePartitionsTopicResult:
    if isinstance(outcome, ApiError):
        return CreatePartitionsTopicResult(
            name=name, error_code=outcome.code, error_message=outcome.message or None
        )
    return CreatePartitionsTopicResult(name=name, error_code=0)


def _grown(node: Node, draft: Draft, wanted: CreatePartitionsTopic) -> Topic:
    """The topic with more partitions. Raises ApiError."""
    topic = draft.by_name.get(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Topic {topic.name} is internal and cannot grow."
        )
    if wanted.count == topic.partitions:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {topic.partitions} partition(s)."
        )
    if wanted.count < topic.partitions or wanted.count > PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {topic.partitions} partition(s); "
            f"{wanted.count} was asked for, expected more, up to {PARTITIONS_MAX}.",
        )
    check_room(node, draft, topic.name, wanted.count - topic.partitions)
    assignments = dict(topic.assignments)
    if wanted.assignments is not None:
        missing = wanted.count - topic.partitions
        given = [list(assignment.broker_ids) for assignment in wanted.assignments]
        if len(given) != missing:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{len(given)} partitions are assigned, expected {missing}.",
            )
        checked_assignment(node, given, topic.replication_factor)
        assignments.update(enumerate(given, topic.partitions))
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=wanted.count,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
        assignments=assignments,
    )
