# SPDX-License-Identifier: Apache-2.0
"""DeleteTopics: by name, and from v6 on by id."""

from collections import Counter
from collections.abc import Sequence

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.access import (
    CLUSTER,
    CLUSTER_NAME,
    DELETE,
    DESCRIBE,
    TOPIC,
    May,
    check,
    everyone_may,
)
from kohort.server.apis.topic_changes import change_topics, check_once, check_time
from kohort.server.catalog import Draft, Topic
from kohort.server.node import Node
from kohort.terms import NO_TOPIC_ID, Millis, TopicId
from kohort.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_NEITHER = ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor topic id was specified.")

NameOrId = tuple[str | None, bytes]
"""A topic as the request names it: by name, or by id."""


def delete_topics(node: Node, call: Call[DeleteTopicsRequest], _now: Millis) -> None:
    """Each topic is deleted or refused by itself."""
    request = call.request
    if not node.cluster.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        raise ApiError(code, "delete.topic.enable is false")
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    check_time(request.timeout_ms, wanted)
    named = [topic for topic in wanted if topic.name is not None or topic.topic_id != NO_TOPIC_ID]

    def answer(judged: dict[NameOrId, Topic | ApiError]) -> DeleteTopicsResponse:
        responses = [_deleted(*item) for item in judged.items()]
        responses += [_deleted((None, NO_TOPIC_ID), _NEITHER)] * (len(wanted) - len(named))
        return DeleteTopicsResponse(responses=responses)

    client, may = call.client, node.cluster.may
    if may(client, DELETE, CLUSTER, CLUSTER_NAME):
        may = everyone_may  # then nothing has to be hidden from it, either
    change_topics(node, call, lambda draft: _judged(draft, may, client, named), answer)


def _judged(
    draft: Draft, may: May, client: Client, wanted: Sequence[DeleteTopicState]
) -> dict[NameOrId, Topic | ApiError]:
    """What becomes of each topic. A topic that is named twice is not deleted."""
    judged: dict[NameOrId, Topic | ApiError] = {}
    for (name, topic_id), count in Counter(
        (topic.name, topic.topic_id) for topic in wanted
    ).items():
        shown = name
        try:
            check_once(count, "id" if name is None else "name")
            topic = _named(draft, may, client, name, TopicId(topic_id))
            if may(client, DESCRIBE, TOPIC, topic.name):
                shown = topic.name  # else a client that knows the id would learn the name
            check(may, client, DELETE, TOPIC, topic.name)
            judged[name, topic_id] = _deletable(topic)
        except ApiError as error:
            judged[shown, topic_id] = error.without_frames()
    for (name, topic_id), outcome in list(judged.items()):
        if name is not None and isinstance(outcome, Topic):
            twice = judged.get((None, outcome.topic_id))
            if isinstance(twice, Topic):
                del judged[name, topic_id], judged[None, outcome.topic_id]
                text = "The topic is named by its name and by its id."
                judged[name, outcome.topic_id] = ApiError(ErrorCode.INVALID_REQUEST, text)
    going = [topic for topic in judged.values() if isinstance(topic, Topic)]
    if going:
        draft.delete(*going)
    return judged


def _deleted(asked: NameOrId, outcome: Topic | ApiError) -> DeletableTopicResult:
    if isinstance(outcome, ApiError):
        return DeletableTopicResult(
            name=asked[0],
            topic_id=asked[1],
            error_code=outcome.code,
            error_message=outcome.message or None,
        )
    return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id, error_code=0)


def _named(draft: Draft, may: May, client: Client, name: str | None, topic_id: TopicId) -> Topic:
    if name is None:
        topic = draft.by_id.get(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    else:
        if topic_id != NO_TOPIC_ID:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        check(may, client, DESCRIBE, TOPIC, name)
        topic = draft.by_name.get(name)
        if topic is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
    return topic


def _deletable(topic: Topic) -> Topic:
    if topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Topic {topic.name} is internal and cannot be deleted."
        )
    return topic
