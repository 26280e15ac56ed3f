# SPDX-License-Identifier: Apache-2.0
"""ListConfigResources: the names of what may have settings (KIP-1142).

Topics and brokers are all there; groups are those that have settings of their own.
"""

from kohort.coordinator.group_settings import ConfiguredGroups, ListConfiguredGroups
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import CLUSTER, CLUSTER_NAME, DESCRIBE_CONFIGS, check
from kohort.server.apis.every_shard import ask_every_shard
from kohort.server.apis.resources import Resource
from kohort.server.node import Node
from kohort.server.placement import NOBODY
from kohort.terms import Millis
from kohort.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def list_config_resources(
    node: Node, call: Call[ListConfigResourcesRequest], _now: Millis
) -> ListConfigResourcesResponse | None:
    """None when shards are asked for groups first. There are no resources of client metrics, which
    is all that v0 asks for.
    """
    check(node.cluster.may, call.client, DESCRIBE_CONFIGS, CLUSTER, CLUSTER_NAME)
    known = [kind.value for kind in Resource]
    wanted = call.request.resource_types or known
    if call.version == 0:
        wanted = [Resource.CLIENT_METRICS]
    for kind in wanted:
        if kind not in known:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {kind}")
    if Resource.GROUP not in wanted:
        return _answer(node, wanted, [])
    cluster = node.cluster
    topic = cluster.offsets_topic()
    shards = [
        shard
        for index, shard in sorted(cluster.drivers.items())
        if cluster.placement.leader(topic, index) != NOBODY
    ]
    ask_every_shard(
        node,
        call,
        shards,
        ListConfiguredGroups(),
        lambda parts: _answer(node, wanted, parts),
        lambda part: ErrorCode.NONE if part.error is None else part.error.code,
    )
    return None


def _answer(
    node: Node, wanted: list[int], parts: list[ConfiguredGroups]
) -> ListConfigResourcesResponse:
    cluster = node.cluster
    brokers = [str(broker.id) for broker in cluster.placement.brokers]
    names: dict[int, list[str]] = {
        Resource.GROUP: [group_id for part in parts for group_id in part.group_ids],
        Resource.CLIENT_METRICS: [],
        Resource.BROKER_LOGGER: brokers,
        Resource.BROKER: brokers,
        Resource.TOPIC: list(cluster.catalog.by_name),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in names
            if kind in wanted
            for name in names[kind]
        ]
    )
