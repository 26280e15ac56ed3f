# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete (KIP-496), and the offsets of a group that is deleted."""

from kohort.coordinator.offsets.records import tombstone
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, answered
from kohort.records.codec import Record
from kohort.terms import GroupId, Millis
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def delete(state: State, call: Call[OffsetDeleteRequest], _now: Millis) -> Effects:
    """Delete offsets, except of topics that a member still reads. A missing one is a success."""
    request = call.request
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    group_id = GroupId(request.group_id)
    group = state.groups.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id} with offsets")
    group.check_offset_delete()
    records: list[Record] = []
    refused = []
    accepted = []
    for topic in request.topics:
        in_use = group.subscribes_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if in_use else ErrorCode.NONE
        result = OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
                for partition in topic.partitions
            ],
        )
        if in_use:
            refused.append(result)
            continue
        accepted.append(result)
        indices = dict.fromkeys(partition.partition_index for partition in topic.partitions)
        records += [
            tombstone(group_id, topic.name, partition)
            for partition in indices
            if state.offsets.holds(group_id, topic.name, partition)
        ]
    return answered(call, OffsetDeleteResponse(topics=[*refused, *accepted]), records)


def of_group_deleted(state: State, group_id: GroupId) -> list[Record]:
    """The tombstones of all offsets of a group that is being deleted."""
    return [
        tombstone(group_id, topic, partition)
        for topic, partition in state.offsets.partitions_of(group_id)
    ]
