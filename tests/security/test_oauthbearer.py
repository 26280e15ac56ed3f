"""OAUTHBEARER, as real clients and a real broker speak it (SEC-42, KIP-342)."""

import pytest
from tests.security.recorded import conversations, tokens

from kohort.security.oauthbearer import OAuthBearerClient
from kohort.security.sasl import SaslError


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
