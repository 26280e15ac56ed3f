# SPDX-License-Identifier: Apache-2.0
"""Fetch (1): read record batches, waiting for them if asked to.

v4 is the oldest that is served: isolation levels and aborted transactions.
v5 adds the log start offset.
v7 adds incremental sessions and a top-level error code (KIP-227).
v9 fences by leader epoch, v11 adds the rack.
v12 is flexible and detects divergence (KIP-595).
v13 names topics by id (KIP-516).
v15 moves the replica id into a tag; v16 says where the leaders are (KIP-951).
v17 adds the directory id, v18 the high watermark, both for replicas only.
"""

from kohort.errors import ApiError
from kohort.wire.schema import (
    Int8,
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
class ReplicaState:
    replica_id: Int32 = at("15+", default=-1)
    replica_epoch: Int64 = at("15+", default=-1)


@struct
class FetchPartition:
    partition: Int32
    current_leader_epoch: Int32 = at("9+", default=-1)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = at("12+", default=-1)
    log_start_offset: Int64 = at("5+", default=-1)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = at("17+", tag=0, default=bytes(16))
    high_watermark: Int64 = at("18+", tag=1, default=9223372036854775807)


@struct
class FetchTopic:
    topic: String = at("0-12", default="")
    topic_id: Uuid = at("13+", default=bytes(16))
    partitions: list[FetchPartition]


@struct
class ForgottenTopic:
    topic: String = at("7-12", default="")
    topic_id: Uuid = at("13+", default=bytes(16))
    partitions: list[Int32] = at("7+", default=[])


@request(1, versions="4-18", flexible="12+")
class FetchRequest:
    cluster_id: String | None = at("12+", tag=0, default=None)
    replica_id: Int32 = at("0-14", default=-1)
    replica_state: ReplicaState = at("15+", tag=1, default=ReplicaState())
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2147483647
    isolation_level: Int8 = 0
    session_id: Int32 = at("7+", default=0)
    session_epoch: Int32 = at("7+", default=-1)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = at("7+", default=[])
    rack_id: String = at("11+", default="")

    def refused(self, error: ApiError) -> "FetchResponse":
        responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=partition.partition,
                        error_code=error.code,
                        high_watermark=-1,
                        records=b"",
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return FetchResponse(error_code=error.code, responses=responses)


@struct
class EpochEndOffset:
    epoch: Int32 = at("12+", default=-1)
    end_offset: Int64 = at("12+", default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = at("12+", default=-1)
    leader_epoch: Int32 = at("12+", default=-1)


@struct
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    producer_id: Int64 = 0
    first_offset: Int64 = 0


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = at("5+", default=-1)
    diverging_epoch: EpochEndOffset = at("12+", tag=0, default=EpochEndOffset())
    current_leader: LeaderIdAndEpoch = at("12+", tag=1, default=LeaderIdAndEpoch())
    snapshot_id: SnapshotId = at("12+", tag=2, default=SnapshotId())
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: Int32 = at("11+", default=-1)
    records: Records | None = b""


@struct
class FetchableTopicResponse:
    topic: String = at("0-12", default="")
    topic_id: Uuid = at("13+", default=bytes(16))
    partitions: list[PartitionData] = []


@struct
class NodeEndpoint:
    node_id: Int32 = at("16+", default=0)
    host: String = at("16+", default="")
    port: Int32 = at("16+", default=0)
    rack: String | None = at("16+", default=None)


@response(1, versions="4-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = at("7+", default=0)
    session_id: Int32 = at("7+", default=0)
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = at("16+", tag=0, default=[])
