# SPDX-License-Identifier: Apache-2.0
"""Committed offsets of many groups (KIP-709): one OffsetFetch per coordinator for all its groups.

Brokers below v8 take one group per request; both kinds of answer become the same view. v10 names
topics by id, which an admin client does not have, so requests are v9 at most.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kohort.client.admin.answers import Arrived
from kohort.client.admin.group_views import CommittedOffset, GroupOffsets
from kohort.client.admin.request_rounds import failure, settle
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node, unanswered
from kohort.client.network.connection import Connection, Need
from kohort.client.topic_partitions import topic_partitions_of
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, WireError, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

BY_NAME = 9
BATCHED = 8
ALL_PARTITIONS = Need(2, "fetching the offsets of all partitions", "Apache Kafka 0.10.2")
STABLE = Need(7, "require_stable", "KIP-447, Apache Kafka 2.5")

# Refusals of the whole group, which OffsetFetch v1 can only write into each partition.
_OF_THE_GROUP = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)

Partitions = Sequence[TopicPartition] | None
Places = dict[str, dict[int, TopicPartition]]
"""Those of an answer, each once: thousands of groups read the same partitions."""


async def list_group_offsets(
    cluster: Cluster,
    groups: Mapping[str, Iterable[tuple[str, int]] | None],
    *,
    require_stable: bool,
    deadline: float,
    arrived: Arrived[str, GroupOffsets] | None = None,
) -> Outcomes[str, GroupOffsets]:
    """See `AdminClient.list_group_offsets`."""
    wanted: dict[str, Partitions] = {
        group_id: None if partitions is None else topic_partitions_of(partitions)
        for group_id, partitions in groups.items()
    }

    async def ask(
        node: Node, ids: Sequence[str], deadline: float
    ) -> dict[str, GroupOffsets | ApiError]:
        connection = await cluster.connection(node.address, deadline)
        share = {group_id: wanted[group_id] for group_id in ids}
        if connection.version(OffsetFetchRequest, BY_NAME) >= BATCHED:
            return await _batch(connection, share, require_stable, deadline)
        return await _one_by_one(connection, share, require_stable, deadline)

    outcomes: dict[str, GroupOffsets | ApiError] = await settle(
        cluster,
        wanted,
        cluster.coordinators,
        ask,
        deadline=deadline,
        unfinished=_is_unstable,
        arrived=arrived,
    )
    return Outcomes(outcomes)


def _is_unstable(offsets: GroupOffsets) -> bool:
    """Whether an open transaction still hides an offset (only with require_stable)."""
    return any(
        isinstance(offset, ApiError) and offset.code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        for offset in offsets.values()
    )


async def _batch(
    connection: Connection,
    groups: Mapping[str, Partitions],
    require_stable: bool,  # noqa: FBT001
    deadline: float,
) -> dict[str, GroupOffsets | ApiError]:
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=None
                if partitions is None
                else [
                    OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(partitions).items()
                ],
            )
            for group_id, partitions in groups.items()
        ],
        require_stable=require_stable,
    )
    answer: OffsetFetchResponse = await connection.ask(request, deadline=deadline, at_most=BY_NAME)
    places: Places = {}
    return {
        group.group_id: api_error(group.error_code)
        if group.error_code
        else _offsets(group.topics, groups.get(group.group_id), places)
        for group in answer.groups
    }


async def _one_by_one(
    connection: Connection,
    groups: Mapping[str, Partitions],
    require_stable: bool,  # noqa: FBT001
    deadline: float,
) -> dict[str, GroupOffsets | ApiError]:
    """One request per group, all sent at once."""

    async def fetch(group_id: str, partitions: Partitions) -> GroupOffsets | ApiError:
        need = STABLE if require_stable else ALL_PARTITIONS if partitions is None else None
        request = OffsetFetchRequest(
            group_id=group_id,
            topics=None
            if partitions is None
            else [
                OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
            require_stable=require_stable,
        )
        try:
            answer: OffsetFetchResponse = await connection.ask(
                request, deadline=deadline, need=need, at_most=BATCHED - 1
            )
        except (ApiError, UnsupportedVersionError, WireError) as error:
            return failure(error)
        if answer.error_code:
            return api_error(answer.error_code)
        offsets = _offsets(answer.topics, partitions, {})
        for offset in offsets.values():
            if isinstance(offset, ApiError) and offset.code in _OF_THE_GROUP:
                return offset
        return offsets

    answers = await asyncio.gather(*(fetch(*entry) for entry in groups.items()))
    return dict(zip(groups, answers, strict=True))


def _offsets(topics: Iterable[Any], wanted: Partitions, places: Places) -> GroupOffsets:
    """The offsets in topics of either shape: first, and all, those that were asked for."""
    offsets: dict[TopicPartition, CommittedOffset | ApiError | None] = {
        partition: unanswered("partition", partition) for partition in wanted or ()
    }
    answered = {}
    for topic in topics:
        name, known = topic.name, places.setdefault(topic.name, {})
        for partition in topic.partitions:
            index = partition.partition_index
            place = known.get(index)
            if place is None:
                place = known[index] = TopicPartition(name, index)
            answered[place] = _committed(partition)
    offsets.update((place, answered[place]) for place in sorted(answered))
    return offsets


def _committed(partition: Any) -> CommittedOffset | ApiError | None:
    if partition.error_code:
        return api_error(partition.error_code)
    if partition.committed_offset < 0:
        return None
    epoch = partition.committed_leader_epoch
    return CommittedOffset(
        partition.committed_offset, epoch if epoch >= 0 else None, partition.metadata or ""
    )
