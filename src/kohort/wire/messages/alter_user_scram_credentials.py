# SPDX-License-Identifier: Apache-2.0
"""AlterUserScramCredentials (51): give users credentials for SCRAM, or take them away (KIP-554)."""

from kohort.errors import ApiError
from kohort.wire.schema import Bytes, Int8, Int16, Int32, String, request, response, struct


@struct
class ScramCredentialDeletion:
    name: String
    mechanism: Int8


@struct
class ScramCredentialUpsertion:
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


@request(51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]

    def refused(self, error: ApiError) -> "AlterUserScramCredentialsResponse":
        users = {deletion.name for deletion in self.deletions}
        users |= {upsertion.name for upsertion in self.upsertions}
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(
                    user=user, error_code=error.code, error_message=error.message
                )
                for user in sorted(users)
            ]
        )


@struct
class AlterUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


@response(51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
