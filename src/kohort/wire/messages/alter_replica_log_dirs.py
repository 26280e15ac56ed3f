# SPDX-License-Identifier: Apache-2.0
"""AlterReplicaLogDirs (34): keep partitions in another data directory of their node (KIP-113).

v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, String, request, response, struct


@struct
class AlterReplicaLogDirTopic:
    name: String
    partitions: list[Int32]


@struct
class AlterReplicaLogDir:
    path: String
    topics: list[AlterReplicaLogDirTopic]


@request(34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir]

    def refused(self, error: ApiError) -> "AlterReplicaLogDirsResponse":
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic_name=topic.name,
                    partitions=[
                        AlterReplicaLogDirPartitionResult(
                            partition_index=index, error_code=error.code
                        )
                        for index in topic.partitions
                    ],
                )
                for directory in self.dirs
                for topic in directory.topics
            ]
        )


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@response(34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
