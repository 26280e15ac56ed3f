"""What the cluster is: nodes, topics, who leads a partition and who coordinates a group."""

import re
from typing import TYPE_CHECKING

from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode
from kohort.server.apis import topics as topic_apis
from kohort.server.apis import unsupported
from kohort.server.apis.leaders import leader_epoch
from kohort.server.catalog import Topic, check_topic_name
from kohort.terms import NO_TOPIC_ID, GroupId, Millis, TopicId
from kohort.wire.apis import APIS
from kohort.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kohort.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kohort.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kohort.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kohort.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from kohort.server.node import Node

# Bit fields of everything that may be done, by ACL operation code (KIP-430): there are no ACLs yet.
CLUSTER_OPERATIONS = 8096
TOPIC_OPERATIONS = 3576
_NOT_ASKED = -2147483648

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_BROKERS, _CONTROLLERS = 1, 2


# --- ApiVersions


def api_versions(node: "Node", call: Call[ApiVersionsRequest], now: Millis) -> ApiVersionsResponse:
    """What is served. A client that names its software must do so in the letters of KIP-511."""
    del now
    request = call.request
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"client software {request.client_software_name!r} "
            f"{request.client_software_version!r}, expected letters, digits, dots and hyphens",
        )
    keys = [
        ApiVersion(
            api_key=key,
            # librdkafka 2.0 takes a missing Produce 0-2 for missing compression, so upstream lists
            # what it does not serve, and so do we.
            min_version=0 if APIS[key].request is ProduceRequest else versions.first,
            max_version=versions.last,
        )
        for key, versions in sorted(node.served.items())
    ]
    supported = []
    if call.version >= 4:  # only v4 can say that a feature starts at 0
        supported.append(SupportedFeatureKey(name="group.version", min_version=0, max_version=1))
    finalized = []
    if "consumer" in node.cluster.config.group_coordinator_rebalance_protocols:
        finalized.append(
            FinalizedFeatureKey(name="group.version", max_version_level=1, min_version_level=1)
        )
    return ApiVersionsResponse(
        error_code=0,
        api_keys=keys,
        supported_features=supported,
        finalized_features_epoch=0,
        finalized_features=finalized,
    )


# --- Metadata


def metadata(node: "Node", call: Call[MetadataRequest], now: Millis) -> MetadataResponse:
    """Nodes, topics and leaders. A missing topic is made, and there when the client asks again."""
    request = call.request
    cluster = node.cluster
    wanted = request.topics
    if 10 <= call.version <= 11 and any(
        topic.topic_id != NO_TOPIC_ID or topic.name is None for topic in wanted or ()
    ):
        return _ids_too_early(request)
    answers: list[MetadataResponseTopic]
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else _NOT_ASKED
    if wanted is None or (call.version == 0 and not wanted):
        answers = [_topic(node, topic, operations) for topic in cluster.catalog.by_name.values()]
    else:
        answers = [
            _topic_by_id(node, TopicId(one.topic_id), operations)
            if one.topic_id != NO_TOPIC_ID or one.name is None
            else _topic_by_name(
                node, one.name, operations, now, create=request.allow_auto_topic_creation
            )
            for one in wanted
        ]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=one.id, host=one.host, port=one.port)
            for one in cluster.nodes
        ],
        cluster_id=cluster.catalog.cluster_id,
        controller_id=cluster.node_ids[0],
        topics=answers,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else _NOT_ASKED
        ),
    )


def _ids_too_early(request: MetadataRequest) -> MetadataResponse:
    """v10 and v11 carry topic ids in requests, and upstream does not look at them (KIP-516)."""
    return MetadataResponse(
        brokers=[],
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=topic.name or "",
                topic_id=topic.topic_id,
                partitions=[],
            )
            for topic in request.topics or ()
        ],
    )


def _topic_by_id(node: "Node", topic_id: TopicId, operations: int) -> MetadataResponseTopic:
    topic = node.cluster.catalog.by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id, partitions=[]
        )
    return _topic(node, topic, operations)


def _topic_by_name(
    node: "Node", name: str, operations: int, now: Millis, *, create: bool
) -> MetadataResponseTopic:
    topic = node.cluster.catalog.by_name.get(name)
    if topic is not None:
        return _topic(node, topic, operations)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
        if create and node.cluster.config.auto_create_topics_enable:
            # Upstream answers before the topic exists, and clients know how to ask again.
            topic_apis.create_by_default(node, name, now)
    except ApiError as refused:
        error = refused.code
    return MetadataResponseTopic(error_code=error, name=name, partitions=[])


def _topic(node: "Node", topic: Topic, operations: int) -> MetadataResponseTopic:
    nodes = node.cluster.node_ids
    partitions = []
    for index in range(topic.partitions):
        replicas = topic.replicas(index, nodes)
        partitions.append(
            MetadataResponsePartition(
                error_code=0,
                partition_index=index,
                leader_id=replicas[0],
                leader_epoch=leader_epoch(node, topic.name, index),
                replica_nodes=replicas,
                isr_nodes=replicas,
            )
        )
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


# --- DescribeTopicPartitions


def describe_topic_partitions(
    node: "Node", call: Call[DescribeTopicPartitionsRequest], now: Millis
) -> DescribeTopicPartitionsResponse:
    """Topics by name, up to a number of partitions; a cursor says where to go on."""
    del now
    request = call.request
    config = node.cluster.config
    catalog = node.cluster.catalog
    names = sorted({topic.name for topic in request.topics} or catalog.by_name)
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"cursor at partition {cursor.partition_index}, expected at least 0",
            )
        names = [name for name in names if name >= cursor.topic_name]
    left = min(request.response_partition_limit, config.max_request_partition_size_limit)
    answers: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if left <= 0:
            return DescribeTopicPartitionsResponse(
                topics=answers, next_cursor=Cursor(topic_name=name, partition_index=0)
            )
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        topic = catalog.by_name.get(name)
        answer = _described(node, name, topic, first, left)
        answers.append(answer)
        left -= len(answer.partitions)
        if topic is not None and first + len(answer.partitions) < topic.partitions:
            if first >= topic.partitions:
                continue
            return DescribeTopicPartitionsResponse(
                topics=answers,
                next_cursor=Cursor(topic_name=name, partition_index=first + len(answer.partitions)),
            )
    return DescribeTopicPartitionsResponse(topics=answers, next_cursor=None)


def _described(
    node: "Node", name: str, topic: Topic | None, first: int, limit: int
) -> DescribeTopicPartitionsResponseTopic:
    """One topic, from a partition on. Refusals show what may be done too, as upstream's do."""
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            check_topic_name(name)
        except ApiError as refused:
            error = refused.code
        return DescribeTopicPartitionsResponseTopic(
            error_code=error,
            name=name,
            topic_id=NO_TOPIC_ID,
            partitions=[],
            topic_authorized_operations=TOPIC_OPERATIONS,
        )
    nodes = node.cluster.node_ids
    partitions = []
    for index in range(first, min(topic.partitions, first + limit)):
        replicas = topic.replicas(index, nodes)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=0,
                partition_index=index,
                leader_id=replicas[0],
                leader_epoch=leader_epoch(node, topic.name, index),
                replica_nodes=replicas,
                isr_nodes=replicas,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[],
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


# --- DescribeCluster


def describe_cluster(
    node: "Node", call: Call[DescribeClusterRequest], now: Millis
) -> DescribeClusterResponse:
    """The nodes. Who asks for controllers has come to the wrong door (KIP-919)."""
    del now
    request = call.request
    cluster = node.cluster
    if request.endpoint_type == _CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "endpoint type 2 (controllers) was asked for, this is an endpoint of brokers",
        )
    if request.endpoint_type != _BROKERS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"endpoint type is {request.endpoint_type}, expected 1 (brokers)",
        )
    return DescribeClusterResponse(
        error_code=0,
        cluster_id=cluster.catalog.cluster_id,
        controller_id=cluster.node_ids[0],
        brokers=[
            DescribeClusterBroker(broker_id=one.id, host=one.host, port=one.port)
            for one in cluster.nodes
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else _NOT_ASKED
        ),
    )


# --- FindCoordinator


def find_coordinator(
    node: "Node", call: Call[FindCoordinatorRequest], now: Millis
) -> FindCoordinatorResponse:
    """The node of each group, by the partition that its id hashes to."""
    del now
    request = call.request
    if call.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[
                _coordinator(node, request.key_type, key, fine="")
                for key in request.coordinator_keys
            ]
        )
    found = _coordinator(node, request.key_type, request.key, fine="NONE")
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(node: "Node", key_type: int, key: str, *, fine: str) -> Coordinator:
    """One key. `fine` is the error message of no error, which differs from version to version."""
    if key_type == _GROUP:
        node_id, _ = node.cluster.coordinator(GroupId(key))
        found = next(one for one in node.cluster.nodes if one.id == node_id)
        return Coordinator(
            key=key,
            node_id=found.id,
            host=found.host,
            port=found.port,
            error_code=0,
            error_message=fine,
        )
    if key_type == _TRANSACTION:
        error: ApiError = unsupported.transactions(key)
    elif key_type == _SHARE:
        text = f"share group key {key!r}: share groups are not supported"
        error = ApiError(ErrorCode.INVALID_REQUEST, text)
    else:
        text = f"key type is {key_type}, expected 0 for groups"
        error = ApiError(ErrorCode.INVALID_REQUEST, text)
    return Coordinator(
        key=key,
        node_id=-1,
        host="",
        port=-1,
        error_code=error.code,
        error_message=error.message,
    )
