# SPDX-License-Identifier: Apache-2.0
"""Topics: create, grow, delete, list, describe; offsets of their partitions by time (KIP-79)."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from kohort.client.admin.answers import Arrived
from kohort.client.admin.arguments import INT32_MAX, INT64_MAX
from kohort.client.admin.request_rounds import Locate, settle
from kohort.client.admin.topic_views import (
    CreatedTopic,
    FoundOffset,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
    TopicListings,
)
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node, nodes_of
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.client.topic_partitions import ByPartition, by_topic_partition
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import NO_TOPIC_ID, TopicPartition, millis_of
from kohort.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kohort.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

BROKER_DEFAULTS = Need(4, "the broker's own number of partitions", "KIP-464, Apache Kafka 2.4")
MAX_TIMESTAMP = Need(7, "the offset of the latest timestamp", "KIP-734, Apache Kafka 3.0")
BY_ID = 6  # DeleteTopics takes a list of structs from this version on

POINTS = {"latest": -1, "earliest": -2, "max_timestamp": -3}

When: TypeAlias = str | int | datetime


async def create_topics(
    cluster: Cluster,
    topics: Iterable[NewTopic],
    *,
    validate_only: bool,
    retry_on_quota_violation: bool = True,
    deadline: float,
) -> Outcomes[str, CreatedTopic]:
    """See `AdminClient.create_topics`."""
    by_name = {topic.name: topic for topic in topics}

    async def ask(
        node: Node, names: Sequence[str], deadline: float
    ) -> dict[str, CreatedTopic | ApiError]:
        wanted = [by_name[name] for name in names]
        defaults = any(-1 in (topic.partitions, topic.replication_factor) for topic in wanted)
        answer: CreateTopicsResponse = await cluster.ask(
            node,
            CreateTopicsRequest(
                topics=[_creatable(topic) for topic in wanted],
                timeout_ms=left_ms(deadline),
                validate_only=validate_only,
            ),
            deadline=deadline,
            need=BROKER_DEFAULTS if defaults else None,
        )
        return {
            topic.name: api_error(topic.error_code, topic.error_message)
            if topic.error_code
            else _created(topic)
            for topic in answer.topics
        }

    return Outcomes(
        await settle(
            cluster,
            by_name,
            controller(cluster),
            ask,
            deadline=deadline,
            repeatable=False,
            final=_final(retry_on_quota_violation),
        )
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[],
        configs=[
            CreatableTopicConfig(name=name, value=value)
            for name, value in (topic.configs or {}).items()
        ],
    )


def _created(topic: CreatableTopicResult) -> CreatedTopic:
    return CreatedTopic(
        topic.name,
        _id(topic.topic_id),
        topic.num_partitions if topic.num_partitions >= 0 else None,
        topic.replication_factor if topic.replication_factor >= 0 else None,
    )


async def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    *,
    validate_only: bool,
    retry_on_quota_violation: bool = True,
    deadline: float,
) -> Outcomes[str, None]:
    """See `AdminClient.create_partitions`."""

    async def ask(node: Node, names: Sequence[str], deadline: float) -> dict[str, ApiError | None]:
        answer: CreatePartitionsResponse = await cluster.ask(
            node,
            CreatePartitionsRequest(
                topics=[
                    CreatePartitionsTopic(name=name, count=counts[name], assignments=None)
                    for name in names
                ],
                timeout_ms=left_ms(deadline),
                validate_only=validate_only,
            ),
            deadline=deadline,
        )
        return {
            result.name: api_error(result.error_code, result.error_message)
            if result.error_code
            else None
            for result in answer.results
        }

    return Outcomes(
        await settle(
            cluster,
            counts,
            controller(cluster),
            ask,
            deadline=deadline,
            repeatable=False,
            final=_final(retry_on_quota_violation),
        )
    )


async def delete_topics(
    cluster: Cluster,
    names: Iterable[str],
    *,
    retry_on_quota_violation: bool = True,
    deadline: float,
) -> Outcomes[str, None]:
    """See `AdminClient.delete_topics`."""

    async def ask(node: Node, names: Sequence[str], deadline: float) -> dict[str, ApiError | None]:
        connection = await cluster.connection(node.address, deadline)
        if connection.offers(DeleteTopicsRequest, BY_ID):
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in names],
                timeout_ms=left_ms(deadline),
            )
        else:
            request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=left_ms(deadline))
        answer: DeleteTopicsResponse = await connection.ask(request, deadline=deadline)
        return {response.name or "": _deleted(response) for response in answer.responses}

    return Outcomes(
        await settle(
            cluster,
            names,
            controller(cluster),
            ask,
            deadline=deadline,
            repeatable=False,
            final=_final(retry_on_quota_violation),
        )
    )


def _deleted(result: DeletableTopicResult) -> ApiError | None:
    if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _unknown(result.name)
    return api_error(result.error_code, result.error_message) if result.error_code else None


def _unknown(name: str | None) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")


def _final(retry_on_quota_violation: bool) -> tuple[ErrorCode, ...]:  # noqa: FBT001
    """A change that a quota refuses is not made (KIP-599), and may be asked for again."""
    return () if retry_on_quota_violation else (ErrorCode.THROTTLING_QUOTA_EXCEEDED,)


def controller(cluster: Cluster) -> Any:
    """How `settle` finds the broker that all changes of the cluster go to."""

    async def locate(names: Sequence[str], deadline: float) -> dict[str, Node | ApiError]:
        return dict.fromkeys(names, await cluster.controller(deadline))

    return locate


def left_ms(deadline: float) -> int:
    """What a broker may take: it shall not go on when nobody waits for its answer any more."""
    left_s = deadline - asyncio.get_running_loop().time()
    return max(1, int(min(left_s * 1000, INT32_MAX)))


def _id(topic_id: bytes) -> bytes | None:
    return None if topic_id == NO_TOPIC_ID else topic_id


async def list_topics(cluster: Cluster, *, internal: bool, deadline: float) -> TopicListings:
    """See `AdminClient.list_topics`."""
    metadata = await cluster.metadata(None, deadline)
    listings = [
        TopicListing(
            topic.name or "",
            _id(topic.topic_id),
            topic.is_internal,
            None if topic.error_code else len(topic.partitions),
            api_error(topic.error_code) if topic.error_code else None,
        )
        for topic in metadata.topics
        if internal or not topic.is_internal
    ]
    return TopicListings(sorted(listings, key=lambda listing: listing.name))


async def describe_topics(
    cluster: Cluster, names: Iterable[str], *, deadline: float
) -> Outcomes[str, TopicDescription]:
    """See `AdminClient.describe_topics`."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return Outcomes({})
    metadata = await cluster.metadata(wanted, deadline)
    found = {topic.name: topic for topic in metadata.topics}
    principal = cluster.principal
    return Outcomes({name: topic_description(name, found.get(name), principal) for name in wanted})


def topic_description(
    name: str, topic: MetadataResponseTopic | None, principal: str
) -> TopicDescription | ApiError:
    """A topic as Metadata has it, or why it is not described."""
    if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _unknown(name)
    if topic.error_code:
        return explained(api_error(topic.error_code), principal, name)
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        name,
        _id(topic.topic_id),
        topic.is_internal,
        tuple(_partition(partition) for partition in partitions),
    )


def _partition(partition: MetadataResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch if partition.leader_epoch >= 0 else None,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        api_error(partition.error_code) if partition.error_code else None,
    )


async def list_offsets(
    cluster: Cluster,
    partitions: ByPartition[When],
    *,
    read_committed: bool,
    deadline: float,
    arrived: Arrived[TopicPartition, FoundOffset] | None = None,
) -> Outcomes[TopicPartition, FoundOffset]:
    """See `AdminClient.list_offsets`."""
    times = {
        key: _timestamp(when) for key, when in by_topic_partition("partitions", partitions).items()
    }

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, FoundOffset | ApiError]:
        newest = any(times[key] == POINTS["max_timestamp"] for key in keys)
        answer: ListOffsetsResponse = await cluster.ask(
            node,
            offsets_request(keys, times, read_committed=read_committed),
            deadline=deadline,
            need=MAX_TIMESTAMP if newest else None,
        )
        return {
            TopicPartition(topic.name, partition.partition_index): found_offset(partition)
            for topic in answer.topics
            for partition in topic.partitions
        }

    return Outcomes(
        await settle(cluster, times, leaders(cluster), ask, deadline=deadline, arrived=arrived)
    )


def _timestamp(when: When) -> int:
    """A point by name, or a time: milliseconds since 1970, or a datetime with a zone."""
    if isinstance(when, datetime):
        when = millis_of(when)
    if isinstance(when, int):
        if not 0 <= when <= INT64_MAX:
            raise ValueError(f"timestamp {when} is out of bounds, expected milliseconds since 1970")
        return when
    if when not in POINTS:
        raise ValueError(f"{when!r} is not a point in a log, expected one of {', '.join(POINTS)}")
    return POINTS[when]


def offsets_request(
    keys: Iterable[TopicPartition],
    times: Mapping[TopicPartition, int],
    *,
    read_committed: bool,
) -> ListOffsetsRequest:
    """One ListOffsets for partitions of one leader."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for key in keys:
        topics.setdefault(key.topic, []).append(
            ListOffsetsPartition(partition_index=key.partition, timestamp=times[key])
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(read_committed),
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )


def leaders(cluster: Cluster) -> Locate[TopicPartition]:
    """How `settle` finds the leaders of partitions: by one look-up of their topics."""

    async def locate(
        keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, Node | ApiError]:
        metadata = await cluster.metadata(dict.fromkeys(key.topic for key in keys), deadline)
        nodes = nodes_of(metadata)
        topics = {topic.name: topic for topic in metadata.topics}
        return {key: _leader(key, topics.get(key.topic), nodes) for key in keys}

    return locate


def _leader(
    key: TopicPartition, topic: MetadataResponseTopic | None, nodes: Mapping[int, Node]
) -> Node | ApiError:
    partitions = (
        {}
        if topic is None
        else {partition.partition_index: partition for partition in topic.partitions}
    )
    if topic is not None and topic.error_code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        return api_error(topic.error_code)
    partition = partitions.get(key.partition)
    if partition is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {key} does not exist")
    if partition.leader_id not in nodes:
        return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {key} has no leader")
    return nodes[partition.leader_id]


def found_offset(partition: ListOffsetsPartitionResponse) -> FoundOffset | ApiError:
    """The view of a partition in an answer of ListOffsets."""
    if partition.error_code:
        return api_error(partition.error_code)
    return FoundOffset(
        partition.offset if partition.offset >= 0 else None,
        partition.timestamp if partition.timestamp >= 0 else None,
        partition.leader_epoch if partition.leader_epoch >= 0 else None,
    )
