# SPDX-License-Identifier: Apache-2.0
"""What is kept of a password for SCRAM (RFC 5802, RFC 7677): enough to check one, not to log in.

A salted password is as good as the password to whoever knows the salt, so it is never kept.
"""

import msgspec

from kohort.errors import ApiError, ErrorCode
from kohort.security.sasl import LONGEST_NAME
from kohort.security.scram import HASHES, ITERATIONS_LEAST, ITERATIONS_MOST, NUMBERS, server_keys

MECHANISMS = {number: name for name, number in NUMBERS.items()}
LONGEST_SALT = 1024


class ScramCredential(msgspec.Struct, frozen=True):
    """What a user may log in with, by one mechanism. Numbers are upstream's."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


def credential(
    user: str, mechanism: int, iterations: int, salt: bytes, salted_password: bytes
) -> ScramCredential:
    """What is to be kept of a password that a client has salted. Raises ApiError."""
    check_user(user, mechanism)
    reason = ""
    if iterations < ITERATIONS_LEAST:
        reason = "Too few iterations"
    elif iterations > ITERATIONS_MOST:
        reason = "Too many iterations"
    elif not salted_password:
        reason = "the salted password is empty"
    elif len(salt) > LONGEST_SALT:
        reason = f"the salt has {len(salt)} bytes, expected at most {LONGEST_SALT}"
    if reason:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)
    keys = server_keys(HASHES[MECHANISMS[mechanism]], salted_password)
    return ScramCredential(user, mechanism, iterations, salt, keys.stored_key, keys.server_key)


def check_user(user: str, mechanism: int) -> None:
    """Raises ApiError where no credential can have this name, or this mechanism."""
    if not user:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in MECHANISMS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    size = len(user.encode())
    if size > LONGEST_NAME:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"the name has {size} bytes, expected at most {LONGEST_NAME}",
        )
