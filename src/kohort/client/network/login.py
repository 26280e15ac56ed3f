# SPDX-License-Identifier: Apache-2.0
"""SASL on a connection: a handshake and tokens, and the same again before the session ends.

Between the handshake and its success a broker takes no other request (KIP-368), so callers wait.
The client gets its token, or all else that it needs, before any caller has to wait.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from kohort.client.network.address import Address
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.credentials import Credentials, Login
from kohort.client.network.environment import environment, in_thread
from kohort.client.network.refusals import other_mechanism, wants_no_sasl
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    UnsupportedVersionError,
    WireError,
    api_error,
)
from kohort.escaping import visible
from kohort.security.sasl import ClientMechanism, SaslError
from kohort.security.settings import Security
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

logger = logging.getLogger(__name__)

RENEWAL_S = 30.0  # which a broker has to renew a session
_PAUSE_S = 1.0  # before a token is asked for again
_MOST_STEPS = 4  # no mechanism has more, and a broker must not ask for ever
_EARLIEST, _LATEST = 0.85, 0.95  # of a session, as upstream's clients (KIP-368)

Ask = Callable[[Any], Awaitable[Any]]
"""Sends a request of SASL, and returns its answer."""


class Channel(Protocol):
    """What a session needs of its connection."""

    address: Address

    async def ask_sasl(self, deadline: float, request: Any) -> Any:
        """The answer to a request of SASL, which no session holds up."""

    async def drain(self) -> None:
        """Wait for the answers to all that was sent."""

    def hold(self) -> None:
        """Let each caller wait for `Session.renewed` before it sends something."""

    def end(self, error: ConnectionFailedError | AuthenticationError) -> None:
        """Close the connection for this reason."""


class Session:
    """The logins of one connection, one after the other (KIP-368)."""

    def __init__(self, channel: Channel, credentials: Credentials) -> None:
        self.is_renewing = False
        self.who = ""  # has logged in, as errors name it
        self._channel = channel
        self._credentials = credentials
        self._renewed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._ends_at = 0.0
        self._chance = environment().chance.random

    async def begin(self, deadline: float) -> None:
        """Log in. Raises AuthenticationError, RequestTimeoutError where a token takes too long, and
        what the channel raises.
        """
        try:
            async with asyncio.timeout_at(deadline):
                login = await self._credentials.login()
        except TimeoutError:
            text = f"cannot log in to {self._channel.address}: there was no token in time"
            raise RequestTimeoutError(text, sent=False) from None
        await self._log_in(login, deadline)

    async def renewed(self, deadline: float) -> None:
        """Wait for a renewal that is under way. Raises TimeoutError at the deadline."""
        async with asyncio.timeout_at(deadline):
            await self._renewed.wait()

    def close(self) -> None:
        """The connection is closed, and nobody has to wait any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:
            self._renewing.cancel()
        self.is_renewing = False
        self._renewed.set()

    async def _log_in(self, login: Login, deadline: float) -> None:
        channel = self._channel
        loop = asyncio.get_running_loop()
        begun = loop.time()
        lifetime_s = await authenticate(
            partial(channel.ask_sasl, deadline), login, channel.address, self._credentials.security
        )
        self.who = login.who
        if lifetime_s > 0:
            self._ends_at = begun + lifetime_s
            renew_at = begun + lifetime_s * session_share(self._chance())
            self._timer = loop.call_at(renew_at, self._renew)

    def _renew(self) -> None:
        self._renewing = asyncio.create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        """Requests go on until the token is there. Then they wait for two answers of the broker."""
        channel = self._channel
        try:
            login = await self._next_login()
            self._renewed.clear()
            self.is_renewing = True
            channel.hold()
            await self._drain()
            await self._log_in(login, asyncio.get_running_loop().time() + RENEWAL_S)
        except ApiError as error:
            text = f"the session could not be renewed: {error.message}"
            logger.warning("%s: %s", channel.address, text)
            if isinstance(error, AuthenticationError):
                channel.end(AuthenticationError(error.code, text))
            else:
                channel.end(ConnectionFailedError(text, sent=False))
        except (WireError, UnsupportedVersionError) as error:
            channel.end(ConnectionFailedError(f"{channel.address}: {error}", sent=False))
        finally:
            self.is_renewing = False
            self._renewed.set()

    async def _drain(self) -> None:
        """A request that a broker parks must not hold all others beyond the session's end."""
        try:
            async with asyncio.timeout_at(self._ends_at):
                await self._channel.drain()
        except TimeoutError:
            text = f"{self._channel.address} answers no request before the session ends"
            raise RequestTimeoutError(text, sent=False) from None

    async def _next_login(self) -> Login:
        """A token that cannot be had at the moment is asked for again while the session lasts."""
        while True:
            try:
                return await self._credentials.login()
            except ApiError as error:
                if asyncio.get_running_loop().time() + _PAUSE_S >= self._ends_at:
                    raise
                logger.warning("%s: %s", self._channel.address, error.message)
                await asyncio.sleep(_PAUSE_S)


async def authenticate(ask: Ask, login: Login, address: Address, security: Security) -> float:
    """Log in, and return the seconds that the session lasts: 0 where it has no end.

    Raises AuthenticationError, and what `ask` raises.
    """
    mechanism = login.mechanism
    answer: SaslHandshakeResponse = await ask(SaslHandshakeRequest(mechanism=mechanism.name))
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise other_mechanism(address, answer.mechanisms, mechanism.name)
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise wants_no_sasl(address, security)
    if answer.error_code:
        raise _refused(f"{address} refused SaslHandshake", answer.error_code, None)
    token: bytes | None = mechanism.first()
    lifetime_ms = 0
    for _ in range(_MOST_STEPS):
        if token is None:
            return lifetime_ms / 1000
        said: SaslAuthenticateResponse = await ask(SaslAuthenticateRequest(auth_bytes=token))
        if said.error_code:
            text = f"{address} refused {login.who}"
            raise _refused(text, said.error_code, said.error_message)
        lifetime_ms = said.session_lifetime_ms
        token = await _next(mechanism, said.auth_bytes, address)
    raise _failed(
        f"{address}: {mechanism.name} does not come to an end, expected {_MOST_STEPS} steps at most"
    )


async def _next(mechanism: ClientMechanism, challenge: bytes, address: Address) -> bytes | None:
    """The client's next token. The hash of a password takes milliseconds, or as long as the broker
    asks for: others have the loop meanwhile.
    """
    try:
        if mechanism.name.startswith("SCRAM"):
            return await in_thread(partial(mechanism.answer, challenge), "SCRAM")
        return mechanism.answer(challenge)
    except SaslError as error:
        raise _failed(f"{address}: {visible(str(error))}") from None


def _refused(text: str, code: int, message: str | None) -> AuthenticationError:
    error = api_error(code, message)
    return AuthenticationError(error.code, f"{text}: {visible(error.message or error.code.name)}")


def _failed(text: str) -> AuthenticationError:
    return AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, text)


def session_share(chance: float) -> float:
    """Which share of a session passes before it is renewed; `chance` is from 0 to 1."""
    return _EARLIEST + (_LATEST - _EARLIEST) * chance
