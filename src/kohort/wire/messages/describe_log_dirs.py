# SPDX-License-Identifier: Apache-2.0
"""DescribeLogDirs (35): how large partitions are, by data directory (KIP-113).

v2 is flexible.
v3 adds a top-level error code.
v4 adds the size and the free room of the volume (KIP-827).
v5 tells of directories that take no new partitions (KIP-1066).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, Int64, String, at, request, response, struct


@struct
class DescribableLogDirTopic:
    topic: String
    partitions: list[Int32]


@request(35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None

    def refused(self, error: ApiError) -> "DescribeLogDirsResponse":
        return DescribeLogDirsResponse(error_code=error.code)


@struct
class DescribeLogDirsPartition:
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


@struct
class DescribeLogDirsTopic:
    name: String
    partitions: list[DescribeLogDirsPartition]


@struct
class DescribeLogDirsResult:
    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Int64 = at("4+", default=-1)
    usable_bytes: Int64 = at("4+", default=-1)
    is_cordoned: Bool = at("5+", default=False)


@response(35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = at("3+", default=0)
    results: list[DescribeLogDirsResult] = []
