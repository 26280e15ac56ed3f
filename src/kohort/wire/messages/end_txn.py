# SPDX-License-Identifier: Apache-2.0
"""EndTxn (26): a producer commits or aborts its transaction.

v1 answers before throttling.
v2 may answer PRODUCER_FENCED.
v3 is flexible.
v4 may answer TRANSACTION_ABORTABLE.
v5 gives the producer its next epoch (KIP-890).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, Int64, String, at, request, response


@request(26, versions="0-5", flexible="3+")
class EndTxnRequest:
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool

    def refused(self, error: ApiError) -> "EndTxnResponse":
        return EndTxnResponse(error_code=error.code)


@response(26, versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = at("5+", default=-1)
    producer_epoch: Int16 = at("5+", default=-1)
