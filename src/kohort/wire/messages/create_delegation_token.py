# SPDX-License-Identifier: Apache-2.0
"""CreateDelegationToken (38): a token that stands for a principal (KIP-48).

v2 is flexible.
v3 lets a superuser ask for somebody else's token, and names who has asked.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int16, Int32, Int64, String, at, request, response, struct


@struct
class CreatableRenewers:
    principal_type: String
    principal_name: String


@request(38, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: String | None = at("3+", nullable="3+", default="")
    owner_principal_name: String | None = at("3+", nullable="3+", default="")
    renewers: list[CreatableRenewers]
    max_lifetime_ms: Int64

    def refused(self, error: ApiError) -> "CreateDelegationTokenResponse":
        return CreateDelegationTokenResponse(error_code=error.code)


@response(38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = at("3+", default="")
    token_requester_principal_name: String = at("3+", default="")
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0
