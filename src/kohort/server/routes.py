"""Where each request goes: to a function of this node, to one shard, or to several and back
together.

Every API that is served has a row in ROUTES, and a test says so.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.coordinator.effects import Call
from kohort.errors import ApiError
from kohort.server.apis import cluster, configs, data, groups, offsets, topics
from kohort.server.apis.unsupported import NotBuiltError
from kohort.terms import Millis
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.create_partitions import CreatePartitionsRequest
from kohort.wire.messages.create_topics import CreateTopicsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_records import DeleteRecordsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.describe_cluster import DescribeClusterRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kohort.wire.messages.fetch import FetchRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.list_offsets import ListOffsetsRequest
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.messages.offset_delete import OffsetDeleteRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequest
from kohort.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kohort.wire.messages.produce import ProduceRequest
from kohort.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from kohort.server.node import Node

Handle = Callable[["Node", Call[Any], Millis], None]


class Route(NamedTuple):
    """How a request is handled.

    `pipelined`: it may be taken while earlier requests of its connection wait for the disk.
    `waits`: its answer may wait for somebody else's step, and holds back what is behind it.
    """

    handle: Handle
    pipelined: bool = False
    waits: bool = False


def _refused(node: "Node", call: Call[Any], error: ApiError) -> Any:
    if isinstance(error, NotBuiltError):
        who = f"{call.client.id!r} at {call.client.host}"
        node.cluster.observe(f"{call.request.name} of {who} is refused: {error.message}")
    return call.request.refused(error)


def here(
    handler: Callable[["Node", Call[Any], Millis], Any],
    *,
    pipelined: bool = False,
    waits: bool = False,
) -> Route:
    """Answered by a function of this node; None means that it has parked the call and answers
    later.
    """

    def handle(node: "Node", call: Call[Any], now: Millis) -> None:
        try:
            response = handler(node, call, now)
        except ApiError as error:
            response = _refused(node, call, error)
        if response is not None:
            call.token.answer(response)

    return Route(handle, pipelined=pipelined, waits=waits)


def to_shard(handler: Callable[["Node", Call[Any]], None], *, waits: bool = False) -> Route:
    """Passed on to the shards of the groups that it names."""

    def handle(node: "Node", call: Call[Any], now: Millis) -> None:  # noqa: ARG001
        try:
            handler(node, call)
        except ApiError as error:
            call.token.answer(_refused(node, call, error))

    return Route(handle, pipelined=True, waits=waits)


ROUTES: dict[type[Any], Route] = {
    # the cluster
    ApiVersionsRequest: here(cluster.api_versions),
    MetadataRequest: here(cluster.metadata),
    DescribeClusterRequest: here(cluster.describe_cluster),
    DescribeTopicPartitionsRequest: here(cluster.describe_topic_partitions),
    FindCoordinatorRequest: here(cluster.find_coordinator),
    # topics and their settings
    CreateTopicsRequest: here(topics.create_topics),
    DeleteTopicsRequest: here(topics.delete_topics),
    CreatePartitionsRequest: here(topics.create_partitions),
    DescribeConfigsRequest: here(configs.describe_configs),
    IncrementalAlterConfigsRequest: here(configs.incremental_alter_configs),
    # records
    InitProducerIdRequest: here(data.init_producer_id),
    ProduceRequest: here(data.produce, pipelined=True),
    FetchRequest: here(data.fetch, waits=True),
    ListOffsetsRequest: here(data.list_offsets),
    OffsetForLeaderEpochRequest: here(data.offset_for_leader_epoch),
    DeleteRecordsRequest: here(data.delete_records),
    # groups
    JoinGroupRequest: to_shard(groups.one_group, waits=True),
    SyncGroupRequest: to_shard(groups.one_group, waits=True),
    HeartbeatRequest: to_shard(groups.one_group),
    LeaveGroupRequest: to_shard(groups.one_group),
    ConsumerGroupHeartbeatRequest: to_shard(groups.consumer_heartbeat),
    OffsetCommitRequest: to_shard(offsets.commit_offsets),
    OffsetFetchRequest: to_shard(offsets.fetch_offsets),
    OffsetDeleteRequest: to_shard(offsets.delete_offsets),
    ListGroupsRequest: to_shard(groups.list_groups),
    DescribeGroupsRequest: to_shard(groups.describe_groups),
    ConsumerGroupDescribeRequest: to_shard(groups.describe_consumer_groups),
    DeleteGroupsRequest: to_shard(groups.delete_groups),
}
