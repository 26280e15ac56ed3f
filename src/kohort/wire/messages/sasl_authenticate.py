# SPDX-License-Identifier: Apache-2.0
"""SaslAuthenticate (36): a token of the mechanism, and the broker's (KIP-152).

v1 says how long the session lives (KIP-368).
v2 is flexible.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int16, Int64, String, at, request, response


@request(36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: Bytes

    def refused(self, error: ApiError) -> "SaslAuthenticateResponse":
        return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)


@response(36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = at("1+", default=0)
