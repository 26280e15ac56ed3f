"""The ends of committed offsets: OffsetDelete (KIP-496), a deleted group, a deleted topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.effects import Call, Effects, answered
from kohort.coordinator.offsets.store import tombstone
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, Millis
from kohort.wire.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from kohort.coordinator.shard import Shard
    from kohort.records.codec import Record
    from kohort.wire.messages.offset_delete import OffsetDeleteRequest


def delete(shard: Shard, call: Call[OffsetDeleteRequest], now: Millis) -> Effects:  # noqa: ARG001
    """Is anybody still reading this topic? An offset that does not exist is deleted
    successfully.
    """
    request = call.request
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    group_id = GroupId(request.group_id)
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup | ConsumerGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id} with offsets")
    if (
        isinstance(group, ClassicGroup)
        and group.members
        and group.protocol_type != CONSUMER_PROTOCOL
    ):
        raise ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {group_id} has members of protocol type {group.protocol_type!r},"
            " whose topics are not known",
        )
    records: list[Record] = []
    refused = []
    accepted = []
    for topic in request.topics:
        in_use = group.subscribes_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if in_use else ErrorCode.NONE
        result = OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
                for one in topic.partitions
            ],
        )
        if in_use:
            refused.append(result)
            continue
        accepted.append(result)
        indices = dict.fromkeys(one.partition_index for one in topic.partitions)
        records += [
            tombstone(group_id, topic.name, partition)
            for partition in indices
            if shard.offsets.holds(group_id, topic.name, partition)
        ]
    return answered(call, OffsetDeleteResponse(topics=[*refused, *accepted]), records)


def of_group_deleted(shard: Shard, group_id: GroupId) -> list[Record]:
    """The tombstones of all offsets of a group that is being deleted."""
    return [
        tombstone(group_id, topic, partition)
        for topic, partition in shard.offsets.partitions_of(group_id)
    ]


def topics_deleted(shard: Shard, names: Collection[str]) -> list[Record]:
    """The tombstones of the offsets that groups have for topics that were deleted."""
    offsets = shard.offsets
    return [
        tombstone(group_id, topic, partition)
        for group_id in offsets.group_ids()
        for topic, partition in offsets.partitions_of(group_id)
        if topic in names
    ]


def of_former_topics(shard: Shard, names: Collection[str]) -> list[Record]:
    """The tombstones of offsets for topics that are called as one of these, and are gone.

    An offset names its topic's id: when the topic of that name has another one, it was deleted and
    made anew while nobody was here to write the tombstones. Offsets of a topic that no topic is
    called after stay: the directory may be a part of somebody's cluster.
    """
    by_name = shard.topics.by_name
    ids = {name: by_name[name].id for name in names if name in by_name}
    if not ids:
        return []
    return [
        tombstone(group_id, topic, partition)
        for group_id in shard.offsets.group_ids()
        for topic, partition in shard.offsets.of_other_ids(group_id, ids)
    ]
