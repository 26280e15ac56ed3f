"""ConsumerGroupHeartbeat (68): join, stay, acknowledge and leave, in one call (KIP-848).

v1 adds the regular expression, and the client chooses its own member id (KIP-1082).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, Uuid, at, request, response, struct


@struct
class TopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]


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

    def refused(self, error: ApiError) -> "ConsumerGroupHeartbeatResponse":
        return ConsumerGroupHeartbeatResponse(
            error_code=error.code, error_message=error.message or None
        )


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = []


@response(68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
