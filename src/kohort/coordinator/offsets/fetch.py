# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch: how far groups have read. Each group is answered for itself (KIP-709)."""

from collections.abc import Container, Sequence
from typing import Any

from kohort.coordinator.offsets.table import ABSENT, TopicOffsets
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, Reply
from kohort.terms import NO_TOPIC_ID, Millis
from kohort.wire.columns import Columns
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def fetch(state: State, call: Call[OffsetFetchRequest], _now: Millis) -> Effects:
    """Answer with committed offsets. The driver holds the answer back until everything appended so
    far is durable, so nobody reads what a crash could take back. With `require_stable`, partitions
    in an open transaction get UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    request = call.request
    stable = request.require_stable
    groups = [_group(state, wanted, stable=stable) for wanted in request.groups]
    return Effects([], [Reply(call.token, OffsetFetchResponse(groups=groups))])


def _group(
    state: State, wanted: OffsetFetchRequestGroup, *, stable: bool
) -> OffsetFetchResponseGroup:
    # Built by position, in the order of their fields: this is a hot loop.
    group_of: Any = OffsetFetchResponseGroup
    topic_of: Any = OffsetFetchResponseTopics
    group_id: Any = wanted.group_id  # a call of GroupId for each would be felt
    if wanted.member_id is not None or wanted.member_epoch >= 0:
        group = state.groups.get(group_id)
        try:
            if group is not None:
                group.check_fetch(wanted)
        except ApiError as error:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=error.code)
    tables = state.offsets.of(group_id)
    waiting = state.offsets.open_partitions(group_id) if stable else {}
    topics = []
    if wanted.topics is None:
        by_name = state.topics.by_name
        for name, table in tables.items():
            known = by_name.get(name)
            topic_id = table.topic_id if known is None else known.id
            partitions = _partitions(name, table, table.indexes(), waiting)
            topics.append(topic_of(name, topic_id, partitions))
    else:
        for topic in wanted.topics:
            name = topic.name
            partitions = _partitions(name, tables.get(name), topic.partition_indexes, waiting)
            topics.append(topic_of(name, topic.topic_id, partitions))
    return group_of(group_id, topics)  # type: ignore[no-any-return]


def _partitions(
    topic: str,
    table: TopicOffsets | None,
    partitions: Sequence[int],
    waiting: Container[tuple[str, int]],
) -> list[OffsetFetchResponsePartitions] | Columns:
    answer: Any = OffsetFetchResponsePartitions  # built by position below: this is a hot loop
    if table is None and not waiting:
        return [answer(partition_index=partition, committed_offset=-1) for partition in partitions]
    table = table or TopicOffsets(NO_TOPIC_ID)
    offsets, epochs, timestamps = table.offsets, table.leader_epochs, table.timestamps
    metadata = table.metadata
    end = len(timestamps)
    count = len(partitions)
    if not waiting and not metadata:
        if table.count == end and count <= end and partitions == [*range(count)]:
            # The whole topic, or its first partitions, and all have an offset: this common
            # request needs no question for each of them, and no object.
            return Columns(answer, (partitions, offsets[:count], epochs[:count]))
        return [
            answer(partition, offsets[partition], epochs[partition])
            if 0 <= partition < end and timestamps[partition] != ABSENT
            else answer(partition, -1)
            for partition in partitions
        ]
    found = []
    for partition in partitions:
        if waiting and (topic, partition) in waiting:
            found.append(
                answer(
                    partition_index=partition,
                    committed_offset=-1,
                    error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
                )
            )
        elif 0 <= partition < end and timestamps[partition] != ABSENT:
            text = metadata.get(partition, "") if metadata else ""
            found.append(answer(partition, offsets[partition], epochs[partition], text))
        else:
            found.append(answer(partition_index=partition, committed_offset=-1))
    return found
