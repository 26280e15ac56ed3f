# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupInstallAssignment (20071): the assignment that a member has computed (KIP-848).

No release of Apache Kafka has this API; the key is ours. The layout is the accepted proposal's,
with a metadata version of 16 bits, as everywhere else.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int8, Int16, Int32, String, Uuid, request, response, struct


@struct
class TopicPartition:
    topic_id: Uuid
    partitions: list[Int32]


@struct
class Member:
    member_id: String = ""
    partitions: list[TopicPartition] = []
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


@request(20071, versions="0", flexible="0+")
class ConsumerGroupInstallAssignmentRequest:
    """`group_epoch` is that of Prepare. With an `error` the assignor has failed."""

    group_id: String
    member_id: String
    member_epoch: Int32
    group_epoch: Int32
    error: Int8
    members: list[Member]

    def refused(self, error: ApiError) -> "ConsumerGroupInstallAssignmentResponse":
        return ConsumerGroupInstallAssignmentResponse(
            error_code=error.code, error_message=error.message or None
        )


@response(20071, versions="0", flexible="0+")
class ConsumerGroupInstallAssignmentResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
