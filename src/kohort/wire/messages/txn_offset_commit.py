# SPDX-License-Identifier: Apache-2.0
"""TxnOffsetCommit (28): offsets of a group that count when the producer's transaction is committed.

v1 answers before throttling.
v2 adds the leader epoch of the record.
v3 is flexible and says who the member is (KIP-447).
v4 may answer TRANSACTION_ABORTABLE.
v5 adds the group to the transaction by itself (KIP-890).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, at, request, response, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = at("2+", default=-1)
    committed_metadata: String | None


@struct
class TxnOffsetCommitRequestTopic:
    name: String
    partitions: list[TxnOffsetCommitRequestPartition]


@request(28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = at("3+", default=-1)
    member_id: String = at("3+", default="")
    group_instance_id: String | None = at("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic]

    def refused(self, error: ApiError) -> "TxnOffsetCommitResponse":
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=partition.partition_index, error_code=error.code
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    name: String = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


@response(28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
