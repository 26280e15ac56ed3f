# SPDX-License-Identifier: Apache-2.0
"""Metadata: brokers, topics, and who leads each partition."""

from collections.abc import Callable
from functools import partial
from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.access import (
    DESCRIBE,
    NOT_ASKED,
    TOPIC,
    May,
    check,
    cluster_operations,
    may_create,
    operations,
    refusal,
)
from kohort.server.apis.create_topics import create_by_default
from kohort.server.apis.leaders import state_of
from kohort.server.catalog import Topic, check_topic_name
from kohort.server.node import Node
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.steps import StepBudget, Steps
from kohort.terms import NO_TOPIC_ID, Millis, TopicId
from kohort.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def metadata(node: Node, call: Call[MetadataRequest], _now: Millis) -> Steps[Any]:
    """Nodes, topics and leaders. A missing topic is created, and found when the client asks again.

    Who asks for all topics is shown those that he may describe; who names another is refused it.
    """
    request = call.request
    cluster = node.cluster
    may, client = cluster.may, call.client
    wanted = request.topics
    if 10 <= call.version <= 11 and any(
        topic.topic_id != NO_TOPIC_ID or topic.name is None for topic in wanted or ()
    ):
        return _ids_too_early(request)
    answer = PiecewiseAnswer(node, call, "topics")
    step_budget = StepBudget()
    if wanted is None or (call.version == 0 and not wanted):
        for known in list(cluster.catalog.by_name):
            topic = cluster.catalog.by_name.get(known)
            if topic is not None and may(client, DESCRIBE, TOPIC, known):
                described = yield from _topic(node, topic, step_budget)
                if topic.topic_id in cluster.catalog.by_id:  # it may have been deleted meanwhile
                    _add(answer, call, may, described)
    else:
        # A topic that is named twice is told once, as upstream does.
        distinct = dict.fromkeys((TopicId(topic.topic_id), topic.name) for topic in wanted)
        create = request.allow_auto_topic_creation
        for topic_id, name in distinct:
            if topic_id != NO_TOPIC_ID or name is None:
                look_up = partial(_by_id, node, client, topic_id)
            else:
                look_up = partial(_by_name, node, client, name, create=create)
            described = yield from _named(node, look_up, step_budget)
            _add(answer, call, may, described)
    endpoints = node.endpoints
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.id,
                host=(where := endpoints[broker.id]).host,
                port=where.port,
                rack=broker.rack,
            )
            for broker in cluster.placement.brokers
        ],
        cluster_id=cluster.catalog.cluster_id,
        controller_id=cluster.placement.controller_id,
        cluster_authorized_operations=(
            cluster_operations(may, client)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )
    return answer.whole(response)


def _add(
    answer: PiecewiseAnswer, call: Call[MetadataRequest], may: May, topic: MetadataResponseTopic
) -> None:
    if (
        call.request.include_topic_authorized_operations
        and topic.name is not None
        and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ):
        topic.topic_authorized_operations = operations(may, call.client, TOPIC, topic.name)
    answer.add(topic, 1 + len(topic.partitions))


def _ids_too_early(request: MetadataRequest) -> MetadataResponse:
    """Requests of v10 and v11 carry topic ids, which upstream ignores (KIP-516)."""
    return MetadataResponse(
        brokers=[],
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=topic.name or "",
                topic_id=topic.topic_id,
                partitions=[],
            )
            for topic in request.topics or ()
        ],
    )


def _named(
    node: Node, look_up: Callable[[], Topic | MetadataResponseTopic], step_budget: StepBudget
) -> Steps[MetadataResponseTopic]:
    """A topic that was asked for, or why there is no answer about it. One that is deleted while it
    is described is looked up again.
    """
    while isinstance(found := look_up(), Topic):
        answer = yield from _topic(node, found, step_budget)
        if found.topic_id in node.cluster.catalog.by_id:
            return answer
    if step_budget.is_over():
        yield
    return found


def _by_id(node: Node, client: Client, topic_id: TopicId) -> Topic | MetadataResponseTopic:
    """A topic that a client may not describe keeps its name; its id is no secret."""
    topic = node.cluster.catalog.by_id.get(topic_id)
    code = ErrorCode.UNKNOWN_TOPIC_ID
    if topic is not None:
        if node.cluster.may(client, DESCRIBE, TOPIC, topic.name):
            return topic
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id, partitions=[])


def _by_name(
    node: Node, client: Client, name: str, *, create: bool
) -> Topic | MetadataResponseTopic:
    cluster = node.cluster
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check(cluster.may, client, DESCRIBE, TOPIC, name)
        topic = cluster.catalog.by_name.get(name)
        if topic is not None:
            return topic
        create = create and cluster.config.auto_create_topics_enable
        if create and not may_create(cluster.may, client, name):
            raise refusal(TOPIC)
        check_topic_name(name)
        if create:
            # Upstream answers before the topic exists, and clients know how to ask again.
            create_by_default(node, name)
    except ApiError as refused:
        error = refused.code
    return MetadataResponseTopic(error_code=error, name=name, partitions=[])


def _topic(node: Node, topic: Topic, step_budget: StepBudget) -> Steps[MetadataResponseTopic]:
    partitions = []
    for index in range(topic.partitions):
        if step_budget.is_over():
            yield
        state = state_of(node, topic, index)
        partitions.append(
            MetadataResponsePartition(
                error_code=state.error_code,
                partition_index=index,
                leader_id=state.leader_id,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.in_sync,
                offline_replicas=state.offline,
            )
        )
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
    )
