# SPDX-License-Identifier: Apache-2.0
"""ElectLeaders (43): give partitions their preferred leader, or any (KIP-183, KIP-460).

v1 adds the kind of election and a top-level error code.
v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, at, request, response, struct


@struct
class TopicPartitions:
    topic: String
    partitions: list[Int32]


@request(43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: Int8 = at("1+", default=0)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60_000

    def refused(self, error: ApiError) -> "ElectLeadersResponse":
        """Before v1 only partitions can be refused."""
        return ElectLeadersResponse(
            error_code=error.code,
            replica_election_results=[
                ReplicaElectionResult(
                    topic=topic.topic,
                    partition_result=[
                        PartitionResult(
                            partition_id=partition,
                            error_code=error.code,
                            error_message=error.message,
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in self.topic_partitions or ()
            ],
        )


@struct
class PartitionResult:
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@struct
class ReplicaElectionResult:
    topic: String = ""
    partition_result: list[PartitionResult] = []


@response(43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = at("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = []
