# SPDX-License-Identifier: Apache-2.0
"""Produce (0): append record batches to partitions.

v3 is the oldest that is served: record batches v2, transactional ids.
v4 may answer KAFKA_STORAGE_ERROR; v5 adds the log start offset.
v7 allows zstd.
v8 names the records that were refused (KIP-467).
v9 is flexible.
v10 adds the current leader (KIP-951); v11 and v12 belong to transactions (KIP-890).
v13 names topics by id (KIP-516).
"""

from kohort.errors import ApiError
from kohort.wire.schema import (
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Uuid,
    at,
    request,
    response,
    struct,
)


@struct
class PartitionProduceData:
    index: Int32
    records: Records | None


@struct
class TopicProduceData:
    name: String = at("0-12", default="")
    topic_id: Uuid = at("13+", default=bytes(16))
    partition_data: list[PartitionProduceData]


@request(0, versions="3-13", flexible="9+")
class ProduceRequest:
    transactional_id: String | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]

    def refused(self, error: ApiError) -> "ProduceResponse":
        responses = [
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index,
                        error_code=error.code,
                        base_offset=-1,
                        error_message=error.message or None,
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in self.topic_data
            if topic.partition_data
        ]
        return ProduceResponse(responses=responses)


@struct
class BatchIndexAndErrorMessage:
    batch_index: Int32 = at("8+", default=0)
    batch_index_error_message: String | None = at("8+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = at("10+", default=-1)
    leader_epoch: Int32 = at("10+", default=-1)


@struct
class PartitionProduceResponse:
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = at("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = at("8+", default=[])
    error_message: String | None = at("8+", default=None)
    current_leader: LeaderIdAndEpoch = at("10+", tag=0, default=LeaderIdAndEpoch())


@struct
class TopicProduceResponse:
    name: String = at("0-12", default="")
    topic_id: Uuid = at("13+", default=bytes(16))
    partition_responses: list[PartitionProduceResponse] = []


@struct
class NodeEndpoint:
    node_id: Int32 = at("10+", default=0)
    host: String = at("10+", default="")
    port: Int32 = at("10+", default=0)
    rack: String | None = at("10+", default=None)


@response(0, versions="3-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = 0
    node_endpoints: list[NodeEndpoint] = at("10+", tag=0, default=[])
