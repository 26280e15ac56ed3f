# SPDX-License-Identifier: Apache-2.0
"""Topics that requests about offsets name. The broker, not the coordinator, knows which topics
exist and who may use them: only these are passed on, and all others are answered here.
"""

from collections.abc import Callable
from typing import Any

from kohort.errors import ErrorCode
from kohort.machines.effects import Client
from kohort.machines.topics import Topics
from kohort.security.acls import AclOperation
from kohort.server.access import TOPIC
from kohort.server.node import Node
from kohort.terms import NO_TOPIC_ID, TopicId

TOPIC_IDS_FROM = 10  # the version of OffsetCommit and OffsetFetch that names topics by id


def name_topics(requested: list[Any], topics: Topics) -> None:
    """Replace the ids of version 10 by names, under which the coordinator keeps offsets."""
    for topic in requested:
        known = topics.by_id.get(TopicId(topic.topic_id))
        topic.name = known.name if known is not None else ""


def why_not(
    node: Node, client: Client, operation: AclOperation, topic: Any, *, by_id: bool
) -> ErrorCode | None:
    """The error for a topic; None when it exists and the client may ask about it.

    Whether an id exists is no secret. Whether a name exists is, so rules are asked first.
    """
    known = topic.name in node.cluster.topics.by_name
    if by_id and not known:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not node.cluster.may(client, operation, TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def take_refused(
    requested: list[Any],
    topics: Topics,
    why: Callable[[Any], ErrorCode | None],
    refusal: Callable[[Any, list[int], ErrorCode], Any],
) -> tuple[list[Any], list[Any]]:
    """The topics that are not refused, with those of their partitions that exist; and the answers
    to all others, one for each topic. A topic without partitions is answered only when it is
    refused as a whole.
    """
    accepted: list[Any] = []
    refused: dict[tuple[str, bytes], Any] = {}
    for topic in requested:
        code = why(topic)
        count = topics.by_name[topic.name].partitions if code is None else 0
        good = [
            partition for partition in topic.partitions if 0 <= partition.partition_index < count
        ]
        bad = [
            partition.partition_index
            for partition in topic.partitions
            if not 0 <= partition.partition_index < count
        ]
        if bad or code is not None:
            answer = refusal(topic, bad, code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            earlier = refused.setdefault(_identity(topic), answer)
            if earlier is not answer:
                earlier.partitions += answer.partitions
        if good:
            topic.partitions = good
            accepted.append(topic)
    return accepted, list(refused.values())


def put_back(refused: list[Any], response: Any) -> Any:
    """Merge the answers by topic: what was refused here comes first."""
    if not refused:
        return response
    merged = {_identity(topic): topic for topic in refused}
    for topic in response.topics:
        known = merged.setdefault(_identity(topic), topic)
        if known is not topic:
            known.partitions += topic.partitions
    response.topics = list(merged.values())
    return response


def _identity(topic: Any) -> tuple[str, bytes]:
    """The fields that name a topic. An unknown id has no name, and OffsetDelete has no ids."""
    return topic.name, bytes(getattr(topic, "topic_id", NO_TOPIC_ID))
