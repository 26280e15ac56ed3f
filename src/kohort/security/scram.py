# SPDX-License-Identifier: Apache-2.0
"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know a password, and neither tells it.

No channel binding, and no SASLprep: passwords are the UTF-8 of their text, as upstream has it. Here
are the keys that are made of a password, and the client. The server is in `scram_server.py`.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import new, pbkdf2_hmac
from hmac import compare_digest, digest
from typing import NamedTuple

from kohort.security.names import SCRAM_SHA_256, SCRAM_SHA_512
from kohort.security.sasl import SaslError

HASHES = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
NUMBERS = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}  # of mechanisms, in requests (KIP-554)
ITERATIONS_LEAST, ITERATIONS_MOST = 4096, 16_384  # that Kafka keeps with a credential
ITERATIONS_DEFAULT = 8192
"""Of a credential that `kohort users` and AdminClient make."""

ITERATIONS_TAKEN = 1_000_000
"""By a client, from a server: up to a second of one core."""

# What is matched is given back to nobody (`++`): a long text that matches nothing is left at once.
BASE64 = "[a-zA-Z0-9/+]*+={0,2}+"
PRINTABLE = r"[\x21-\x2b\x2d-\x7e]++"  # a nonce: no comma
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{PRINTABLE}),s=(?P<salt>{BASE64}),i=(?P<iterations>[0-9]{{1,10}})(?:,.*)?",
    re.DOTALL,
)
_SERVER_FINAL = re.compile(rf"v=(?P<signature>{BASE64})(?:,.*)?", re.DOTALL)


class Keys(NamedTuple):
    """What a server keeps of a password. With it, nobody can log in elsewhere."""

    stored_key: bytes
    server_key: bytes


def salted(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password: as good as the password for this salt."""
    return pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


def server_keys(hash_name: str, salted_password: bytes) -> Keys:
    """The keys that a server keeps of a salted password."""
    return Keys(
        new(hash_name, digest(salted_password, b"Client Key", hash_name)).digest(),
        digest(salted_password, b"Server Key", hash_name),
    )


def auth_message(first_bare: str, server_first: str, final_bare: str) -> bytes:
    """What both sides sign: all that was said."""
    return f"{first_bare},{server_first},{final_bare}".encode()


def from_base64(text: str) -> bytes | None:
    """None where it is none."""
    try:
        return b64decode(text, validate=True)
    except NotBase64:
        return None


def xor(left: bytes, right: bytes) -> bytes:
    """Two texts of one length, bit by bit: a key under its signature, or bared of it."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


class ScramClient:
    """Proves that it knows the password, and takes only a server that knows what was made of it."""

    def __init__(self, name: str, username: str, password: str, nonce: str) -> None:
        """`nonce` is new for each authentication, and nobody can guess it. Raises SaslError."""
        if not re.fullmatch(PRINTABLE, nonce):
            raise SaslError(f"{name}: the nonce is not printable ASCII without a comma")
        self.name = name
        self._hash = HASHES[name]
        self._password = password
        self._nonce = nonce
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={escaped},r={nonce}"
        self._signature: bytes | None = None  # what the server has to send

    def first(self) -> bytes:
        return b"n,," + self._first_bare.encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """The proof, and then None where the server has proved as much. Raises SaslError.

        The proof takes as long as the server's iterations (`ITERATIONS_TAKEN`).
        """
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise self._error("the server sent bytes that are no UTF-8") from None
        if text.startswith("e="):
            raise self._error(f"the server says `{text[2:].partition(',')[0][:100]}`")
        if self._signature is None:
            return self._proof(text)
        match = _SERVER_FINAL.fullmatch(text)
        if match is None:
            raise self._error("the server's last message has no signature, expected v=<signature>")
        if not compare_digest(from_base64(match["signature"]) or b"", self._signature):
            raise self._error(
                "the signature of the server is wrong: it does not know this user's password"
            )
        return None

    def _proof(self, server_first: str) -> bytes:
        if server_first.startswith("m="):
            raise self._error("the server demands an extension (m=), expected none")
        match = _SERVER_FIRST.fullmatch(server_first)
        salt = None if match is None else from_base64(match["salt"])
        if match is None or salt is None:
            raise self._error("the server's first message is not r=<nonce>,s=<salt>,i=<iterations>")
        nonce = match["nonce"]
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise self._error(
                "the server's nonce does not go on where the client's ends: it may be a replay"
            )
        iterations = int(match["iterations"])
        if not ITERATIONS_LEAST <= iterations <= ITERATIONS_TAKEN:
            raise self._error(
                f"the server asks for {iterations} iterations, expected {ITERATIONS_LEAST} to"
                f" {ITERATIONS_TAKEN}"
            )
        key = salted(self._hash, self._password, salt, iterations)
        keys = server_keys(self._hash, key)
        final_bare = f"c=biws,r={nonce}"
        message = auth_message(self._first_bare, server_first, final_bare)
        self._signature = digest(keys.server_key, message, self._hash)
        proof = xor(
            digest(key, b"Client Key", self._hash), digest(keys.stored_key, message, self._hash)
        )
        return f"{final_bare},p={b64encode(proof).decode()}".encode()

    def _error(self, reason: str) -> SaslError:
        return SaslError(f"{self.name}: {reason}")
