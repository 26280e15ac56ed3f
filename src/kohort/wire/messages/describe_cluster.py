# SPDX-License-Identifier: Apache-2.0
"""DescribeCluster (60): the brokers of the cluster and its id (KIP-700).

v1 distinguishes brokers from controllers (KIP-919).
v2 includes fenced brokers.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int8, Int16, Int32, String, at, request, response, struct


@request(60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = at("1+", default=1)
    include_fenced_brokers: Bool = at("2+", default=False)

    def refused(self, error: ApiError) -> "DescribeClusterResponse":
        return DescribeClusterResponse(error_code=error.code, error_message=error.message or None)


@struct
class DescribeClusterBroker:
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Bool = at("2+", default=False)


@response(60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Int8 = at("1+", default=1)
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = -2147483648
