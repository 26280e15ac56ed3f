# SPDX-License-Identifier: Apache-2.0
"""PLAIN (RFC 4616): a name and a password, as they are."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from kohort.security.names import PLAIN
from kohort.security.sasl import Identity, SaslError, SaslRefusalError, other_authorization_id
from kohort.terms import Millis

_SEPARATOR = "\0"
_PARTS = 3


class PlainClient:
    """Tells the server the password. The server proves nothing."""

    name = PLAIN

    def __init__(self, username: str, password: str) -> None:
        """Raises SaslError for a name or a password that the mechanism cannot carry."""
        if _SEPARATOR in username + password:
            raise SaslError("PLAIN: the name or the password has a NUL, expected none")
        self._token = _SEPARATOR.join(("", username, password)).encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> None:
        if challenge:
            raise SaslError(f"PLAIN: the server goes on with {len(challenge)} bytes, expected none")


class PlainServer:
    """Knows the users of one listener."""

    name = PLAIN

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.identity: Identity | None = None
        self._passwords = passwords

    def answer(self, token: bytes, _now: Millis) -> bytes:
        """An empty answer, where name and password are right. Raises SaslRefusalError."""
        parts = token.decode(errors="replace").split(_SEPARATOR, _PARTS)
        if len(parts) != _PARTS:
            raise SaslRefusalError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        wanted, username, password = parts
        if not username:
            raise SaslRefusalError("Authentication failed: username not specified")
        if not password:
            raise SaslRefusalError("Authentication failed: password not specified")
        known = self._passwords.get(username)
        # The same work whether the user is known or not, and however much of a password is right.
        is_right = compare_digest(_digest(known or ""), _digest(password))
        if known is None or not is_right:
            raise SaslRefusalError("Authentication failed: Invalid username or password")
        if wanted and wanted != username:
            raise other_authorization_id()
        self.identity = Identity(username)
        return b""


def _digest(password: str) -> bytes:
    return sha256(password.encode(errors="surrogatepass")).digest()
