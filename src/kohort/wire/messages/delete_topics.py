# SPDX-License-Identifier: Apache-2.0
"""DeleteTopics (20): delete topics by name, or by id.

v1 adds the throttle time, v2 answers before throttling.
v3 may answer TOPIC_DELETION_DISABLED.
v4 is flexible.
v5 adds an error message.
v6 takes topic ids (KIP-516).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, Uuid, at, request, response, struct


@struct
class DeleteTopicState:
    name: String | None = at("6+", default=None)
    topic_id: Uuid = at("6+", default=bytes(16))


@request(20, versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = at("6+", default=[])
    topic_names: list[String] = at("0-5", default=[])
    timeout_ms: Int32

    def refused(self, error: ApiError) -> "DeleteTopicsResponse":
        named = [(topic.name, topic.topic_id) for topic in self.topics]
        named += [(name, bytes(16)) for name in self.topic_names]
        responses = [
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
            )
            for name, topic_id in named
        ]
        return DeleteTopicsResponse(responses=responses)


@struct
class DeletableTopicResult:
    name: String | None = at(nullable="6+", default="")
    topic_id: Uuid = at("6+", default=bytes(16))
    error_code: Int16 = 0
    error_message: String | None = at("5+", default=None)


@response(20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = []
