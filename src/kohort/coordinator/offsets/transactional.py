# SPDX-License-Identifier: Apache-2.0
"""Offsets in a transaction: they wait in the log until its marker decides about them (KIP-98).

Who may commit is asked as for other commits, but a producer need not be a member (KIP-447). Whether
the transaction is open, and the producer its own, was asked before: here comes only who may.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kohort.coordinator.offsets.commit import is_former, too_long
from kohort.coordinator.offsets.records import tombstone
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import TAKE_AGAIN, Call, Effects, Marker, Producer, Reply, Transaction
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.terms import NO_TOPIC_ID, GroupId, Millis
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_MEMBERS_OF_ALL_KINDS = 9  # the version of OffsetCommit from which every member may commit


class EndOffsets(NamedTuple):
    """A request: a producer's transaction has ended, and so have its offsets waited."""

    producer: Producer
    marker: Marker

    def refused(self, error: ApiError) -> ApiError:
        """Whoever asks wants to know, and asks again."""
        return error


def end_offsets(_state: State, call: Call[EndOffsets], _now: Millis) -> Effects:
    """Write the marker. Replaying it commits or drops what the transaction had pending."""
    asked = call.request
    return Effects(
        [], [Reply(call.token, None)], transaction=Transaction(asked.producer, asked.marker)
    )


def commit(state: State, call: Call[TxnOffsetCommitRequest], now: Millis) -> Effects:
    """One record for each accepted partition, in a batch of the producer's transaction. What former
    topics of these names have left ends before that, in no transaction.
    """
    request = call.request
    group_id = GroupId(request.group_id)
    _check_caller(state, call)
    former = _of_former_topics(state, group_id, (topic.name for topic in request.topics))
    if former:
        return Effects(former, continuation=TAKE_AGAIN)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        known = state.topics.by_name.get(topic.name)
        topic_id = NO_TOPIC_ID if known is None else known.id
        partitions = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            code = ErrorCode.NONE
            if too_long(metadata, state.longest_metadata):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now,
                    topic_id=topic_id,
                )
                key = OffsetCommitKey(
                    group=group_id, topic=topic.name, partition=partition.partition_index
                )
                records.append(Record(key, value))
            partitions.append(
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    producer = Producer(request.producer_id, request.producer_epoch)
    response = TxnOffsetCommitResponse(topics=topics)
    return Effects(records, [Reply(call.token, response)], transaction=Transaction(producer))


def _of_former_topics(state: State, group_id: GroupId, names: Iterable[str]) -> list[Record]:
    tables = state.offsets.of(group_id)
    topics = state.topics.by_name
    return [
        tombstone(group_id, name, partition)
        for name in dict.fromkeys(names)
        if name in tables and name in topics and is_former(tables[name], topics[name].id)
        for partition in tables[name].partitions()
    ]


def _check_caller(state: State, call: Call[TxnOffsetCommitRequest]) -> None:
    """Raises ApiError where the caller may not commit for the group."""
    request = call.request
    group = state.groups.get(GroupId(request.group_id))
    if group is not None:
        group.check_transactional_commit(_as_commit(call), state.topics)
    elif request.generation_id >= 0:
        raise ApiError(
            ErrorCode.ILLEGAL_GENERATION,
            f"there is no group {request.group_id} that could be in generation "
            f"{request.generation_id}",
        )


def _as_commit(call: Call[TxnOffsetCommitRequest]) -> Call[OffsetCommitRequest]:
    """The same commit without a transaction, which is what groups know."""
    request = call.request
    plain = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_metadata=None,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
    return Call(call.token, plain, _MEMBERS_OF_ALL_KINDS, call.client)
