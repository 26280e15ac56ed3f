# SPDX-License-Identifier: Apache-2.0
"""AddPartitionsToTxn (24): a producer says which partitions its transaction is about to write to.

v1 answers before throttling.
v2 may answer PRODUCER_FENCED.
v3 is flexible, and the last that clients send.
v4 is for brokers: several transactions at once, and a question that adds nothing.
v5 belongs to transactions of the second version (KIP-890).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, Int64, String, at, request, response, struct


@struct
class AddPartitionsToTxnTopic:
    name: String
    partitions: list[Int32]


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: String = at("4+", default="")
    producer_id: Int64 = at("4+", default=0)
    producer_epoch: Int16 = at("4+", default=0)
    verify_only: Bool = at("4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = at("4+", default=[])


@request(24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = at("4+", default=[])
    v3_and_below_transactional_id: String = at("0-3", default="")
    v3_and_below_producer_id: Int64 = at("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = at("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = at("0-3", default=[])

    def refused(self, error: ApiError) -> "AddPartitionsToTxnResponse":
        """The newer versions have a place for one error of everything, the older ones have not."""
        return AddPartitionsToTxnResponse(
            error_code=error.code,
            results_by_topic_v3_and_below=[
                refused_topic(topic, error.code) for topic in self.v3_and_below_topics
            ],
        )


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


@struct
class AddPartitionsToTxnResult:
    transactional_id: String = at("4+", default="")
    topic_results: list[AddPartitionsToTxnTopicResult] = at("4+", default=[])


@response(24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = at("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = at("4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = at("0-3", default=[])


def refused_topic(topic: AddPartitionsToTxnTopic, code: int) -> AddPartitionsToTxnTopicResult:
    """The same answer for every partition of a topic."""
    return AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
            for partition in topic.partitions
        ],
    )
