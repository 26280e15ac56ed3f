"""OffsetCommit, OffsetFetch, OffsetDelete on their way to the shards.

The broker, not the coordinator, knows which topics exist: unknown ones are answered here and only
the rest is passed on. OffsetFetch reaches the shards in the shape of version 8, whatever it came in
(KIP-709).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.coordinator.effects import Call
from kohort.coordinator.topics import Topics
from kohort.errors import ErrorCode
from kohort.server.apis import unsupported
from kohort.server.apis.groups import not_coordinator
from kohort.server.tokens import Gather, Mapped
from kohort.terms import NO_TOPIC_ID, GroupId, TopicId
from kohort.wire.messages import offset_commit as commit_wire
from kohort.wire.messages import offset_delete as delete_wire
from kohort.wire.messages import offset_fetch as fetch_wire
from kohort.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

if TYPE_CHECKING:
    from kohort.runtime.driver import PartitionDriver
    from kohort.server.node import Node

TOPIC_IDS_FROM = 10


# --- commit


def commit_offsets(node: "Node", call: Call[OffsetCommitRequest]) -> None:
    """Topics that do not exist are refused; what is left goes to the group's shard."""
    request = call.request
    if request.group_instance_id is not None:
        raise unsupported.static_membership(request.group_instance_id)
    topics = node.cluster.topics
    by_id = call.version >= TOPIC_IDS_FROM
    if by_id:
        _name_topics(request.topics, topics)
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

        request.topics, refused = _take_unknown(request.topics, topics, refusal)
        if not request.topics:
            call.token.answer(OffsetCommitResponse(topics=refused))
            return
        call.token = Mapped(call.token, lambda response: _put_back(refused, response))
    node.cluster.submit(node.driver_of(GroupId(request.group_id)), call)


def _name_topics(requested: list[Any], topics: Topics) -> None:
    """Version 10 names topics by id; the coordinator keeps offsets by name."""
    for topic in requested:
        known = topics.by_id.get(TopicId(topic.topic_id))
        topic.name = known.name if known is not None else ""


def _all_exist(requested: list[commit_wire.OffsetCommitRequestTopic], topics: Topics) -> bool:
    for topic in requested:
        known = topics.by_name.get(topic.name)
        if known is None:
            return False
        count = known.partitions
        for partition in topic.partitions:
            if not 0 <= partition.partition_index < count:
                return False
    return True


def _take_unknown(
    requested: list[Any], topics: Topics, refusal: Callable[[Any, list[int]], Any]
) -> tuple[list[Any], list[Any]]:
    """The topics that exist, with their partitions that do; and the answers to all others."""
    accepted, refused = [], []
    for topic in requested:
        known = topics.by_name.get(topic.name)
        count = known.partitions if known is not None else 0
        good = [one for one in topic.partitions if 0 <= one.partition_index < count]
        bad = [
            one.partition_index for one in topic.partitions if not 0 <= one.partition_index < count
        ]
        if bad:
            refused.append(refusal(topic, bad))
        if good or (known is not None and not bad):
            topic.partitions = good
            accepted.append(topic)
    return accepted, refused


def _put_back(refused: list[Any], response: Any) -> Any:
    """Merge by topic: what was refused stands first."""
    merged = {_identity(topic): topic for topic in refused}
    for topic in response.topics:
        known = merged.setdefault(_identity(topic), topic)
        if known is not topic:
            known.partitions += topic.partitions
    response.topics = list(merged.values())
    return response


def _identity(topic: Any) -> tuple[str, bytes]:
    """Ids that nobody knows have no name, and OffsetDelete has no ids."""
    return topic.name, bytes(getattr(topic, "topic_id", NO_TOPIC_ID))


# --- fetch


def fetch_offsets(node: "Node", call: Call[OffsetFetchRequest]) -> None:
    request = call.request
    if call.version < 8:
        _one_group_shape(call)
    topics = node.cluster.topics
    unknown: dict[int, list[fetch_wire.OffsetFetchRequestTopics]] = {}
    if call.version >= TOPIC_IDS_FROM:
        for index, group in enumerate(request.groups):
            if group.topics is not None:
                _name_topics(group.topics, topics)
                unknown[index] = [topic for topic in group.topics if not topic.name]
                group.topics = [topic for topic in group.topics if topic.name]
        call.token = Mapped(call.token, lambda response: _with_ids(response, topics, unknown))
    by_driver: dict[PartitionDriver | None, list[int]] = {}
    for index, group in enumerate(request.groups):
        driver = node.driver_or_none(GroupId(group.group_id))
        by_driver.setdefault(driver, []).append(index)
    if len(by_driver) == 1 and None not in by_driver:
        (driver,) = by_driver
        assert driver is not None
        node.cluster.submit(driver, call)
        return
    _fetch_from_many(node, call, by_driver)


def _fetch_from_many(
    node: "Node",
    call: Call[OffsetFetchRequest],
    by_driver: dict["PartitionDriver | None", list[int]],
) -> None:
    """One call per shard with all its groups; the answer is in the order of the request."""
    request = call.request
    order = list(by_driver.values())

    def merge(parts: list[OffsetFetchResponse]) -> OffsetFetchResponse:
        groups: list[Any] = [None] * len(request.groups)
        for indexes, part in zip(order, parts, strict=True):
            for index, group in zip(indexes, part.groups, strict=True):
                groups[index] = group
        return OffsetFetchResponse(groups=groups)

    if not by_driver:
        call.token.answer(OffsetFetchResponse())
        return
    gather = Gather(call.token, len(by_driver), merge)
    for number, (driver, indexes) in enumerate(by_driver.items()):
        own = OffsetFetchRequest(
            groups=[request.groups[index] for index in indexes],
            require_stable=request.require_stable,
        )
        part = Call(gather.part(number), own, call.version, call.client)
        if driver is None:
            part.token.answer(own.refused(not_coordinator(own.groups[0].group_id)))
        else:
            node.cluster.submit(driver, part)


def _one_group_shape(call: Call[OffsetFetchRequest]) -> None:
    """Versions 1 to 7 ask for one group, at the top level; they are answered there too."""
    request = call.request
    asked = request.topics
    topics = None
    if asked is not None:
        topics = [
            fetch_wire.OffsetFetchRequestTopics(
                name=topic.name, partition_indexes=topic.partition_indexes
            )
            for topic in asked
        ]
    request.groups = [fetch_wire.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]
    version = call.version

    def flat(response: OffsetFetchResponse) -> OffsetFetchResponse:
        group = response.groups[0]
        if group.error_code and version < 2:
            return _refused_partitions(asked or [], group.error_code)
        topics = [
            fetch_wire.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    fetch_wire.OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ]
        return OffsetFetchResponse(topics=topics, error_code=group.error_code)

    call.token = Mapped(call.token, flat)


def _refused_partitions(
    asked: list[fetch_wire.OffsetFetchRequestTopic], code: int
) -> OffsetFetchResponse:
    """Version 1 has no place for an error but the partitions."""
    topics = [
        fetch_wire.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                fetch_wire.OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, error_code=code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in asked
    ]
    return OffsetFetchResponse(topics=topics)


def _with_ids(
    response: OffsetFetchResponse,
    topics: Topics,
    unknown: dict[int, list[fetch_wire.OffsetFetchRequestTopics]],
) -> OffsetFetchResponse:
    """Version 10: names become ids, and ids that nobody knows are answered as such."""
    for index, group in enumerate(response.groups):
        for topic in group.topics:
            known = topics.by_name.get(topic.name)
            topic.topic_id = known.id if known is not None else NO_TOPIC_ID
        group.topics = [topic for topic in group.topics if topic.topic_id != NO_TOPIC_ID]
        if group.error_code:
            continue
        for missing in unknown.get(index, []):
            partitions = [
                fetch_wire.OffsetFetchResponsePartitions(
                    partition_index=partition,
                    committed_offset=-1,
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                )
                for partition in missing.partition_indexes
            ]
            group.topics.append(
                fetch_wire.OffsetFetchResponseTopics(
                    topic_id=missing.topic_id, partitions=partitions
                )
            )
    return response


# --- delete


def delete_offsets(node: "Node", call: Call[OffsetDeleteRequest]) -> None:
    """Topics that do not exist are refused; an error of the group is told before that."""
    request = call.request

    def refusal(topic: Any, indexes: list[int]) -> delete_wire.OffsetDeleteResponseTopic:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = delete_wire.OffsetDeleteResponsePartition
        return delete_wire.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[partition(partition_index=one, error_code=code) for one in indexes],
        )

    accepted, refused = _take_unknown(request.topics, node.cluster.topics, refusal)
    request.topics = [topic for topic in accepted if topic.partitions]

    def whole(response: OffsetDeleteResponse) -> Any:
        return response if response.error_code else _put_back(refused, response)

    if refused:
        call.token = Mapped(call.token, whole)
    node.cluster.submit(node.driver_of(GroupId(request.group_id)), call)
