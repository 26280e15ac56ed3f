# SPDX-License-Identifier: Apache-2.0
"""DescribeDelegationToken (41): the tokens of some owners, or of all (KIP-48).

v2 is flexible.
v3 names who has asked for a token.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int16, Int32, Int64, String, at, request, response, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: String
    principal_name: String


@request(41, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None

    def refused(self, error: ApiError) -> "DescribeDelegationTokenResponse":
        return DescribeDelegationTokenResponse(error_code=error.code)


@struct
class DescribedDelegationTokenRenewer:
    principal_type: String = ""
    principal_name: String = ""


@struct
class DescribedDelegationToken:
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = at("3+", default="")
    token_requester_principal_name: String = at("3+", default="")
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


@response(41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: Int32 = 0
