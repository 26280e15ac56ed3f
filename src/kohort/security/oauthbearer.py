# SPDX-License-Identifier: Apache-2.0
"""OAUTHBEARER (RFC 7628, KIP-255): a token of somebody whom the broker trusts, and extensions
(KIP-342).
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kohort.errors import WireError
from kohort.security.names import OAUTHBEARER
from kohort.security.sasl import NAME, Identity, SaslError, SaslRefusalError
from kohort.terms import Millis

END = "\x01"
LONGEST_BYTES = 1 << 17
"""Of a client's message; longer ones are refused unread."""

GOODBYE = b"\x01"
"""A client sends it when its token was refused; the server then refuses the client for good."""

KEY, VALUE = "[A-Za-z]++", r"[\x21-\x7e \t\r\n]++"
TOKEN = "[-_~+/.a-zA-Z0-9]++=*"  # noqa: S105  (an expression)
AUTH = "auth"
_FIRST = re.compile(rf"n,(?:a=(?P<wanted>{NAME}))?,\x01(?P<pairs>(?:{KEY}={VALUE}\x01)*)\x01")
_SHOWN = re.compile(rf"(?P<scheme>\w++) ++(?P<token>{TOKEN})", re.ASCII)


class AccessToken(NamedTuple):
    """A token, and how long it holds from the request on: 0 where nobody says."""

    text: str
    lifetime_s: float

    def __repr__(self) -> str:
        return f"AccessToken({self.lifetime_s} s)"


class OAuthBearerClient:
    """Shows a token. The server proves nothing."""

    name = OAUTHBEARER

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        """Raises SaslError for a token or an extension that cannot be sent. It shows neither."""
        if not re.fullmatch(TOKEN, token):
            raise SaslError(
                f"OAUTHBEARER: the token ({len(token)} characters) has a character that no token"
                " has, expected letters, digits and -_~+/."
            )
        for key, value in extensions.items():
            if key == AUTH or not re.fullmatch(KEY, key) or not re.fullmatch(VALUE, value):
                raise SaslError(
                    f"OAUTHBEARER: extension {key!r}, expected a name of letters that is not"
                    f" `{AUTH}`, and a value of printable ASCII"
                )
        pairs = {AUTH: f"Bearer {token}", **extensions}
        text = "".join(f"{key}={value}{END}" for key, value in pairs.items())
        self._token = f"n,,{END}{text}{END}".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> bytes | None:
        """None where the token was taken; otherwise the goodbye, which the server refuses."""
        return GOODBYE if challenge else None


class TokenError(SaslError):
    """A token is refused: the text says why, for the server's log. `status` and `scope` are what
    the client is told (RFC 7628, 3.2.2).
    """

    def __init__(self, reason: str, status: str = "invalid_token", scope: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


CheckToken = Callable[[str, Millis], Identity]
"""Whose a token is, at this time. Raises TokenError, and WireError for one that closes the
connection.
"""


class OAuthBearerServer:
    """Takes a token. One that is refused is answered with why, and the client then says goodbye.

    A good token may come instead, as with upstream's. A second bad one is refused for good, so that
    each further attempt has its delay and is counted.
    """

    name = OAUTHBEARER

    def __init__(self, check: CheckToken) -> None:
        self.identity: Identity | None = None
        self._check = check
        self._refused = ""  # what the client was told of its token
        self.reason = ""  # why it was refused, for the log

    def answer(self, token: bytes, now: Millis) -> bytes:
        refused, self._refused = self._refused, ""
        if refused and token == GOODBYE:
            raise SaslRefusalError(refused)
        if len(token) > LONGEST_BYTES:
            raise SaslError(f"a message of {len(token)} bytes, expected at most {LONGEST_BYTES}")
        match = _FIRST.fullmatch(token.decode(errors="replace"))
        if match is None:
            raise SaslError("the client's message is none of OAUTHBEARER")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(END) if pair)
        shown = _SHOWN.fullmatch(pairs.get(AUTH, ""))
        if shown is None:
            raise SaslError("the client's message has no token")
        if shown["scheme"].lower() != "bearer":
            raise WireError(f"OAUTHBEARER: a token of scheme {shown['scheme'][:20]}")
        try:
            identity = self._check(shown["token"], now)
        except TokenError as error:
            scope = f', "scope":"{error.scope}"' if error.scope else ""
            self._refused = f'{{"status":"{error.status}"{scope}}}'
            self.reason = str(error)
            if refused:
                raise SaslRefusalError(self._refused) from None
            return self._refused.encode()
        wanted = match["wanted"]
        if wanted and wanted != identity.name:
            raise SaslRefusalError(
                f"Authentication failed: Client requested an authorization id ({wanted}) that is"
                f" different from the token's principal name ({identity.name})"
            )
        self.identity = identity
        return b""
