# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat (68): join, stay, acknowledge and leave, in one call (KIP-848).

v1 adds the regular expression, and the client chooses its own member id (KIP-1082). Tags from 20000
on are ours: what client-side assignors need beside upstream's fields. Other peers skip them.
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


@struct
class TopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]


@struct
class ClientAssignor:
    """The first of a list is preferred. The versions are those of metadata that it can read."""

    name: String = ""
    minimum_version: Int16 = 0
    maximum_version: Int16 = 0
    reason: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


@request(68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: String | None = at("1+", default=None)
    server_assignor: String | None = None
    topic_partitions: list[TopicPartitions] | None = None
    client_assignors: list[ClientAssignor] | None = at("1+", tag=20000, default=None)

    def refused(self, error: ApiError) -> "ConsumerGroupHeartbeatResponse":
        return ConsumerGroupHeartbeatResponse(
            error_code=error.code, error_message=error.message or None
        )


@struct
class Attachment:
    """What a client-side assignor adds to the partitions of a member."""

    error: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""
    assignor_name: String = at(tag=0, default="")


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = []
    attachment: Attachment | None = at("1+", tag=20000, default=None)


@response(68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
