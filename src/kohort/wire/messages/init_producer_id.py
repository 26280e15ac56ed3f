# SPDX-License-Identifier: Apache-2.0
"""InitProducerId (22): an id and epoch for idempotent and transactional producers (KIP-98).

v1 answers before throttling.
v2 is flexible.
v3 takes the current id and epoch, to raise the epoch (KIP-360).
v4 may answer PRODUCER_FENCED.
v5 may answer TRANSACTION_ABORTABLE.
v6 belongs to two-phase commit (KIP-939) and is not offered.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, Int64, String, at, request, response


@request(22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = at("3+", default=-1)
    producer_epoch: Int16 = at("3+", default=-1)
    enable2_pc: Bool = at("6+", default=False)
    keep_prepared_txn: Bool = at("6+", default=False)

    def refused(self, error: ApiError) -> "InitProducerIdResponse":
        return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


@response(22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Int64 = at("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = at("6+", default=-1)
