"""OffsetFetch on its way to the shards of its groups. Whatever its version, it gets there in the
shape of version 8 (KIP-709).
"""

from typing import Any

from kohort.coordinator.effects import Call, Client
from kohort.coordinator.topics import Topics
from kohort.errors import ApiError, ErrorCode
from kohort.server.access import DESCRIBE, TOPIC
from kohort.server.apis.named_topics import TOPIC_IDS_FROM, name_topics, why_not
from kohort.server.hosted import Driver
from kohort.server.node import Node
from kohort.server.tokens import Gather, Mapped
from kohort.terms import NO_TOPIC_ID, GroupId
from kohort.wire.messages import offset_fetch as fetch_wire
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

# Offsets of a topic that is gone are told by its name, so long as they are kept.
_REFUSED_HERE = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID)


def fetch_offsets(node: Node, call: Call[OffsetFetchRequest]) -> None:
    request = call.request
    if call.version < 8:
        _one_group_shape(call)
    _take_refused(node, call)
    by_driver: dict[Driver, list[int]] = {}
    refused: dict[int, ApiError] = {}
    for index, group in enumerate(request.groups):
        try:
            driver = node.driver_for(call.client, DESCRIBE, GroupId(group.group_id))
            by_driver.setdefault(driver, []).append(index)
        except ApiError as error:
            refused[index] = error
    if len(by_driver) == 1 and not refused:
        (driver,) = by_driver
        node.cluster.submit(driver, call)
    else:
        _fetch_from_many(node, call, by_driver, refused)


def _fetch_from_many(
    node: Node,
    call: Call[OffsetFetchRequest],
    by_driver: dict[Driver, list[int]],
    refused: dict[int, ApiError],
) -> None:
    """One call per shard, with all its groups; the answer has the order of the request."""
    request = call.request
    groups: list[Any] = [None] * len(request.groups)
    for index, error in refused.items():
        own = OffsetFetchRequest(groups=[request.groups[index]])
        (groups[index],) = own.refused(error).groups
    order = list(by_driver.values())

    def merge(parts: list[OffsetFetchResponse]) -> OffsetFetchResponse:
        for indexes, part in zip(order, parts, strict=True):
            for index, group in zip(indexes, part.groups, strict=True):
                groups[index] = group
        return OffsetFetchResponse(groups=groups)

    if not by_driver:
        call.token.answer(merge([]))
        return
    gather = Gather(call.token, len(by_driver), merge)
    for number, (driver, indexes) in enumerate(by_driver.items()):
        own = OffsetFetchRequest(
            groups=[request.groups[index] for index in indexes],
            require_stable=request.require_stable,
        )
        part = Call(gather.part(number), own, call.version, call.client)
        node.cluster.submit(driver, part)


def _one_group_shape(call: Call[OffsetFetchRequest]) -> None:
    """Versions 1 to 7 ask for one group at the top level; its answer is there too."""
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
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
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


def _take_refused(node: Node, call: Call[OffsetFetchRequest]) -> None:
    """Topics that the client may not describe are not asked for; nor are ids that nobody knows.
    They are refused behind the others. Who asks for all topics is shown those he may see.
    """
    by_id = call.version >= TOPIC_IDS_FROM
    topics = node.cluster.topics
    refused: dict[int, list[Any]] = {}
    for index, group in enumerate(call.request.groups):
        if group.topics is None:
            refused[index] = []
            continue
        if by_id:
            name_topics(group.topics, topics)
        kept = []
        for topic in group.topics:
            code = why_not(node, call.client, DESCRIBE, topic, by_id=by_id)
            if code in _REFUSED_HERE:
                refused.setdefault(index, []).append(_refused_topic(topic, code))
            else:
                kept.append(topic)
        group.topics = kept
    if by_id or refused:
        everything = [group.topics is None for group in call.request.groups]

        def whole(response: OffsetFetchResponse) -> OffsetFetchResponse:
            for index, group in enumerate(response.groups):
                if everything[index]:
                    _hide(node, call.client, group)
                if by_id:
                    _put_ids(topics, group)
                if not group.error_code:
                    group.topics += refused.get(index, ())
            return response

        call.token = Mapped(call.token, whole)


def _refused_topic(
    topic: fetch_wire.OffsetFetchRequestTopics, code: ErrorCode
) -> fetch_wire.OffsetFetchResponseTopics:
    partitions = [
        fetch_wire.OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, error_code=code
        )
        for index in topic.partition_indexes
    ]
    return fetch_wire.OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def _hide(node: Node, client: Client, group: fetch_wire.OffsetFetchResponseGroup) -> None:
    may = node.cluster.may
    group.topics = [topic for topic in group.topics if may(client, DESCRIBE, TOPIC, topic.name)]


def _put_ids(topics: Topics, group: fetch_wire.OffsetFetchResponseGroup) -> None:
    """Version 10: names become ids again, and unknown ids get their error."""
    for topic in group.topics:
        known = topics.by_name.get(topic.name)
        topic.topic_id = known.id if known is not None else NO_TOPIC_ID
    group.topics = [topic for topic in group.topics if topic.topic_id != NO_TOPIC_ID]
