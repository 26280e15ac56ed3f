# SPDX-License-Identifier: Apache-2.0
"""ExpireDelegationToken (40): end a token, at once or at a time (KIP-48).

v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int16, Int32, Int64, request, response


@request(40, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    hmac: Bytes
    expiry_time_period_ms: Int64

    def refused(self, error: ApiError) -> "ExpireDelegationTokenResponse":
        return ExpireDelegationTokenResponse(error_code=error.code)


@response(40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
