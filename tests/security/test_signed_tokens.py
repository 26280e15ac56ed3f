# SPDX-License-Identifier: Apache-2.0
"""Tokens of an authority: which signatures count, and which claims (SEC-42)."""

import json
import sys
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from tests.security.authority import EC, KEY_SET, RSA

from kohort.security import signed_tokens
from kohort.security.oauthbearer import TokenError
from kohort.security.sasl import Identity, SaslError
from kohort.security.signed_tokens import SignedTokens, VerifyingKey, read_key_set
from kohort.terms import Millis

NOW = Millis(1_000_000)
CLAIMS = {"sub": "alice", "iss": "https://issuer", "aud": "kohort", "iat": 990, "exp": 1010}
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


def key_set(*entries: dict[str, Any]) -> tuple[VerifyingKey, ...]:
    return read_key_set(json.dumps({"keys": entries}).encode())


def public(algorithm: str, key: Any, **more: str) -> dict[str, Any]:
    maker: Any = jwt.get_algorithm_by_name(algorithm)
    return {**maker.to_jwk(key.public_key(), as_dict=True), **more}


KEYS = key_set(
    public("RS256", KEY, kid="r", alg="RS256"),
    public("ES256", CURVE, kid="c"),
    public("EdDSA", EDWARDS, kid="e"),
)
ASKED: list[int] = []


def check(text: str, **more: Any) -> Identity:
    rules = {"issuer": "https://issuer", "audience": ["kohort"], "clock_skew_ms": 2000, **more}
    return SignedTokens(lambda: KEYS, lambda: ASKED.append(1), **rules).check(text, NOW)


def signed(algorithm: str = "RS256", key: Any = KEY, kid: str | None = "r", **claims: Any) -> str:
    kept = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.encode(kept, key, algorithm, headers={} if kid is None else {"kid": kid})


@pytest.mark.parametrize(
    ("algorithm", "key", "kid"),
    [
        ("RS256", KEY, "r"),
        ("PS512", KEY, "r"),
        ("ES256", CURVE, "c"),
        ("EdDSA", EDWARDS, "e"),
        ("ES256", CURVE, None),
    ],
)
def test_a_token_that_a_known_key_has_signed_is_taken(algorithm: str, key: Any, kid: Any) -> None:
    assert check(signed(algorithm, key, kid)) == Identity("alice", Millis(1_010_000))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (jwt.encode(CLAIMS, None, "none", headers={"kid": "r"}), "signature"),
        (jwt.encode(CLAIMS, None, "none"), "signature"),
        (jwt.encode(CLAIMS, "s" * 64, "HS256", headers={"kid": "r"}), "signature"),
        (signed("ES256", CURVE, "r"), "signature"),
        (signed("RS256", KEY, "c"), "signature"),
        (signed("ES256", ec.generate_private_key(ec.SECP256R1()), None), "signature"),
        (signed()[:-4] + "AAAA", "signature"),
        (signed("RS256", KEY, "other"), "key that signed the token is not known"),
        (signed(aud="other"), "claim `aud` has none of kohort"),
        (signed(aud=None), "claim `aud` has none of kohort"),
        (signed(iss="https://other"), "claim `iss`"),
        (signed(iss=None), "claim `iss`"),
        (signed(exp=1000), "has ended"),
        (signed(exp=None), "`exp` is missing"),
        (signed(iat=None), "`iat` is missing"),
        (signed(sub=""), "`sub` is missing"),
        (signed(nbf=1003), "not valid yet"),
        (signed(scope=5), "`scope`"),
        ("a.b", "2 parts"),
    ],
)
def test_any_other_token_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TokenError, match=reason):
        check(text)


def test_a_key_that_signs_by_a_secret_is_never_one_of_an_authority() -> None:
    """Otherwise everybody who knows a public key could sign with it."""
    with pytest.raises(SaslError, match="with 1 keys, expected one of RSA, EC or Ed25519"):
        key_set({"kty": "oct", "k": "c2VjcmV0", "kid": "r"})


def test_the_settings_count() -> None:
    assert check(signed(nbf=1002, aud=["other", "kohort"])).name == "alice"
    assert check(signed(iss=None, aud=None), issuer=None, audience=()).name == "alice"
    assert check(signed(name="bob"), sub_claim="name").name == "bob"


def test_a_key_that_is_not_known_is_asked_for() -> None:
    ASKED.clear()
    with pytest.raises(TokenError):
        check(signed("RS256", KEY, "other"))
    assert ASKED == [1]


def test_keys_of_no_use_do_not_take_the_others_along() -> None:
    odd = [
        {"kty": "EC", "crv": "P-256", "kid": "broken"},
        {"kty": "XYZ"},
        {"kty": "EC", "crv": ["P-256"], "x": "x", "y": "y"},
        {"kty": "EC", "crv": {}},
        {"kty": ["RSA"], "crv": "P-256"},
        {"kty": "RSA", "n": 5, "e": ["AQAB"]},
        {"kty": "RSA", "use": "enc", **{k: v for k, v in RSA.items() if k in ("n", "e")}},
    ]
    assert [key.id for key in key_set(*odd, EC)] == ["k2"]
    assert [key.algorithms[0] for key in read_key_set(KEY_SET)] == ["RS256", "ES256"]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"keys":5}', b'{"keys":[5]}', b'{"keys":[]}'])
def test_what_is_no_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(SaslError, match="JSON Web Key Set"):
        read_key_set(text)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    signed_tokens._library.cache_clear()
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(SaslError, match=r"pip install 'kohort\[security\]'"):
        read_key_set(KEY_SET)
    signed_tokens._library.cache_clear()


def test_of_a_private_key_in_the_set_the_public_part_is_used() -> None:
    maker: Any = jwt.get_algorithm_by_name("RS256")
    keys = key_set({**maker.to_jwk(KEY, as_dict=True), "kid": "r"})
    tokens = SignedTokens(lambda: keys, lambda: None)
    assert tokens.check(signed(), NOW).name == "alice"
    with pytest.raises(TokenError):
        tokens.check(signed(key=rsa.generate_private_key(65537, 2048)), NOW)
