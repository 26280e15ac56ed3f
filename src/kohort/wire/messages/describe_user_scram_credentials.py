# SPDX-License-Identifier: Apache-2.0
"""DescribeUserScramCredentials (50): which users have credentials for SCRAM (KIP-554)."""

from kohort.errors import ApiError
from kohort.wire.schema import Int8, Int16, Int32, String, request, response, struct


@struct
class UserName:
    name: String


@request(50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None

    def refused(self, error: ApiError) -> "DescribeUserScramCredentialsResponse":
        """All of it, and once for each user, who is not named, as upstream refuses."""
        return DescribeUserScramCredentialsResponse(
            error_code=error.code,
            error_message=error.message or None,
            results=[
                DescribeUserScramCredentialsResult(
                    error_code=error.code, error_message=error.message or None
                )
                for _ in self.users or ()
            ],
        )


@struct
class CredentialInfo:
    mechanism: Int8
    iterations: Int32


@struct
class DescribeUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credential_infos: list[CredentialInfo] = []


@response(50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
