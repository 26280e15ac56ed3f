"""PLAIN, as real clients and a real broker speak it (SEC-40)."""

import pytest
from tests.security.recorded import conversations, tokens

from kohort.security.plain import PlainClient
from kohort.security.sasl import SaslError


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
