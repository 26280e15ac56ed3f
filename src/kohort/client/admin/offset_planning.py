# SPDX-License-Identifier: Apache-2.0
"""What a plan to reset the offsets of a group is made of, asked of the cluster: the group's state
and offsets of its coordinator, starts and ends of logs of their leaders.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from kohort.client.admin.group_views import GroupOffsets
from kohort.client.admin.groups import describe_groups
from kohort.client.admin.offset_reset import (
    LogOffsets,
    OffsetReset,
    OffsetResetPlan,
    PlanInputs,
    Scenario,
    planned_offset,
)
from kohort.client.admin.offsets import list_group_offsets
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topic_views import FoundOffset
from kohort.client.admin.topics import (
    POINTS,
    describe_topics,
    found_offset,
    leaders,
    offsets_request,
)
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node, unanswered
from kohort.client.network.environment import environment
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupState, TopicPartition
from kohort.wire.messages.list_offsets import ListOffsetsResponse


async def plan_offset_reset(
    cluster: Cluster,
    group_id: str,
    reset: OffsetReset,
    places: Sequence[TopicPartition | str] | None,
    *,
    deadline: float,
) -> OffsetResetPlan:
    """See `AdminClient.plan_offset_reset`."""
    state, describe_error = await _state(cluster, group_id, deadline)
    wanted = None if places is None else await _partitions(cluster, places, deadline)
    current = await _offsets(cluster, group_id, wanted, deadline)
    source: GroupOffsets = {}
    if reset.scenario is Scenario.CLONE:
        source = await _offsets(cluster, str(reset.value), wanted, deadline)
    elif isinstance(reset.value, Mapping):
        source = reset.value
    if wanted is None:
        takes_over = reset.scenario in (Scenario.CLONE, Scenario.FILE)
        wanted = [key for key, offset in (source if takes_over else current).items() if offset]
    if takes_more := [key for key in wanted if key not in current]:
        current = {**current, **await _offsets(cluster, group_id, takes_more, deadline)}
    logs = await _log_offsets(cluster, wanted, _timestamp(reset), deadline)
    inputs = PlanInputs(current, logs, source)
    planned = {partition: planned_offset(reset, partition, inputs) for partition in wanted}
    return OffsetResetPlan(group_id, state, planned, describe_error)


def _timestamp(reset: OffsetReset) -> int | None:
    """The time that logs are asked for, in milliseconds; None where the scenario has none."""
    if reset.scenario not in (Scenario.DATETIME, Scenario.DURATION):
        return None
    assert isinstance(reset.value, int)
    if reset.scenario is Scenario.DATETIME:
        return reset.value
    return max(0, int(environment().clock.time() * 1000) - reset.value)


async def _state(
    cluster: Cluster, group_id: str, deadline: float
) -> tuple[GroupState | str, ApiError | None]:
    """The state of a group; Dead, with the answer, for one that the coordinator does not describe.
    Raises ApiError for any other failure.
    """
    described = await describe_groups(cluster, [group_id], deadline=deadline)
    error = described.failed.get(group_id)
    if error is not None and error.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return GroupState.DEAD, error.without_frames()
    return described[group_id].state, None


async def _partitions(
    cluster: Cluster, places: Sequence[TopicPartition | str], deadline: float
) -> list[TopicPartition]:
    """The partitions that are meant: a topic stands for all of its own. Raises ApiError for a topic
    that does not exist.
    """
    names = [place for place in places if isinstance(place, str)]
    topics = (await describe_topics(cluster, names, deadline=deadline)).all() if names else {}
    found: dict[TopicPartition, None] = {}
    for place in places:
        if isinstance(place, str):
            partitions = (each.partition for each in topics[place].partitions)
            found |= dict.fromkeys(TopicPartition(place, index) for index in partitions)
        else:
            found[place] = None
    return list(found)


async def _offsets(
    cluster: Cluster, group_id: str, wanted: Iterable[TopicPartition] | None, deadline: float
) -> GroupOffsets:
    found = await list_group_offsets(
        cluster, {group_id: wanted}, require_stable=False, deadline=deadline
    )
    return found[group_id]


async def _log_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int | None, deadline: float
) -> Outcomes[TopicPartition, LogOffsets]:
    """Starts and ends, and offsets by time: two or three requests to each leader, sent at once."""
    times = [POINTS["earliest"], POINTS["latest"], *([] if timestamp is None else [timestamp])]

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, LogOffsets | ApiError]:
        requests = [
            offsets_request(keys, dict.fromkeys(keys, time), read_committed=False) for time in times
        ]
        answers: list[ListOffsetsResponse] = await asyncio.gather(
            *(cluster.ask(node, request, deadline=deadline) for request in requests)
        )
        found = [
            {
                TopicPartition(topic.name, partition.partition_index): found_offset(partition)
                for topic in answer.topics
                for partition in topic.partitions
            }
            for answer in answers
        ]
        return {key: _joined([each.get(key) for each in found], key) for key in keys}

    return Outcomes(await settle(cluster, partitions, leaders(cluster), ask, deadline=deadline))


def _joined(
    found: Sequence[FoundOffset | ApiError | None], key: TopicPartition
) -> LogOffsets | ApiError:
    offsets: list[int | None] = []
    for each in found:
        if each is None:
            return unanswered("partition", key)
        if isinstance(each, ApiError):
            return each
        offsets.append(each.offset)
    start, end, at_time = (*offsets, None)[:3]
    if start is None or end is None:
        text = f"partition {key} has no offsets yet"
        return ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
    return LogOffsets(start, end, at_time)
