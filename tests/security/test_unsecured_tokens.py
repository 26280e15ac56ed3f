# SPDX-License-Identifier: Apache-2.0
"""Tokens that nobody has signed, by the options of upstream's validator (SEC-42)."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from kohort.errors import WireError
from kohort.security.oauthbearer import TokenError
from kohort.security.sasl import Identity
from kohort.security.unsecured_tokens import UnsecuredTokens
from kohort.terms import Millis

NOW = Millis(1_000_000)


def token(signature: str = "", header: Any = None, **claims: Any) -> str:
    parts = (header or {"alg": "none"}), claims
    texts = (urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts)
    return ".".join((*texts, signature))


def test_a_token_is_taken_for_what_it_says() -> None:
    check = UnsecuredTokens().check
    assert check(token(sub="alice", exp=1000.5), NOW) == Identity("alice", Millis(1_000_500))
    assert check(token(sub="alice", iat=1000, exp=2000, scope=["a"]), NOW).name == "alice"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (token(sub="alice", exp=1000), "has ended"),
        (token(sub="alice", exp=2000, iat=1001), "in the future"),
        (token(sub="alice", exp=1001, iat=1001), "in the future"),
        (token(sub="alice"), "`exp` is missing"),
        (token(exp=2000), "`sub` is missing"),
        (token(sub="alice", exp=2000, scope=5), "`scope`"),
        (token("abc", sub="alice", exp=2000), "is signed"),
        (token(header={"alg": "RS256"}, sub="alice", exp=2000), "is signed"),
        (token(header={"alg": "None"}, sub="alice", exp=2000), "is signed"),
    ],
)
def test_a_token_with_a_flaw_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TokenError, match=reason):
        UnsecuredTokens().check(text, NOW)


def test_a_header_without_an_algorithm_closes_the_connection() -> None:
    """As upstream's broker does."""
    with pytest.raises(WireError, match="no `alg`"):
        UnsecuredTokens().check(token(header={"typ": "JWT"}, sub="alice", exp=2000), NOW)


def test_the_options_count() -> None:
    options = UnsecuredTokens("name", "may", ("a", "b"), 2000)
    good = {"name": "alice", "may": "b a c", "exp": 999, "iat": 1002}
    with pytest.raises(TokenError, match="ends before it was issued"):
        options.check(token(**good), NOW)
    assert options.check(token(**good | {"iat": 998}), NOW).name == "alice"
    with pytest.raises(TokenError, match="no scope 'b'") as caught:
        options.check(token(**good | {"iat": 998, "may": ["a"]}), NOW)
    assert (caught.value.status, caught.value.scope) == ("insufficient_scope", "[a, b]")
