# SPDX-License-Identifier: Apache-2.0
"""What a token is made of; and whatever somebody sends in its place is refused."""

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kohort.security.claims import ending_of, name_of, read_token, texts_of, time_of
from kohort.security.oauthbearer import TokenError


def part(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_a_token_is_taken_apart() -> None:
    header, claims = part('{"alg":"none"}'), part('{"sub":"alice"}')
    token = read_token(f"{header}.{claims}.abc")
    assert token == ({"alg": "none"}, {"sub": "alice"}, "abc")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b",
        "a.b.c.d",
        f"{part('[]')}.{part('{}')}.",
        f"{part('{}')}.{part('5')}.",
        f"{part('{}')}.{part('{')}.",
        f"{part('{}')}.{part('[' * 100_000)}.",
        f"{part('{}')}.\u00e9.",
        f"{part('{}')}.!!!!.",
    ],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(TokenError):
        read_token(text)


@given(some.text(max_size=200))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        read_token(text)
    except TokenError as error:
        assert len(text) < 20 or text not in str(error)  # noqa: PT017  (most are refused)


@pytest.mark.parametrize("value", ["soon", True, [], float("inf"), float("nan"), 10**400, -(2**41)])
def test_a_time_is_a_number_that_a_clock_can_show(value: Any) -> None:
    with pytest.raises(TokenError, match="claim `exp` is no time, expected seconds"):
        time_of({"exp": value}, "exp")


def test_times_have_fractions() -> None:
    assert ending_of({"exp": 1.7957740795e9}) == 1_795_774_079_500
    assert time_of({}, "iat") is None
    with pytest.raises(TokenError, match="claim `exp` is missing"):
        ending_of({})


@pytest.mark.parametrize("value", [None, "", "  ", 5, ["alice"]])
def test_a_name_is_a_text_that_is_not_empty(value: Any) -> None:
    with pytest.raises(TokenError, match="claim `sub` is missing"):
        name_of({"sub": value}, "sub")


def test_a_name_is_not_too_long_to_be_remembered() -> None:
    assert name_of({"sub": "\u00e9" * 512}, "sub") == "\u00e9" * 512
    with pytest.raises(TokenError, match="claim `sub` has 1026 bytes, expected at most 1024"):
        name_of({"sub": "\u00e9" * 513}, "sub")


def test_a_claim_may_have_several_texts() -> None:
    assert [texts_of({"aud": value}, "aud") for value in (None, "a", ["a", "b"])] == [
        [],
        ["a"],
        ["a", "b"],
    ]
    for value in (5, ["a", 5], {"a": "b"}):
        with pytest.raises(TokenError, match="claim `aud`"):
            texts_of({"aud": value}, "aud")
