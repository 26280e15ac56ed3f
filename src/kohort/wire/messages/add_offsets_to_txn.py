# SPDX-License-Identifier: Apache-2.0
"""AddOffsetsToTxn (25): a producer says that its transaction is about to commit a group's offsets.

v1 answers before throttling.
v2 may answer PRODUCER_FENCED.
v3 is flexible.
v4 may answer TRANSACTION_ABORTABLE (KIP-890).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, Int32, Int64, String, request, response


@request(25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String

    def refused(self, error: ApiError) -> "AddOffsetsToTxnResponse":
        return AddOffsetsToTxnResponse(error_code=error.code)


@response(25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
