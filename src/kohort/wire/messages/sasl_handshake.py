# SPDX-License-Identifier: Apache-2.0
"""SaslHandshake (17): which mechanism a client will use to authenticate.

v1 has the tokens of the mechanism travel in SaslAuthenticate (KIP-152).
"""

from kohort.errors import ApiError
from kohort.wire.schema import Int16, String, request, response


@request(17, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    mechanism: String

    def refused(self, error: ApiError) -> "SaslHandshakeResponse":
        return SaslHandshakeResponse(error_code=error.code)


@response(17, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    error_code: Int16 = 0
    mechanisms: list[String] = []
