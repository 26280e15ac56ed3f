# SPDX-License-Identifier: Apache-2.0
"""Metadata (3): brokers, topics and partition leaders.

v1 adds racks, the controller and internal topics; a null list of topics means all.
v2 adds the cluster id.
v3 adds the throttle time, v4 the choice whether topics are created on demand.
v5 adds offline replicas, v7 leader epochs.
v8 adds authorised operations.
v9 is flexible.
v10 adds topic ids (KIP-516); v12 looks topics up by id alone.
v11 drops the authorised operations of the cluster.
v13 adds a top-level error code.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, String, Uuid, at, request, response, struct


@struct
class MetadataRequestTopic:
    topic_id: Uuid = at("10+", default=bytes(16))
    name: String | None = at(nullable="10+")


@request(3, versions="0-13", flexible="9+")
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = at(nullable="1+")
    allow_auto_topic_creation: Bool = at("4+", default=True)
    include_cluster_authorized_operations: Bool = at("8-10", default=False)
    include_topic_authorized_operations: Bool = at("8+", default=False)

    def refused(self, error: ApiError) -> "MetadataResponse":
        topics = [
            MetadataResponseTopic(error_code=error.code, name=topic.name, topic_id=topic.topic_id)
            for topic in self.topics or ()
        ]
        return MetadataResponse(topics=topics, error_code=error.code)


@struct
class MetadataResponseBroker:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = at("1+", default=None)


@struct
class MetadataResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = at("7+", default=-1)
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: list[Int32] = at("5+", default=[])


@struct
class MetadataResponseTopic:
    error_code: Int16 = 0
    name: String | None = at(nullable="12+", default="")
    topic_id: Uuid = at("10+", default=bytes(16))
    is_internal: Bool = at("1+", default=False)
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Int32 = at("8+", default=-2147483648)


@response(3, versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: Int32 = at("3+", default=0)
    brokers: list[MetadataResponseBroker] = []
    cluster_id: String | None = at("2+", default=None)
    controller_id: Int32 = at("1+", default=-1)
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Int32 = at("8-10", default=-2147483648)
    error_code: Int16 = at("13+", default=0)
