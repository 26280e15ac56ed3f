# SPDX-License-Identifier: Apache-2.0
"""The server of SCRAM (RFC 5802). It takes what upstream's takes, which is laxer than the RFC about
extensions and stricter about names: ASCII alone.

One text refuses whatever is wrong. A user that is not there is asked for a proof like every other,
with a salt that is made up, so that nobody can probe for users.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import new, shake_256
from hmac import compare_digest, digest
from typing import NamedTuple, Protocol

from kohort.errors import WireError
from kohort.security.sasl import NAME, Identity, SaslError, other_authorization_id
from kohort.security.scram import (
    BASE64,
    HASHES,
    ITERATIONS_DEFAULT,
    PRINTABLE,
    auth_message,
    from_base64,
    xor,
)
from kohort.terms import Millis

LONGEST_BYTES = 1 << 16
"""Of a message; longer ones are refused unread. Names have a thousand bytes at most."""

_VALUE = r"[\x01-\x2b\x2d-\x7f]++"  # no comma
_EXTENSIONS = f"(?:,[A-Za-z]++={_VALUE})*"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<wanted>{NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{NAME}),r=(?P<nonce>{PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<bare>c=(?P<channel>{BASE64}),r=(?P<nonce>{PRINTABLE})){_EXTENSIONS},p=(?P<proof>{BASE64})"
)


class Decoy(NamedTuple):
    """Made-up salts and iterations, which the server sends to users that do not exist. Salts come
    of `secret`, which nobody can guess and which does not change; they have `salt_bytes` of
    `digits`. By default they look like those of credentials that `kohort users` makes.
    """

    secret: bytes
    iterations: int = ITERATIONS_DEFAULT
    salt_bytes: int = 24
    digits: bytes = b"0123456789abcdef"

    def salt(self, seed: bytes) -> bytes:
        """The salt for a user, by a text that is made of its name and of the secret."""
        drawn = shake_256(seed).digest(self.salt_bytes)
        return bytes(self.digits[byte % len(self.digits)] for byte in drawn)


class StoredCredential(Protocol):
    """The keys that a server keeps of a user's password."""

    @property
    def iterations(self) -> int: ...
    @property
    def salt(self) -> bytes: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...


class ScramServer:
    """Takes a proof, and proves in return that it knows the user's keys."""

    def __init__(
        self, name: str, look_up: Callable[[str], StoredCredential | None], nonce: str, decoy: Decoy
    ) -> None:
        """`look_up` has the credentials of this mechanism by user. `nonce` is new each time, of
        letters and digits.
        """
        self.name = name
        self.identity: Identity | None = None
        self._hash = HASHES[name]
        self._look_up = look_up
        self._nonce = nonce
        self._decoy = decoy
        self._user = ""
        self._header = b""
        self._first_bare = ""
        self._server_first = ""
        self._known = False
        self._stored_key = self._server_key = b""

    def answer(self, token: bytes, _now: Millis) -> bytes:
        """The salt for the first message, the signature for the last."""
        if len(token) > LONGEST_BYTES:
            raise SaslError(f"a message of {len(token)} bytes, expected at most {LONGEST_BYTES}")
        text = token.decode("ascii", errors="replace")
        return self._final(text) if self._server_first else self._first(text)

    def _first(self, text: str) -> bytes:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise SaslError("the client's first message is none of SCRAM without channel binding")
        if ",tokenauth=true" in match["extensions"]:
            raise SaslError("the client shows a delegation token, and there are none")
        self._user = _unescaped(match["name"])
        wanted = match["wanted"]
        if wanted is not None and _unescaped(wanted) != self._user:
            raise other_authorization_id()
        credential = self._look_up(self._user)
        made_up = digest(self._decoy.secret, self._user.encode(), self._hash)
        made_up_salt = self._decoy.salt(made_up)
        if credential is None:
            salt, iterations = made_up_salt, self._decoy.iterations
            self._stored_key = self._server_key = made_up
        else:
            salt, iterations = credential.salt, credential.iterations
            self._stored_key, self._server_key = credential.stored_key, credential.server_key
        self._known = credential is not None
        self._header = match["header"].encode()
        self._first_bare = match["bare"]
        self._nonce = match["nonce"] + self._nonce
        self._server_first = f"r={self._nonce},s={b64encode(salt).decode()},i={iterations}"
        return self._server_first.encode()

    def _final(self, text: str) -> bytes:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise SaslError("the client's last message is none of SCRAM")
        if match["nonce"] != self._nonce:
            raise SaslError("the client's last message has another nonce: it may be a replay")
        if from_base64(match["channel"]) != self._header:
            raise SaslError("the client's last message has another channel binding")
        proof = from_base64(match["proof"])
        if proof is None:
            raise SaslError("the client's proof is no base64")
        if len(proof) != len(self._stored_key):
            raise WireError(f"{self.name}: a proof of {len(proof)} bytes")
        message = auth_message(self._first_bare, self._server_first, match["bare"])
        client_key = xor(proof, digest(self._stored_key, message, self._hash))
        is_right = compare_digest(new(self._hash, client_key).digest(), self._stored_key)
        if not self._known or not is_right:
            raise SaslError("the user is not known, or the password is wrong")
        self.identity = Identity(self._user)
        return b"v=" + b64encode(digest(self._server_key, message, self._hash))


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
