# SPDX-License-Identifier: Apache-2.0
"""What is kept of a password is what RFC 7677 computes, and what cannot be one is refused."""

from base64 import b64decode
from hashlib import pbkdf2_hmac, sha256
from hmac import digest

import pytest

from kohort.errors import ApiError, ErrorCode
from kohort.security.names import SCRAM_SHA_256, SCRAM_SHA_512
from kohort.security.scram import NUMBERS
from kohort.server.scram import credential

SHA_256, SHA_512 = NUMBERS[SCRAM_SHA_256], NUMBERS[SCRAM_SHA_512]

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SAID = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}"
PROOF = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SIGNATURE = b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_what_is_kept_checks_the_exchange_of_the_rfc():
    salted = pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    kept = credential("user", SHA_256, 4096, SALT, salted)
    mask = digest(kept.stored_key, SAID.encode(), "sha256")
    client_key = bytes(a ^ b for a, b in zip(PROOF, mask, strict=True))
    assert sha256(client_key).digest() == kept.stored_key
    assert digest(kept.server_key, SAID.encode(), "sha256") == SIGNATURE


def test_the_password_is_not_kept():
    kept = credential("user", SHA_512, 16_384, b"salt", b"salted password")
    assert (kept.user, kept.mechanism, kept.iterations, kept.salt) == ("user", 2, 16_384, b"salt")
    assert (len(kept.stored_key), len(kept.server_key)) == (64, 64)
    assert b"salted password" not in (kept.stored_key, kept.server_key)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"user": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"user": "", "mechanism": 9}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"user": "é" * 513}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 0}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"mechanism": 3, "iterations": 1}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"iterations": 4095}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 16_385}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": -1}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salted_password": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salt": bytes(1025)}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_what_cannot_be_a_credential_is_refused(given, code):
    good = {
        "user": "é" * 512,
        "mechanism": SHA_256,
        "iterations": 4096,
        "salt": bytes(1024),
        "salted_password": b"x",
    }
    credential(**good)
    with pytest.raises(ApiError) as refused:
        credential(**{**good, **given})
    assert refused.value.code == code
