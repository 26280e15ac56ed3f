# SPDX-License-Identifier: Apache-2.0
"""DescribeTransactions (65): where the transactions of some ids stand (KIP-664)."""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, request, response, struct


@request(65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    transactional_ids: list[String]

    def refused(self, error: ApiError) -> "DescribeTransactionsResponse":
        return DescribeTransactionsResponse(
            transaction_states=[
                TransactionState(error_code=error.code, transactional_id=transactional_id)
                for transactional_id in self.transactional_ids
            ]
        )


@struct
class TopicData:
    topic: String = ""
    partitions: list[Int32] = []


@struct
class TransactionState:
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = []


@response(65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
