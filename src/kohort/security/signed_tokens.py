# SPDX-License-Identifier: Apache-2.0
"""Tokens that are signed with one of the keys of an authority (RFC 7515, RFC 7517).

PyJWT checks signatures. Claims are checked here, because the time is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from kohort.security.claims import ending_of, name_of, read_token, texts_of, time_of
from kohort.security.oauthbearer import TokenError
from kohort.security.sasl import Identity, SaslError
from kohort.terms import Millis

# By the type of a key, not by what a token says: a token cannot choose a weaker check (RFC 8725).
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}


class _KeySet(Struct):
    keys: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key of an authority, and the algorithms that it may be used with."""

    id: str | None
    key: Any
    algorithms: tuple[str, ...]


def read_key_set(text: bytes) -> tuple[VerifyingKey, ...]:
    """The keys of a JSON Web Key Set that check signatures. Raises SaslError where there are none,
    and where PyJWT or cryptography are not installed.
    """
    jwt = _library()
    try:
        entries = decode(text, type=_KeySet).keys
    except (MsgspecError, RecursionError) as error:
        raise SaslError(f"no JSON Web Key Set: {error}") from None
    keys = []
    for entry in entries:
        algorithms = _algorithms(entry)
        if algorithms and entry.get("use", "sig") == "sig":
            try:
                key = jwt.PyJWK(entry, algorithms[0])
            except jwt.exceptions.MissingCryptographyError:
                raise _missing() from None
            except (jwt.PyJWTError, TypeError, ValueError, AttributeError):
                continue  # one that PyJWT cannot use does not take the others along
            # Who has put his private key there has published it: only its public part is of use.
            public = key.key.public_key() if hasattr(key.key, "public_key") else key.key
            keys.append(VerifyingKey(key.key_id, public, algorithms))
    if not keys:
        raise SaslError(
            f"a JSON Web Key Set with {len(entries)} keys, expected one of RSA, EC or Ed25519 that"
            " checks signatures"
        )
    return tuple(keys)


def _missing() -> SaslError:
    return SaslError(
        "tokens that are signed need PyJWT and cryptography: pip install 'kohort[security]'"
    )


def _algorithms(key: Mapping[str, Any]) -> tuple[str, ...]:
    if key.get("kty") == "RSA":
        return _RSA
    name = key.get("crv")
    curve = _CURVES.get(name) if isinstance(name, str) else None
    return (curve,) if curve and key.get("kty") in ("EC", "OKP") else ()


@cache
def _library() -> Any:
    """PyJWT. It is an extra, and takes long to import. Raises SaslError."""
    try:
        import jwt  # noqa: PLC0415
    except ImportError:
        raise _missing() from None
    return jwt


@cache
def _signatures() -> Any:
    return _library().PyJWS()


def _is_signed(text: str, key: Any, algorithm: str) -> bool:
    try:
        _signatures().decode_complete(text, key, algorithms=[algorithm])
    except _library().PyJWTError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SignedTokens:
    """Checks tokens (JWT) that an authority has signed. `keys` gives its current keys, and
    `unknown_key` is called for a token whose key is not among them. The other fields are settings,
    `sasl.oauthbearer.…`.
    """

    keys: Callable[[], Sequence[VerifyingKey]]
    unknown_key: Callable[[], None]
    issuer: str | None = None
    audience: Sequence[str] = ()
    clock_skew_ms: int = 30_000
    scope_claim: str = "scope"
    sub_claim: str = "sub"

    def check(self, text: str, now: Millis) -> Identity:
        """Whose the token is. Raises TokenError."""
        token = read_token(text)
        self._check_signature(text, token.header)
        claims = token.claims
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenError(f"claim `iss` is another one, expected {self.issuer!r}")
        if self.audience and not set(self.audience) & set(texts_of(claims, "aud")):
            raise TokenError(f"claim `aud` has none of {', '.join(self.audience)}")
        name = name_of(claims, self.sub_claim)
        ends = ending_of(claims)
        if time_of(claims, "iat") is None:
            raise TokenError("claim `iat` is missing")
        if now >= ends:  # no skew: the session would have ended before it began, as upstream has it
            raise TokenError("the token has ended (`exp`)")
        begins = time_of(claims, "nbf")
        if begins is not None and now + self.clock_skew_ms < begins * 1000:
            raise TokenError("the token is not valid yet (`nbf`)")
        texts_of(claims, self.scope_claim)
        return Identity(name, ends)

    def _check_signature(self, text: str, header: Mapping[str, Any]) -> None:
        algorithm, wanted = header.get("alg"), header.get("kid")
        keys = [key for key in self.keys() if wanted is None or key.id == wanted]
        if not keys:
            self.unknown_key()
            raise TokenError("the key that signed the token is not known (`kid`)")
        for key in keys:
            if algorithm in key.algorithms and _is_signed(text, key.key, algorithm):
                return
        raise TokenError("the signature of the token is not that of a known key")
