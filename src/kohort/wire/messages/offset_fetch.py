# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch (9): how far groups have read.

v2 takes null for all topics and adds a top-level error code.
v3 adds the throttle time, v4 answers before throttling.
v5 adds the leader epoch of the record.
v6 is flexible.
v7 may wait for transactions to end (KIP-447).
v8 asks for many groups at once (KIP-709).
v9 names the member that asks (KIP-848).
v10 names topics by id.
"""

from kohort.errors import ApiError
from kohort.wire.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    at,
    request,
    response,
    struct,
)


@struct
class OffsetFetchRequestTopic:
    name: String = at("0-7", default="")
    partition_indexes: list[Int32] = at("0-7", default=[])


@struct
class OffsetFetchRequestTopics:
    name: String = at("8-9", default="")
    topic_id: Uuid = at("10+", default=bytes(16))
    partition_indexes: list[Int32] = at("8+", default=[])


@struct
class OffsetFetchRequestGroup:
    group_id: String = at("8+", default="")
    member_id: String | None = at("9+", default=None)
    member_epoch: Int32 = at("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = at("8+", default=[])


@request(9, versions="1-10", flexible="6+")
class OffsetFetchRequest:
    group_id: String = at("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = at("0-7", nullable="2-7", default=[])
    groups: list[OffsetFetchRequestGroup] = at("8+", default=[])
    require_stable: Bool = at("7+", default=False)

    def refused(self, error: ApiError) -> "OffsetFetchResponse":
        groups = [
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
            for group in self.groups
        ]
        return OffsetFetchResponse(error_code=error.code, groups=groups)


@struct
class OffsetFetchResponsePartition:
    partition_index: Int32 = at("0-7", default=0)
    committed_offset: Int64 = at("0-7", default=0)
    committed_leader_epoch: Int32 = at("5-7", default=-1)
    metadata: String | None = at("0-7", default="")
    error_code: Int16 = at("0-7", default=0)


@struct
class OffsetFetchResponseTopic:
    name: String = at("0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = at("0-7", default=[])


@struct
class OffsetFetchResponsePartitions:
    partition_index: Int32 = at("8+", default=0)
    committed_offset: Int64 = at("8+", default=0)
    committed_leader_epoch: Int32 = at("8+", default=-1)
    metadata: String | None = at("8+", default="")
    error_code: Int16 = at("8+", default=0)


@struct
class OffsetFetchResponseTopics:
    name: String = at("8-9", default="")
    topic_id: Uuid = at("10+", default=bytes(16))
    partitions: list[OffsetFetchResponsePartitions] = at("8+", default=[])


@struct
class OffsetFetchResponseGroup:
    group_id: String = at("8+", default="")
    topics: list[OffsetFetchResponseTopics] = at("8+", default=[])
    error_code: Int16 = at("8+", default=0)


@response(9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: Int32 = at("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = at("0-7", default=[])
    error_code: Int16 = at("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = at("8+", default=[])
