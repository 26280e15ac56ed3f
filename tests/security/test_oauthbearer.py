# SPDX-License-Identifier: Apache-2.0
"""OAUTHBEARER, as real clients and a real broker speak it (SEC-42, KIP-342)."""

import pytest
from tests.security.recorded import conversations, tokens

from kohort.errors import WireError
from kohort.security.oauthbearer import OAuthBearerClient, OAuthBearerServer, TokenError
from kohort.security.sasl import Identity, SaslError, SaslRefusalError
from kohort.terms import Millis


@pytest.mark.parametrize(
    ("name", "extensions"),
    [
        ("oauth/unsecured-ok", {}),
        ("oauth/signed-ok-rs256", {}),
        ("oauth/unsecured-extension", {"traceId": "123", "logicalCluster": "lkc-1"}),
    ],
)
def test_the_message_is_the_recorded_one(name: str, extensions: dict[str, str]) -> None:
    [(sent, received)] = tokens(conversations()[name])
    token = sent.decode().partition("Bearer ")[2].partition("\x01")[0]
    client = OAuthBearerClient(token, extensions)
    assert client.first() == sent
    assert received is not None
    assert client.answer(received) is None


def test_a_refused_token_is_said_goodbye_to() -> None:
    (_, refused), (goodbye, _) = tokens(conversations()["oauth/unsecured-expired"])
    assert refused == b'{"status":"invalid_token"}'
    assert OAuthBearerClient("a.b.", {}).answer(refused) == goodbye == b"\x01"


@pytest.mark.parametrize(
    ("token", "extensions", "reason"),
    [
        ("", {}, r"the token \(0 characters\)"),
        ("hunter2\x01auth=Bearer x", {}, "has a character that no token has"),
        ("a.b.", {"trace_id9": "1"}, "extension 'trace_id9'"),
        ("a.b.", {"auth": "1"}, "extension 'auth'"),
        ("a.b.", {"trace": "hunter2\x01"}, "extension 'trace'"),
        ("a.b.", {"trace": ""}, "extension 'trace'"),
    ],
)
def test_what_cannot_be_sent_is_refused_without_its_secrets(
    token: str, extensions: dict[str, str], reason: str
) -> None:
    with pytest.raises(SaslError, match=reason) as caught:
        OAuthBearerClient(token, extensions)
    assert "hunter2" not in str(caught.value)


NOW = Millis(5)


def server() -> OAuthBearerServer:
    def check(token: str, now: Millis) -> Identity:
        assert now == NOW
        if token == "narrow":
            raise TokenError("the token has no scope", "insufficient_scope", "[a, b]")
        if token != "good":
            raise TokenError("the token is not good")
        return Identity("alice", Millis(9))

    return OAuthBearerServer(check)


@pytest.mark.parametrize(
    "text", ["n,,\x01auth=Bearer good\x01\x01", "n,a=alice,\x01auth=bearer  good\x01x=1\x01\x01"]
)
def test_a_good_token_is_taken(text: str) -> None:
    machine = server()
    assert machine.answer(text.encode(), NOW) == b""
    assert machine.identity == Identity("alice", Millis(9))


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("bad", '{"status":"invalid_token"}'),
        ("narrow", '{"status":"insufficient_scope", "scope":"[a, b]"}'),
    ],
)
def test_a_token_is_refused_in_two_steps(token: str, told: str) -> None:
    machine = server()
    assert machine.answer(OAuthBearerClient(token, {}).first(), NOW).decode() == told
    assert machine.reason.startswith("the token ")
    with pytest.raises(SaslRefusalError) as caught:
        machine.answer(b"\x01", NOW)
    assert str(caught.value) == told
    assert machine.identity is None


def test_a_second_token_is_refused_for_good() -> None:
    """Otherwise a client tries tokens as fast as it sends them, and nobody counts them."""
    machine = server()
    machine.answer(OAuthBearerClient("bad", {}).first(), NOW)
    with pytest.raises(SaslRefusalError) as caught:
        machine.answer(OAuthBearerClient("narrow", {}).first(), NOW)
    assert str(caught.value) == '{"status":"insufficient_scope", "scope":"[a, b]"}'
    assert machine.reason == "the token has no scope"
    assert machine.identity is None


def test_a_good_token_may_come_instead_of_the_goodbye() -> None:
    machine = server()
    machine.answer(OAuthBearerClient("bad", {}).first(), NOW)
    assert machine.answer(OAuthBearerClient("good", {}).first(), NOW) == b""
    assert machine.identity is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "none of OAUTHBEARER"),
        ("\x01", "none of OAUTHBEARER"),
        ("y,,\x01auth=Bearer good\x01\x01", "none of OAUTHBEARER"),
        ("n,,\x01auth=Bearer good\x01", "none of OAUTHBEARER"),
        ("n,,\x01auth=Bearer good\x01trace_id9=1\x01\x01", "none of OAUTHBEARER"),
        ("n,,\x01\x01", "has no token"),
        ("n,,\x01auth=Bearer " + "g" * (1 << 17), "a message of 131088 bytes, expected at most"),
        ("n,,\x01auth=Bearer !!!\x01\x01", "has no token"),
        ("n,a=bob,\x01auth=Bearer good\x01\x01", r"\(bob\) that is different from the token's"),
    ],
)
def test_a_message_that_is_none_is_refused(text: str, reason: str) -> None:
    machine = server()
    with pytest.raises(SaslError, match=reason):
        machine.answer(text.encode(), NOW)
    assert machine.identity is None


def test_another_scheme_closes_the_connection() -> None:
    """As upstream's broker does."""
    with pytest.raises(WireError, match="scheme Basic"):
        server().answer(b"n,,\x01auth=Basic good\x01\x01", NOW)
