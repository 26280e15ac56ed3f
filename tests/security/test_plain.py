# SPDX-License-Identifier: Apache-2.0
"""PLAIN, as real clients and a real broker speak it (SEC-40)."""

import pytest
from tests.security.recorded import conversations, tokens

from kohort.security.plain import PlainClient, PlainServer
from kohort.security.sasl import Identity, SaslError, SaslRefusalError
from kohort.terms import Millis


def test_the_token_is_the_recorded_one() -> None:
    [(sent, received)] = tokens(conversations()["plain/ok-authenticate-v2"])
    client = PlainClient("alice", "alice-secret")
    assert client.first() == sent
    assert received is not None
    client.answer(received)


@pytest.mark.parametrize(("username", "password"), [("a\0b", "hunter2"), ("alice", "hun\0ter2")])
def test_what_the_token_cannot_carry_is_refused(username: str, password: str) -> None:
    with pytest.raises(SaslError, match="has a NUL") as caught:
        PlainClient(username, password)
    assert "hun" not in str(caught.value)


def test_a_server_that_goes_on_is_refused() -> None:
    with pytest.raises(SaslError, match="goes on with 3 bytes"):
        PlainClient("alice", "secret").answer(b"abc")


OTHER_USER = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


def server() -> PlainServer:
    return PlainServer({"alice": "hunter2", "": "x", "bob": ""})


@pytest.mark.parametrize("token", [b"\0alice\0hunter2", b"alice\0alice\0hunter2"])
def test_the_right_password_is_taken(token: bytes) -> None:
    machine = server()
    assert machine.answer(token, Millis(0)) == b""
    assert machine.identity == Identity("alice")


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0hunter3", "Authentication failed: Invalid username or password"),
        (b"\0alice\0hunter22", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0hunter2", "Authentication failed: Invalid username or password"),
        (b"\0\xff\xfe\0hunter2", "Authentication failed: Invalid username or password"),
        (b"bob\0nobody\0hunter2", "Authentication failed: Invalid username or password"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0bob\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0hunter2",
            OTHER_USER,
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0" * 9, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_whatever_is_wrong_is_refused_in_the_words_of_upstream(token: bytes, text: str) -> None:
    machine = server()
    with pytest.raises(SaslRefusalError) as caught:
        machine.answer(token, Millis(0))
    assert str(caught.value) == text
    assert machine.identity is None
