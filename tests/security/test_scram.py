# SPDX-License-Identifier: Apache-2.0
"""SCRAM: exchanges of RFC 7677 and of a real broker, and servers that cheat (SEC-41, SEC-44b)."""

from base64 import b64decode, b64encode
from hmac import digest

import pytest
from tests.security.recorded import NONCE, conversations, tokens

from kohort.security.names import SCRAM_SHA_256, SCRAM_SHA_512
from kohort.security.sasl import SaslError
from kohort.security.scram import ScramClient, auth_message, salted, server_keys

SALT = b"kohort-salt-0123456789ab"
FIRST_BARE = f"n=alice,r={NONCE}"


def client(username: str = "alice", password: str = "alice-secret") -> ScramClient:
    return ScramClient(SCRAM_SHA_256, username, password, NONCE)


def server_first(
    nonce: str = f"{NONCE}XYZ", salt: bytes = SALT, iterations: str = "4096", more: str = ""
) -> bytes:
    return f"r={nonce},s={b64encode(salt).decode()},i={iterations}{more}".encode()


def signature(first: bytes, password: str = "alice-secret") -> bytes:
    keys = server_keys("sha256", salted("sha256", password, SALT, 4096))
    nonce = first.decode()[2:].partition(",")[0]
    message = auth_message(FIRST_BARE, first.decode(), f"c=biws,r={nonce}")
    return b"v=" + b64encode(digest(keys.server_key, message, "sha256"))


def test_the_exchange_of_the_rfc() -> None:
    machine = ScramClient(SCRAM_SHA_256, "user", "pencil", NONCE)
    assert machine.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert machine.answer(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()) == (
        f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    assert machine.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    ("name", "mechanism", "username", "password"),
    [
        ("scram/ok-256-v2", SCRAM_SHA_256, "alice", "alice-secret"),
        ("scram/ok-512-v2", SCRAM_SHA_512, "alice", "alice-secret"),
        ("scram/rfc7677-user", SCRAM_SHA_256, "pencil", "pencil"),
    ],
)
def test_a_real_broker_is_answered_as_it_was(
    name: str, mechanism: str, username: str, password: str
) -> None:
    (first, challenge), (final, proof) = tokens(conversations()[name])
    machine = ScramClient(mechanism, username, password, NONCE)
    assert challenge is not None
    assert proof is not None
    assert machine.first() == first
    assert machine.answer(challenge) == final
    assert machine.answer(proof) is None


def test_a_name_is_escaped() -> None:
    assert client("a=b,c").first() == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


@pytest.mark.parametrize("more", ["", ",x=1"])
def test_an_extension_that_may_be_ignored_is_signed_and_ignored(more: str) -> None:
    first = server_first(more=more)
    machine = client()
    assert machine.answer(first) is not None
    assert machine.answer(signature(first)) is None


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (server_first(iterations="0"), "asks for 0 iterations, expected 4096 to 1000000"),
        (server_first(iterations="1"), "asks for 1 iterations"),
        (server_first(iterations="4095"), "asks for 4095 iterations"),
        (server_first(iterations="1000001"), "asks for 1000001 iterations"),
        (server_first(iterations="9" * 5000), "first message is not"),
        (server_first(iterations="many"), "first message is not"),
        (server_first(nonce=NONCE), "nonce does not go on"),
        (server_first(nonce="other"), "nonce does not go on"),
        (f"r={NONCE}X,i=4096".encode(), "first message is not"),
        (b"m=1," + server_first(), "demands an extension"),
        (b"e=unknown-user", "the server says `unknown-user`"),
        (b"garbage", "first message is not"),
        (b"", "first message is not"),
        (b"\xff\xfe", "no UTF-8"),
    ],
)
def test_a_server_that_cheats_in_its_first_message_is_refused(first: bytes, reason: str) -> None:
    with pytest.raises(SaslError, match=reason) as caught:
        client().answer(first)
    assert str(caught.value).startswith("SCRAM-SHA-256: ")
    assert "alice-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("final", "reason"),
    [
        (signature(server_first(), "another password"), "signature of the server is wrong"),
        (b"v=" + b64encode(bytes(32)), "signature of the server is wrong"),
        (b"v=", "signature of the server is wrong"),
        (b"", "no signature"),
        (b"garbage", "no signature"),
        (b"e=invalid-proof,x=1", "the server says `invalid-proof`"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_refused(final: bytes, reason: str) -> None:
    machine = client()
    assert machine.answer(server_first()) is not None
    with pytest.raises(SaslError, match=reason):
        machine.answer(final)


@pytest.mark.parametrize("nonce", ["", "a,b", "a b", "é"])
def test_a_nonce_that_cannot_be_sent_is_refused(nonce: str) -> None:
    with pytest.raises(SaslError, match="nonce is not printable"):
        ScramClient(SCRAM_SHA_256, "alice", "secret", nonce)


def test_the_keys_do_not_tell_the_password() -> None:
    key = salted("sha256", "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    assert not {key, b"pencil"} & set(server_keys("sha256", key))
