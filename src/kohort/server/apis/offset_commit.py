"""OffsetCommit on its way to the group's shard."""

from typing import Any

from kohort.coordinator.effects import Call
from kohort.coordinator.topics import Topics
from kohort.errors import ErrorCode
from kohort.server.apis import unsupported
from kohort.server.apis.named_topics import TOPIC_IDS_FROM, name_topics, put_back, take_unknown
from kohort.server.node import Node
from kohort.server.tokens import Mapped
from kohort.terms import GroupId
from kohort.wire.messages import offset_commit as commit_wire
from kohort.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse


def commit_offsets(node: Node, call: Call[OffsetCommitRequest]) -> None:
    """Refuse topics that do not exist; pass the rest on to the group's shard."""
    request = call.request
    if request.group_instance_id is not None:
        raise unsupported.static_membership(request.group_instance_id)
    topics = node.cluster.topics
    by_id = call.version >= TOPIC_IDS_FROM
    if by_id:
        name_topics(request.topics, topics)
    if not _all_exist(request.topics, topics):

        def refusal(topic: Any, indexes: list[int]) -> commit_wire.OffsetCommitResponseTopic:
            unknown = by_id and topic.name not in topics.by_name
            code = ErrorCode.UNKNOWN_TOPIC_ID if unknown else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            partition = commit_wire.OffsetCommitResponsePartition
            return commit_wire.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[partition(partition_index=one, error_code=code) for one in indexes],
            )

        request.topics, refused = take_unknown(request.topics, topics, refusal)
        if not request.topics:
            call.token.answer(OffsetCommitResponse(topics=refused))
            return
        call.token = Mapped(call.token, lambda response: put_back(refused, response))
    node.cluster.submit(node.driver_of(GroupId(request.group_id)), call)


def _all_exist(requested: list[commit_wire.OffsetCommitRequestTopic], topics: Topics) -> bool:
    for topic in requested:
        known = topics.by_name.get(topic.name)
        if known is None or not topic.partitions:
            return False
        count = known.partitions
        for partition in topic.partitions:
            if not 0 <= partition.partition_index < count:
                return False
    return True
