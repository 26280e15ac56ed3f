# SPDX-License-Identifier: Apache-2.0
"""Tokens: providers of every kind, an endpoint that is asked seldom, and what a token says."""

import asyncio
import base64
import json
import threading
import time
from typing import Any

import pytest

from kohort.client.network import token_endpoint
from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.client.network.tokens import Tokens, describe_token
from kohort.errors import AuthenticationError
from kohort.security.oauthbearer import AccessToken
from kohort.security.settings import Security


def of(provider: Any) -> Tokens:
    return Tokens(Security(mechanism="OAUTHBEARER", token=provider))


def jwt(claims: Any) -> str:
    parts = ({"alg": "none"}, claims)
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join(part.rstrip("=") for part in coded) + "."


async def later() -> str:
    await asyncio.sleep(0)
    return "later"


class Provider:
    def token(self) -> str:
        return "method"

    async def token_later(self) -> str:
        return "method later"


@pytest.mark.parametrize(
    ("provider", "token"),
    [
        (lambda: "now", "now"),
        (later, "later"),
        (lambda: later(), "later"),  # noqa: PLW0108  (a function that is no coroutine)
        (Provider().token, "method"),
        (Provider().token_later, "method later"),
    ],
)
def test_a_provider_gives_a_token_or_an_awaitable(provider, token):
    assert asyncio.run(of(provider).current()) == token


def test_a_provider_is_asked_each_time():
    given = iter(["first", "second"])
    tokens = of(lambda: next(given))

    async def both() -> list[str]:
        return [await tokens.current(), await tokens.current()]

    assert asyncio.run(both()) == ["first", "second"]


def test_a_provider_that_blocks_does_not_hold_the_loop():
    go_on = threading.Event()

    def block() -> str:
        assert go_on.wait(10)
        return "at last"

    async def run() -> str:
        asking = asyncio.create_task(of(block).current())
        await asyncio.sleep(0.01)
        assert not asking.done()
        go_on.set()
        return await asking

    assert asyncio.run(run()) == "at last"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("", "no token: the provider gave an empty text, expected a token as text"),
        (None, "the provider gave a value of type NoneType, expected"),
        (b"secret-bytes", "the provider gave a value of type bytes, expected"),
    ],
)
def test_what_is_no_token_is_refused(given, line):
    with pytest.raises(AuthenticationError, match=line) as caught:
        asyncio.run(of(lambda: given).current())
    assert "secret" not in str(caught.value)


def test_a_provider_that_raises_says_why():
    def fail() -> str:
        raise OSError("the identity\nprovider is away")

    line = r"no token: the provider raised OSError: the identity\\nprovider is away$"
    with pytest.raises(AuthenticationError, match=line) as caught:
        asyncio.run(of(fail).current())
    assert isinstance(caught.value.__cause__, OSError)

    def away() -> str:
        raise ConnectionFailedError("no token: away", sent=False)

    with pytest.raises(ConnectionFailedError):  # it may come back
        asyncio.run(of(away).current())


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic


def test_a_token_of_an_endpoint_is_kept_until_shortly_before_its_end(monkeypatch):
    asked = []

    def request(_security: Security) -> AccessToken:
        asked.append(threading.current_thread().name)
        time.sleep(0.01)
        return AccessToken(f"token {len(asked)}", 100.0)

    monkeypatch.setattr(token_endpoint, "request_token", request)
    clock = Clock()
    tokens = Tokens(Security(token_endpoint="https://idp.example/token"))
    tokens._clock = clock

    async def at(now: float) -> set[str]:
        clock.now = now
        return set(await asyncio.gather(*(tokens.current() for _ in range(5))))

    assert asyncio.run(at(1000.0)) == {"token 1"}
    assert asyncio.run(at(1079.0)) == {"token 1"}
    assert asyncio.run(at(1080.0)) == {"token 2"}
    assert asked == ["token", "token"]


def test_an_endpoint_that_fails_is_asked_again_by_the_next(monkeypatch):
    outcomes = [ConnectionFailedError("away", sent=False), AccessToken("token", 0.0)]

    def request(_security: Security) -> AccessToken:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(token_endpoint, "request_token", request)
    tokens = Tokens(Security(token_endpoint="https://idp.example/token"))
    with pytest.raises(ConnectionFailedError):
        asyncio.run(tokens.current())
    assert asyncio.run(tokens.current()) == "token"


def test_one_who_gives_up_does_not_take_the_token_from_the_others(monkeypatch):
    monkeypatch.setattr(
        token_endpoint, "request_token", lambda _: time.sleep(0.05) or AccessToken("t", 9)
    )
    tokens = Tokens(Security(token_endpoint="https://idp.example/token"))

    async def run() -> str:
        first, second = (asyncio.create_task(tokens.current()) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        return await second

    assert asyncio.run(run()) == "t"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (jwt({"sub": "alice", "exp": 1012}), "sub alice, ends in 12 s"),
        (jwt({"sub": "alice", "exp": 988.2}), "sub alice, ended 12 s ago"),
        (
            jwt({"sub": "alice", "iat": 1045, "exp": 1345}),
            "sub alice, ends in 345 s, issued 45 s ahead of the clock of this machine",
        ),
        (jwt({"sub": "alice", "iat": 1004}), "sub alice"),
        (jwt({"sub": "alice", "iat": "soon"}), "sub alice"),
        (
            jwt({"iss": "https://idp", "aud": ["a", "b"], "x": 1}),
            "iss https://idp, aud ['a', 'b']",
        ),
        (jwt({"sub": "a\x1b[2J", "exp": "soon"}), r"sub a\x1b[2J"),
        (jwt({"sub": "alice", "exp": int("9" * 400)}), "sub alice"),
        (jwt({"sub": "a" * 500}), "sub " + "a" * 100),
        (jwt(["no", "claims"]), ""),
        ("abc", ""),
        ("a.b.c", ""),
        ("a.é.c", ""),
        ("a." + base64.urlsafe_b64encode(b"[" * 100_000).decode() + ".c", ""),
    ],
)
def test_a_token_says_whose_it_is_and_whether_it_has_ended(token, text):
    assert describe_token(token, 1000.0) == text
