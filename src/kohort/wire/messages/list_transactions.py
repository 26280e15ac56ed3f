# SPDX-License-Identifier: Apache-2.0
"""ListTransactions (66): the transactional ids of a broker (KIP-664).

v1 adds the least duration (KIP-994).
v2 adds a pattern of ids (KIP-1152).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, at, request, response, struct


@request(66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = at("1+", default=-1)
    transactional_id_pattern: String | None = at("2+", default=None)

    def refused(self, error: ApiError) -> "ListTransactionsResponse":
        return ListTransactionsResponse(error_code=error.code)


@struct
class TransactionState:
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@response(66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    transaction_states: list[TransactionState] = []
