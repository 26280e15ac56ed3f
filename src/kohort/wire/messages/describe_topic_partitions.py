# SPDX-License-Identifier: Apache-2.0
"""DescribeTopicPartitions (75): partitions of topics, page by page (KIP-966)."""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, String, Uuid, request, response, struct


@struct
class TopicRequest:
    name: String


@struct
class Cursor:
    topic_name: String
    partition_index: Int32


@request(75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None

    def refused(self, error: ApiError) -> "DescribeTopicPartitionsResponse":
        topics = [
            DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error.code)
            for topic in self.topics
        ]
        return DescribeTopicPartitionsResponse(topics=topics)


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = []


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = bytes(16)
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: Int32 = -2147483648


@response(75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
