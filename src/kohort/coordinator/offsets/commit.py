"""OffsetCommit: may this caller commit for this group, and what of it is acceptable?

A refusal of the caller concerns every partition and is raised; a refusal of one partition is data
in the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.effects import Call, Effects, Reply
from kohort.errors import ApiError, ErrorCode
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.terms import NO_TOPIC_ID, GroupId, GroupState, MemberId, Millis
from kohort.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from kohort.coordinator.shard import Shard
    from kohort.wire.messages.offset_commit import OffsetCommitRequest

_FOREVER = (1 << 63) - 1
_RENEWS_SESSION = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)


def commit(shard: Shard, call: Call[OffsetCommitRequest], now: Millis) -> Effects:
    """One record for each accepted partition, in one batch, and the answer when they are stored."""
    request = call.request
    _check_caller(shard, call, now)
    group_id = request.group_id
    retention_ms = request.retention_time_ms
    expire_timestamp = -1 if retention_ms == -1 else min(now + retention_ms, _FOREVER)
    longest = shard.config.offset_metadata_max_bytes
    topics_by_name = shard.topics.by_name
    records = []
    topics = []
    for topic in request.topics:
        name = topic.name
        known = topics_by_name.get(name)
        topic_id = NO_TOPIC_ID if known is None else known.id
        partitions = []
        for one in topic.partitions:
            partition = one.partition_index
            metadata = one.committed_metadata or ""
            if len(metadata) * 2 > longest and _units(metadata) > longest:
                partitions.append(
                    OffsetCommitResponsePartition(
                        partition_index=partition,
                        error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE,
                    )
                )
                continue
            value = OffsetCommitValue(
                offset=one.committed_offset,
                leader_epoch=one.committed_leader_epoch,
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


def _check_caller(shard: Shard, call: Call[OffsetCommitRequest], now: Millis) -> None:
    request = call.request
    group_id = GroupId(request.group_id)
    group = shard.groups.get(group_id)
    epoch = request.generation_id_or_member_epoch
    if isinstance(group, ConsumerGroup):
        group.check_commit(
            MemberId(request.member_id), epoch, call.version, request.topics, shard.topics
        )
    elif isinstance(group, ClassicGroup):
        member = group.check_commit(MemberId(request.member_id), request.group_instance_id, epoch)
        if member is not None and group.state in _RENEWS_SESSION:
            rebalance.watch(shard, group, member, now)
    elif group is not None:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"group {group_id} is a {group.type} group, which has no committed offsets",
        )
    elif epoch >= 0:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 9 else ErrorCode.ILLEGAL_GENERATION,
            f"there is no group {group_id} that could be in generation {epoch}",
        )


def _units(text: str) -> int:
    """The length as Java counts it: in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
