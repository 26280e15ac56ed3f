# SPDX-License-Identifier: Apache-2.0
"""Tokens for OAUTHBEARER: from the application, or from an endpoint and then kept for a while."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from kohort.client.network.environment import environment, in_thread
from kohort.errors import ApiError, AuthenticationError, ErrorCode
from kohort.escaping import visible
from kohort.security.claims import read_token
from kohort.security.oauthbearer import AccessToken, TokenError
from kohort.security.settings import Security, TokenProvider

Value = TypeVar("Value")

_FRESH_SHARE = 0.8  # of a token's life: less than of a session, which ends with it
_SHOWN_CLAIMS = ("sub", "iss", "aud", "scope")
_SHOWN_MAX = 100
_SKEW_S = 5  # clocks that differ by less are as good as the same


class SharedWork(Generic[Value]):
    """Work that several connections want at once is done once."""

    def __init__(self, work: Callable[[], Awaitable[Value]]) -> None:
        self._work = work
        self._task: asyncio.Future[Value] | None = None

    async def result(self) -> Value:
        """Raises what the work raises. It goes on when a caller is cancelled."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = asyncio.ensure_future(self._work())
            self._task.add_done_callback(_heard)
        return await asyncio.shield(self._task)


def _heard(task: "asyncio.Future[Any]") -> None:
    """Its error is for those who wait, and maybe nobody does any more."""
    if not task.cancelled():
        task.exception()


class Tokens:
    """The tokens of one client."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._requesting = SharedWork(self._request)
        self._clock = environment().clock
        self._kept: AccessToken | None = None
        self._renew_at = 0.0

    async def current(self) -> str:
        """A token of now. Raises AuthenticationError, and ConnectionFailedError where the endpoint
        cannot be reached.
        """
        if self._security.token is not None:
            return _checked(await _called(self._security.token))
        if self._kept is None or self._clock.monotonic() >= self._renew_at:
            self._kept = await self._requesting.result()
        return self._kept.text

    async def _request(self) -> AccessToken:
        begun = self._clock.monotonic()
        token = await in_thread(lambda: _endpoint_token(self._security), "token")
        self._renew_at = begun + token.lifetime_s * _FRESH_SHARE
        return token


def _endpoint_token(security: Security) -> AccessToken:
    """A token of the endpoint. The module brings HTTP along, which other clients do without; it is
    imported in the thread, so that nothing else waits for it.
    """
    from kohort.client.network.token_endpoint import request_token  # noqa: PLC0415

    return request_token(security)


async def _called(provider: TokenProvider) -> Any:
    """What the application's provider gives. One that is no coroutine may block."""
    try:
        if inspect.iscoroutinefunction(provider):
            return await provider()
        given: Any = await in_thread(provider, "token")
        return await given if inspect.isawaitable(given) else given
    except ApiError:
        raise
    except Exception as error:
        text = f"no token: the provider raised {type(error).__name__}: {visible(str(error))}"
        raise AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, text) from error


def _checked(token: Any) -> str:
    """What it is made of is checked by the mechanism."""
    if isinstance(token, str) and token:
        return token
    kind = "an empty text" if token == "" else f"a value of type {type(token).__name__}"
    text = f"no token: the provider gave {kind}, expected a token as text"
    raise AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, text)


def describe_token(token: str, now_s: float) -> str:
    """What a token says of itself, for an error: whose it is, whether it has ended, and whether it
    was issued at a time that is yet to come here: then two clocks differ. Nothing of that is
    secret, and nobody has checked it. "" for one that is no JWT.
    """
    claims = _claims(token)
    shown = [
        f"{name} {visible(str(claims[name]))[:_SHOWN_MAX]}"
        for name in _SHOWN_CLAIMS
        if claims.get(name)
    ]
    left_s = _seconds_until(claims, "exp", now_s)
    if left_s:
        shown.append(f"{'ends in' if left_s > 0 else 'ended'} {abs(left_s):.0f} s")
        shown[-1] += "" if left_s > 0 else " ago"
    ahead_s = _seconds_until(claims, "iat", now_s)
    if ahead_s > _SKEW_S:
        shown.append(f"issued {ahead_s:.0f} s ahead of the clock of this machine")
    return ", ".join(shown)


def _seconds_until(claims: Mapping[str, Any], name: str, now_s: float) -> float:
    """From now to the time of a claim; 0 where it has none."""
    try:
        return float(claims[name]) - now_s
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0


def subject_of(token: str) -> str | None:
    """Whom a token is for, by what it says itself."""
    subject = _claims(token).get("sub")
    return str(subject) if subject else None


def _claims(token: str) -> Mapping[str, Any]:
    try:
        return read_token(token).claims
    except TokenError:
        return {}
