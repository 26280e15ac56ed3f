# SPDX-License-Identifier: Apache-2.0
"""CreateTopics (19): create topics, by count or by explicit replica assignment.

v2 is the oldest that 4.x offers.
v3 answers before throttling.
v4 takes -1 for the default number of partitions and replicas (KIP-464).
v5 is flexible and answers with the configuration (KIP-525).
v6 may answer THROTTLING_QUOTA_EXCEEDED.
v7 answers with the topic id.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int8, Int16, Int32, String, Uuid, at, request, response, struct


@struct
class CreatableReplicaAssignment:
    partition_index: Int32
    broker_ids: list[Int32]


@struct
class CreatableTopicConfig:
    name: String
    value: String | None


@struct
class CreatableTopic:
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


@request(19, versions="2-7", flexible="5+")
class CreateTopicsRequest:
    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False

    def refused(self, error: ApiError) -> "CreateTopicsResponse":
        topics = [
            CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message, configs=[]
            )
            for topic in self.topics
        ]
        return CreateTopicsResponse(topics=topics)


@struct
class CreatableTopicConfigs:
    name: String = at("5+", default="")
    value: String | None = at("5+", default="")
    read_only: Bool = at("5+", default=False)
    config_source: Int8 = at("5+", default=-1)
    is_sensitive: Bool = at("5+", default=False)


@struct
class CreatableTopicResult:
    name: String = ""
    topic_id: Uuid = at("7+", default=bytes(16))
    error_code: Int16 = 0
    error_message: String | None = ""
    topic_config_error_code: Int16 = at("5+", tag=0, default=0)
    num_partitions: Int32 = at("5+", default=-1)
    replication_factor: Int16 = at("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = at("5+", default=[])


@response(19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = []
