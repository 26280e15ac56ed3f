# SPDX-License-Identifier: Apache-2.0
"""What one client proves itself with, made once for all of its connections."""

import logging
from ssl import SSLContext
from typing import NamedTuple

from kohort.client.network.environment import environment, in_thread
from kohort.client.network.tokens import SharedWork, Tokens, describe_token, subject_of
from kohort.errors import AuthenticationError, ErrorCode
from kohort.escaping import visible
from kohort.security.names import MECHANISMS, OAUTHBEARER, PLAIN, SASL_PLAINTEXT
from kohort.security.sasl import ClientMechanism, SaslError
from kohort.security.settings import Security

logger = logging.getLogger(__name__)

_READABLE = {PLAIN: "password", OAUTHBEARER: "token"}  # the others prove it without telling it


class Login(NamedTuple):
    """One run of a mechanism; `who` says for whom, in errors."""

    mechanism: ClientMechanism
    who: str


class Credentials:
    """The security of one client. Every method may be called by several connections at once."""

    def __init__(self, security: Security) -> None:
        """Raises ValueError for a security that makes no sense."""
        check_security(security)
        self.security = security
        self._context = security.context
        self._making = SharedWork(self._make_context)
        self._tokens = Tokens(security)
        self._clock = environment().clock
        self._has_warned = False
        self._subject: str | None = None  # of the last token

    @property
    def principal(self) -> str:
        """Who the client is for the rules of brokers, as far as it can know that itself."""
        if self.security.uses_sasl:
            name = self.security.username or self._subject
            return f"User:{name}" if name else "the principal of the token"
        shows_one = self.security.context is not None or self.security.identity is not None
        if self.security.uses_tls and shows_one:
            return "the principal of the client's certificate"
        return "User:ANONYMOUS"

    async def context(self) -> SSLContext:
        """What TLS begins with. Raises AuthenticationError for a store that cannot be used."""
        if self._context is None:
            self._context = await self._making.result()
        return self._context

    async def login(self) -> Login:
        """What a connection logs in with now. Raises AuthenticationError, and ConnectionFailedError
        where a token is needed and cannot be had at the moment.
        """
        # A login brings hashes along, which clients without SASL do without.
        from kohort.security.mechanisms import client_mechanism  # noqa: PLC0415

        security = self.security
        token = await self._tokens.current() if security.mechanism == OAUTHBEARER else None
        try:
            mechanism = client_mechanism(security, environment().new_nonce(), token)
        except SaslError as error:
            raise AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from None
        if token is None:
            return Login(mechanism, f"user {visible(security.username or '')} ({mechanism.name})")
        self._subject = subject_of(token)
        described = describe_token(token, self._clock.time())
        return Login(mechanism, f"the token ({described or 'no JWT'}; {mechanism.name})")

    def warn_of_readable(self, host: str) -> None:
        """Warn once when everybody on the way to this host can read the secret."""
        security = self.security
        what = _READABLE.get(security.mechanism or "")
        if self._has_warned or what is None or security.protocol != SASL_PLAINTEXT:
            return
        if not _is_loopback(host):
            self._has_warned = True
            logger.warning(
                "a %s is sent to %s in plain text: security.protocol is SASL_PLAINTEXT with "
                "mechanism %s, expected SASL_SSL",
                *(what, host, security.mechanism),
            )

    async def _make_context(self) -> SSLContext:
        # Stores bring temporary files and archives along, which clients without TLS do without.
        from kohort.security.stores import StoreError, client_context  # noqa: PLC0415

        security = self.security

        def make() -> SSLContext:
            return client_context(
                trust=security.trust,
                identity=security.identity,
                key=security.key,
                check_hostname=security.check_hostname,
                verify=security.verify,
            )

        try:
            return await in_thread(make, "certificates")
        except StoreError as error:
            raise AuthenticationError(ErrorCode.INVALID_CONFIG, str(error)) from None


def check_security(security: Security) -> None:
    """Raises ValueError for a security by which nobody can connect, whatever the broker wants."""
    if not security.uses_sasl:
        return
    name = security.mechanism
    if name is None:
        raise ValueError(
            f"security.protocol is {security.protocol}, and there is no sasl.mechanism: expected "
            f"one of {', '.join(MECHANISMS)}"
        )
    if name == OAUTHBEARER:
        _check_tokens(security)
    elif not security.username or not security.password:
        missing = "password" if security.username else "user name"
        raise ValueError(f"sasl.mechanism is {name}, and there is no {missing}")


def _check_tokens(security: Security) -> None:
    endpoint = security.token_endpoint
    if security.token is None and endpoint is None:
        raise ValueError(
            "sasl.mechanism is OAUTHBEARER, and there is no token provider and no token endpoint"
        )
    if security.token is not None and endpoint is not None:
        raise ValueError("a token provider and a token endpoint are given, expected one of them")
    if endpoint is None:
        return
    if not security.client_id or not security.client_secret:
        missing = "secret" if security.client_id else "id"
        raise ValueError(f"a token endpoint is given, and there is no client {missing}")
    if not _may_get_secrets(endpoint):
        raise ValueError(
            "the token endpoint is no address by https, expected https://host/path: a client "
            "secret is sent to it"
        )


def _may_get_secrets(endpoint: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415  (a login by a token needs it)

    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port  # a port that is no number raises, too
    except ValueError:
        return False
    near = parts.scheme == "http" and host is not None and _is_loopback(host)
    return bool(host) and (near or parts.scheme == "https")


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address  # noqa: PLC0415  (as above)

    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
