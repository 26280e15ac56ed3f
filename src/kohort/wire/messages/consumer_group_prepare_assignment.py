# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupPrepareAssignment (20070): what a member computes an assignment from (KIP-848).

No release of Apache Kafka has this API; the key is ours. The layout is the accepted proposal's.
A tag tells the version of metadata that every member can read.
"""

from kohort.errors import ApiError
from kohort.wire.schema import (
    Bytes,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    at,
    request,
    response,
    struct,
)


@request(20070, versions="0", flexible="0+")
class ConsumerGroupPrepareAssignmentRequest:
    group_id: String
    member_id: String
    member_epoch: Int32

    def refused(self, error: ApiError) -> "ConsumerGroupPrepareAssignmentResponse":
        return ConsumerGroupPrepareAssignmentResponse(
            error_code=error.code, error_message=error.message or None
        )


@struct
class Assignor:
    """What a member tells the assignor that was chosen."""

    reason: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


@struct
class TopicPartition:
    topic_id: Uuid
    partitions: list[Int32]


@struct
class Member:
    """`topic_partitions` is the present target, which may not be reached yet."""

    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    subscribed_topic_ids: list[Uuid] = []
    assignor: Assignor
    topic_partitions: list[TopicPartition] = []


@struct
class TopicMetadata:
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32


@response(20070, versions="0", flexible="0+")
class ConsumerGroupPrepareAssignmentResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    group_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = []
    topics: list[TopicMetadata] = []
    metadata_version: Int16 = at(tag=20000, default=0)
