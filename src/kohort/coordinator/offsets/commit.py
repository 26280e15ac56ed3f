# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit: may this caller commit for this group, and which partitions are acceptable?

A refusal of the caller concerns every partition and is raised; a refusal of one partition is data
in the answer.
"""

from kohort.coordinator.group import Group
from kohort.coordinator.offsets.records import tombstone
from kohort.coordinator.offsets.table import TopicOffsets
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.deadlines import Session
from kohort.machines.effects import Call, Effects, Reply
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.terms import NO_TOPIC_ID, GroupId, Millis, TopicId
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_FOREVER = (1 << 63) - 1


def commit(state: State, call: Call[OffsetCommitRequest], now: Millis) -> Effects:
    """One record for each accepted partition, in one batch, and the answer when they are stored."""
    request = call.request
    group_id = GroupId(request.group_id)
    _check_caller(state, group_id, call, now)
    tables = state.offsets.of(group_id)
    retention_ms = request.retention_time_ms
    expire_timestamp = -1 if retention_ms == -1 else min(now + retention_ms, _FOREVER)
    longest = state.longest_metadata
    topics_by_name = state.topics.by_name
    records: list[Record] = []
    ended: set[str] = set()  # a topic may be named twice
    topics = []
    for topic in request.topics:
        name = topic.name
        known = topics_by_name.get(name)
        topic_id = NO_TOPIC_ID if known is None else known.id
        table = tables.get(name)
        if (
            table is not None
            and table.topic_id != topic_id
            and is_former(table, topic_id)
            and name not in ended
        ):
            ended.add(name)
            records += [tombstone(group_id, name, partition) for partition in table.partitions()]
        partitions = []
        for asked in topic.partitions:
            partition = asked.partition_index
            metadata = asked.committed_metadata or ""
            if len(metadata) * 2 > longest and too_long(metadata, longest):
                partitions.append(
                    OffsetCommitResponsePartition(
                        partition_index=partition,
                        error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE,
                    )
                )
                continue
            value = OffsetCommitValue(
                offset=asked.committed_offset,
                leader_epoch=asked.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=now,
                expire_timestamp=expire_timestamp,
                topic_id=topic_id,
            )
            key = OffsetCommitKey(group=group_id, topic=name, partition=partition)
            records.append(Record(key, value))
            partitions.append(OffsetCommitResponsePartition(partition_index=partition))
        topics.append(
            OffsetCommitResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)
        )
    return Effects(records, [Reply(call.token, OffsetCommitResponse(topics=topics))])


def _check_caller(
    state: State, group_id: GroupId, call: Call[OffsetCommitRequest], now: Millis
) -> None:
    """Raises ApiError where the caller may not commit. Renews the session of a member."""
    request = call.request
    group = state.groups.get(group_id)
    epoch = request.generation_id_or_member_epoch
    if group is not None:
        try:
            session = group.check_commit(call, state.topics)
        except ApiError:
            session = _check_shorter(state, group, call)
        if session is not None:
            state.deadlines.renew(session, now)
    elif epoch >= 0:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 9 else ErrorCode.ILLEGAL_GENERATION,
            f"there is no group {request.group_id} that could be in generation {epoch}",
        )


def _check_shorter(state: State, group: Group, call: Call[OffsetCommitRequest]) -> Session | None:
    """Check a commit without the partitions whose metadata is too long: these do not count, since
    upstream measures metadata first. Raises ApiError where the caller may not commit.
    """
    request = call.request
    longest = state.longest_metadata
    possible = [
        OffsetCommitRequestTopic(
            name=topic.name,
            partitions=[
                partition
                for partition in topic.partitions
                if not too_long(partition.committed_metadata or "", longest)
            ],
        )
        for topic in request.topics
    ]
    shorter = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=possible,
    )
    again = Call(call.token, shorter, call.version, call.client)
    return group.check_commit(again, state.topics)


def is_former(table: TopicOffsets, topic_id: TopicId) -> bool:
    """Whether offsets are those of another topic, which had the name before. They end before any
    other is written: a table has one id.
    """
    return table.topic_id not in (topic_id, NO_TOPIC_ID)


def too_long(metadata: str, longest: int) -> bool:
    """Whether there are more UTF-16 units than allowed: Java counts in these. They are counted and
    not made, as Python imports that codec at its first use: with no descriptor left it could not.
    """
    return len(metadata) * 2 > longest and (
        len(metadata) + sum(character > "\uffff" for character in metadata) > longest
    )
