# SPDX-License-Identifier: Apache-2.0
"""CreatePartitions (37): raise the number of partitions of topics.

v1 answers before throttling.
v2 is flexible.
v3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, String, request, response, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: list[Int32]


@struct
class CreatePartitionsTopic:
    name: String
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None


@request(37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool

    def refused(self, error: ApiError) -> "CreatePartitionsResponse":
        results = [
            CreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
            for topic in self.topics
        ]
        return CreatePartitionsResponse(results=results)


@struct
class CreatePartitionsTopicResult:
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@response(37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
