# SPDX-License-Identifier: Apache-2.0
"""The three parts of a token (RFC 7519), and what it claims."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import MsgspecError
from msgspec.json import decode

from kohort.security.oauthbearer import TokenError
from kohort.security.sasl import LONGEST_NAME
from kohort.terms import Millis

FARTHEST_SECONDS = 1 << 40
"""From 1970, 35,000 years: milliseconds of more have no room in an answer."""


class Token(NamedTuple):
    """A token that nobody has checked. `signature` is still in base64."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signature: str


def read_token(text: str) -> Token:
    """Take a token apart. Raises TokenError, whose text has nothing of the token."""
    parts = text.split(".")
    if len(parts) != 3:
        raise TokenError(f"a token of {len(parts)} parts, expected header, claims and signature")
    return Token(_object("header", parts[0]), _object("claims", parts[1]), parts[2])


def _object(part: str, text: str) -> Mapping[str, Any]:
    try:
        value = decode(b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (NotBase64, MsgspecError, RecursionError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise TokenError(f"the {part} of the token is no JSON object in base64")
    return value


def time_of(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is a time, in seconds since 1970; None where it is not there."""
    value = claims.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not -FARTHEST_SECONDS <= value <= FARTHEST_SECONDS:
        raise TokenError(f"claim `{name}` is no time, expected seconds since 1970")
    return float(value)


def ending_of(claims: Mapping[str, Any]) -> Millis:
    """When the token ends."""
    ends = time_of(claims, "exp")
    if ends is None:
        raise TokenError("claim `exp` is missing: nobody knows when the token ends")
    return Millis(round(ends * 1000))


def name_of(claims: Mapping[str, Any], name: str) -> str:
    """A claim that names the user. Each connection keeps it, so it has a bound."""
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise TokenError(f"claim `{name}` is missing or no text, expected one that is not empty")
    size = len(value.encode())
    if size > LONGEST_NAME:
        raise TokenError(f"claim `{name}` has {size} bytes, expected at most {LONGEST_NAME}")
    return value


def texts_of(claims: Mapping[str, Any], name: str) -> list[str]:
    """A claim that is a text or a list of texts; an empty list where it is not there."""
    value = claims.get(name)
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise TokenError(f"claim `{name}` is no text and no list of texts")
    return values
