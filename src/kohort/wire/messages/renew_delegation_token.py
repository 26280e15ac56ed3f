# SPDX-License-Identifier: Apache-2.0
"""RenewDelegationToken (39): let a token live for longer (KIP-48).

v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int16, Int32, Int64, request, response


@request(39, versions="1-2", flexible="2+")
class RenewDelegationTokenRequest:
    hmac: Bytes
    renew_period_ms: Int64

    def refused(self, error: ApiError) -> "RenewDelegationTokenResponse":
        return RenewDelegationTokenResponse(error_code=error.code)


@response(39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
