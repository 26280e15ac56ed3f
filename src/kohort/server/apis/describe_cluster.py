# SPDX-License-Identifier: Apache-2.0
"""DescribeCluster: the nodes (KIP-700)."""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import NOT_ASKED, cluster_operations
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


def describe_cluster(
    node: Node, call: Call[DescribeClusterRequest], _now: Millis
) -> DescribeClusterResponse:
    """Describe the nodes. A request for controllers is refused: this is a broker (KIP-919)."""
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
        controller_id=cluster.placement.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.id,
                host=(where := node.endpoints[broker.id]).host,
                port=where.port,
                rack=broker.rack,
            )
            for broker in cluster.placement.brokers
        ],
        cluster_authorized_operations=(
            cluster_operations(cluster.may, call.client)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )
