# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit on its way to the group's shard."""

from typing import Any

from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Client
from kohort.machines.topics import Topics
from kohort.server.access import GROUP, READ, TOPIC, May, check
from kohort.server.apis.named_topics import (
    TOPIC_IDS_FROM,
    name_topics,
    put_back,
    take_refused,
    why_not,
)
from kohort.server.node import Node
from kohort.server.requests.reply_tokens import MappingToken
from kohort.terms import GroupId
from kohort.wire.messages import offset_commit as commit_wire
from kohort.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse


def commit_offsets(node: Node, call: Call[OffsetCommitRequest]) -> None:
    """Refuse topics that are missing or forbidden; pass the rest on to the group's shard."""
    request = call.request
    check(node.cluster.may, call.client, READ, GROUP, request.group_id)
    topics = node.cluster.topics
    by_id = call.version >= TOPIC_IDS_FROM
    if by_id:
        name_topics(request.topics, topics)
    if not _all_accepted(request.topics, topics, node.cluster.may, call.client):

        def why(topic: Any) -> ErrorCode | None:
            return why_not(node, call.client, READ, topic, by_id=by_id)

        def refusal(
            topic: Any, indexes: list[int], code: ErrorCode
        ) -> commit_wire.OffsetCommitResponseTopic:
            partition = commit_wire.OffsetCommitResponsePartition
            return commit_wire.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[partition(partition_index=index, error_code=code) for index in indexes],
            )

        request.topics, refused = take_refused(request.topics, topics, why, refusal)
        if not request.topics:
            call.token.answer(OffsetCommitResponse(topics=refused))
            return
        call.token = MappingToken(call.token, lambda response: put_back(refused, response))
    node.cluster.submit(node.driver_of(GroupId(request.group_id)), call)


def _all_accepted(
    requested: list[commit_wire.OffsetCommitRequestTopic], topics: Topics, may: May, client: Client
) -> bool:
    """Whether no topic or partition is refused, as is nearly always so."""
    for topic in requested:
        known = topics.by_name.get(topic.name)
        if known is None or not topic.partitions or not may(client, READ, TOPIC, topic.name):
            return False
        count = known.partitions
        for partition in topic.partitions:
            if not 0 <= partition.partition_index < count:
                return False
    return True
