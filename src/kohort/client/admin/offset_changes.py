# SPDX-License-Identifier: Apache-2.0
"""Offsets of a group without members, set and taken away from outside (KIP-396, KIP-496).

Both requests go to the coordinator of the group, and answer partition by partition. What brokers
say of a group with members depends on the request and on the protocol, so the texts are ours.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kohort.client.admin.group_views import CommittedOffset
from kohort.client.admin.groups import coordinator_of, describe_groups
from kohort.client.admin.offsets import list_group_offsets
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topics import describe_topics
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

BY_NAME = 9  # OffsetCommit v10 names topics by id, which an admin client does not have
EPOCHS = Need(6, "a leader epoch of an offset", "KIP-320, Apache Kafka 2.1")

# What the coordinator of a group with members answers to who commits without being one of them.
_HAS_MEMBERS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


async def alter_group_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    deadline: float,
) -> Outcomes[TopicPartition, None]:
    """See `AdminClient.alter_group_offsets`."""
    epochs = any(offset.leader_epoch is not None for offset in offsets.values())

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, ApiError | None]:
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id="",
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        _partition(index, offsets[TopicPartition(name, index)]) for index in indexes
                    ],
                )
                for name, indexes in by_topic(keys).items()
            ],
        )
        answer: OffsetCommitResponse = await cluster.ask(
            node, request, deadline=deadline, need=EPOCHS if epochs else None, at_most=BY_NAME
        )
        return _outcomes(answer.topics, group_id, cluster.principal)

    locate = coordinator_of(cluster, group_id)
    return Outcomes(
        await settle(cluster, offsets, locate, ask, deadline=deadline, repeatable=False)
    )


def _partition(index: int, offset: CommittedOffset) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


async def delete_group_offsets(
    cluster: Cluster,
    group_id: str,
    places: Sequence[TopicPartition | str],
    *,
    deadline: float,
) -> Outcomes[TopicPartition, None]:
    """See `AdminClient.delete_group_offsets`."""
    keys = await _with_offsets(cluster, group_id, places, deadline)

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, ApiError | None]:
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for name, indexes in by_topic(keys).items()
            ],
        )
        answer: OffsetDeleteResponse = await cluster.ask(node, request, deadline=deadline)
        if answer.error_code:
            return {
                key: _refusal(group_id, key, answer.error_code, cluster.principal) for key in keys
            }
        return _outcomes(answer.topics, group_id, cluster.principal)

    locate = coordinator_of(cluster, group_id)
    return Outcomes(await settle(cluster, keys, locate, ask, deadline=deadline, repeatable=False))


async def _with_offsets(
    cluster: Cluster, group_id: str, places: Sequence[TopicPartition | str], deadline: float
) -> list[TopicPartition]:
    """The partitions that are meant: a topic stands for those of its own with an offset.

    A group or a topic that does not exist has no offsets, and nobody would hear that it does not
    exist: so both are asked for where a topic stands for nothing. Raises ApiError.
    """
    topics = {place for place in places if isinstance(place, str)}
    keys = {place: None for place in places if not isinstance(place, str)}
    if topics:
        found = await list_group_offsets(
            cluster, {group_id: None}, require_stable=False, deadline=deadline
        )
        keys |= {key: None for key in found[group_id] if key.topic in topics}
        without = sorted(topics - {key.topic for key in keys})
        if without:
            (await describe_groups(cluster, [group_id], deadline=deadline)).all()
            (await describe_topics(cluster, without, deadline=deadline)).all()
    return list(keys)


def _outcomes(
    topics: Sequence[Any], group_id: str, principal: str
) -> dict[TopicPartition, ApiError | None]:
    """The outcomes in the topics of either answer."""
    answered = (
        (TopicPartition(topic.name, partition.partition_index), partition.error_code)
        for topic in topics
        for partition in topic.partitions
    )
    return {
        key: _refusal(group_id, key, code, principal) if code else None for key, code in answered
    }


def _refusal(group_id: str, key: TopicPartition, code: int, principal: str) -> ApiError:
    """The error of a partition. Brokers answer with bare codes."""
    error = api_error(code)
    if error.code in _HAS_MEMBERS or error.code is ErrorCode.NON_EMPTY_GROUP:
        text = f"group {group_id} has members, expected none: stop its consumers first"
    elif error.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        text = f"group {group_id} reads topic {key.topic}, expected nobody: stop its consumers"
    elif error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        text = f"partition {key} does not exist"
    elif error.code is ErrorCode.GROUP_ID_NOT_FOUND:
        text = f"no group {group_id} that has committed offsets"
    else:
        return explained(error, principal, _denied(error, group_id, key))
    return ApiError(error.code, text)


def _denied(error: ApiError, group_id: str, key: TopicPartition) -> object:
    return group_id if error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED else key
