# SPDX-License-Identifier: Apache-2.0
"""Evidence in the logs of groups: offsets, members, assignments and settings."""

from collections.abc import Iterator
from typing import Any

from kohort.errors import ErrorCode
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
)
from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.synced_disk import GROUPS, SyncedDisk

DONE = frozenset({ErrorCode.NONE, ErrorCode.COMPUTE_ASSIGNMENT})
NO_ID = bytes(16)


def offset_commit(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    group = exchange.request.group_id
    disk.look(GROUPS)
    for topic, index, offsets in committed(exchange):
        key = OffsetCommitKey, group, topic, index
        found = disk.history(*key)
        if any(record.value and record.value.offset in offsets for record in found):
            continue
        if not disk.superseded(exchange.since, *key):
            yield f"{group} is acknowledged at {offsets} of {topic}-{index}, on the disk it is not"


def committed(exchange: Exchange) -> Iterator[tuple[str, int, set[int]]]:
    """The offsets that an answer acknowledges; several where a partition is named twice."""
    asked: dict[tuple[str, int], set[int]] = {}
    for topic in exchange.request.topics:
        name = topic.name or exchange.name_of(getattr(topic, "topic_id", NO_ID)) or ""
        for place in topic.partitions:
            asked.setdefault((name, place.partition_index), set()).add(place.committed_offset)
    for topic in exchange.answer.topics:
        name = topic.name or exchange.name_of(getattr(topic, "topic_id", NO_ID)) or ""
        for part in topic.partitions:
            offsets = asked.get((name, part.partition_index))
            if not part.error_code and name and offsets:
                yield name, part.partition_index, offsets


def offset_delete(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    group = exchange.request.group_id
    disk.look(GROUPS)
    for topic in exchange.answer.topics:
        for part in topic.partitions:
            key = OffsetCommitKey, group, topic.name, part.partition_index
            if not exchange.answer.error_code | part.error_code and not disk.gone(
                exchange.since, *key
            ):
                yield f"{key[1:]} is deleted, on the disk it is there"


def delete_groups(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    disk.look(GROUPS)
    for result in exchange.answer.results:
        if result.error_code:
            continue
        keys: list[tuple[Any, ...]] = [
            (GroupMetadataKey, result.group_id),
            (ConsumerGroupMetadataKey, result.group_id),
        ]
        keys += disk.keys(OffsetCommitKey, result.group_id)
        for key in keys:
            if not disk.gone(exchange.since, *key):
                yield f"{result.group_id} is deleted, on the disk there is {key[0].__name__}"


def heartbeat(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    """The epoch, and with it the partitions, that a member of a consumer group is given."""
    answer, group = exchange.answer, exchange.request.group_id
    if answer.error_code not in DONE:
        return
    disk.look(GROUPS)
    member = answer.member_id or exchange.request.member_id
    key = ConsumerGroupCurrentMemberAssignmentKey, group, member
    if answer.member_epoch == -1:
        if not disk.gone(exchange.since, ConsumerGroupMemberMetadataKey, group, member):
            yield f"{member} of {group} has left, on the disk it is a member"
        return
    found: list[Any] = [record.value for record in disk.history(*key) if record.value is not None]
    known = [value for value in found if value.member_epoch == answer.member_epoch]
    if not known and not disk.superseded(exchange.since, *key):
        epochs = [value.member_epoch for value in found]
        yield (
            f"{member} of {group} is told epoch {answer.member_epoch}, on the disk is"
            f" {max(epochs, default=-1)}"
        )
    elif answer.assignment is not None and known:
        told = _partitions(answer.assignment.topic_partitions)
        if all(_partitions(value.assigned_partitions) != told for value in known):
            yield (
                f"{member} of {group} is given {len(told)} partitions at epoch"
                f" {answer.member_epoch}, on the disk it has others"
            )


def _partitions(topics: Any) -> frozenset[tuple[bytes, int]]:
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def join_group(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    """A member that comes into a generation which is on the disk must be a member there."""
    answer = exchange.answer
    if answer.error_code:
        return
    disk.look(GROUPS)
    yield from _classic_member(disk, exchange, answer.member_id, answer.generation_id, None)


def sync_group(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    """The assignment of a generation is what the next coordinator finds."""
    request, answer = exchange.request, exchange.answer
    if answer.error_code:
        return
    disk.look(GROUPS)
    group, generation = request.group_id, request.generation_id
    if disk.live(ConsumerGroupMetadataKey, group) is None:
        value = disk.live(GroupMetadataKey, group)
        there = value is not None and value.generation >= generation
        if not there and not disk.superseded(exchange.since, GroupMetadataKey, group):
            yield f"{group} has synced generation {generation}, on the disk it is not"
    yield from _classic_member(disk, exchange, request.member_id, generation, answer.assignment)


def _classic_member(
    disk: SyncedDisk, exchange: Exchange, member: str, generation: int, assignment: bytes | None
) -> Iterator[str]:
    group = exchange.request.group_id
    if disk.live(ConsumerGroupMetadataKey, group) is not None:
        key = ConsumerGroupMemberMetadataKey, group, member
        if not disk.history(*key):
            yield f"{member} is in {group}, on the disk it is no member"
        return
    found = [
        value
        for value in disk.values(exchange.since, GroupMetadataKey, group)
        if value is not None and value.generation == generation
    ]
    if not found:
        return  # nothing is written before the leader has assigned
    for value in found:  # a static member may have been replaced since
        for known in value.members:
            if known.member_id == member and assignment in (None, known.assignment):
                return
    yield (
        f"{member} is in generation {generation} of {group}, on the disk it is not a member of it"
        f"{'' if assignment is None else ' with what it is given'}"
    )


def leave_group(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    """A classic group writes nothing while others are in it: only its next generation counts."""
    group = exchange.request.group_id
    disk.look(GROUPS)
    if exchange.answer.error_code or disk.live(ConsumerGroupMetadataKey, group) is None:
        return
    gone = [part.member_id for part in exchange.answer.members if not part.error_code]
    for member in gone or [exchange.request.member_id]:
        if member and not disk.gone(exchange.since, ConsumerGroupMemberMetadataKey, group, member):
            yield f"{member} has left {group}, on the disk it is a member"


def install(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    if exchange.answer.error_code or request.error:
        return
    disk.look(GROUPS)
    key = ConsumerGroupTargetAssignmentMetadataKey, request.group_id
    found = disk.history(*key)
    if not any(
        record.value and record.value.assignment_epoch >= request.group_epoch for record in found
    ):
        yield f"{request.group_id} has the target of epoch {request.group_epoch}, not on the disk"
