# SPDX-License-Identifier: Apache-2.0
"""Topics by their ids (KIP-516): a name may be another topic's by now, an id never is."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topic_views import TopicDescription
from kohort.client.admin.topics import BY_ID, controller, left_ms, topic_description
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import TopicId, uuid_text
from kohort.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DELETION_BY_ID = Need(BY_ID, "a deletion of topics by id", "KIP-516, Apache Kafka 2.8")

Id = TypeVar("Id", bytes, str)
"""An id as the caller has given it: 16 bytes, or the text that Kafka's tools show."""


async def describe_topics_by_id(
    cluster: Cluster, ids: Mapping[Id, TopicId], *, deadline: float
) -> Outcomes[Id, TopicDescription]:
    """See `AdminClient.describe_topics_by_id`."""
    if not ids:
        return Outcomes({})
    metadata = await cluster.metadata((), deadline, ids=dict.fromkeys(ids.values()))
    found = {topic.topic_id: topic for topic in metadata.topics}

    def described(id_: TopicId) -> TopicDescription | ApiError:
        topic = found.get(id_)
        if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
            return _unknown(id_)
        name = topic.name or f"with id {uuid_text(id_)}"
        return topic_description(name, topic, cluster.principal)

    return Outcomes({given: described(id_) for given, id_ in ids.items()})


async def delete_topics_by_id(
    cluster: Cluster, ids: Mapping[Id, TopicId], *, deadline: float
) -> Outcomes[Id, None]:
    """See `AdminClient.delete_topics_by_id`."""

    async def ask(
        node: Node, ids: Sequence[TopicId], deadline: float
    ) -> dict[TopicId, ApiError | None]:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(topic_id=id_) for id_ in ids], timeout_ms=left_ms(deadline)
        )
        answer: DeleteTopicsResponse = await cluster.ask(
            node, request, deadline=deadline, need=DELETION_BY_ID
        )
        return {TopicId(result.topic_id): _deletion(result) for result in answer.responses}

    outcomes = await settle(
        cluster, ids.values(), controller(cluster), ask, deadline=deadline, repeatable=False
    )
    return Outcomes({given: outcomes[id_] for given, id_ in ids.items()})


def _deletion(result: DeletableTopicResult) -> ApiError | None:
    if result.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
        return _unknown(TopicId(result.topic_id))
    return api_error(result.error_code, result.error_message) if result.error_code else None


def _unknown(id_: TopicId) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {uuid_text(id_)}")
