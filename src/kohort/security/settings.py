# SPDX-License-Identifier: Apache-2.0
"""How a client proves who it is, and whom it trusts: one value, whatever dialect it came from."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from kohort.escaping import visible
from kohort.security.names import (
    MECHANISMS,
    PLAINTEXT,
    PROTOCOLS,
    SASL_PLAINTEXT,
    SASL_SSL,
    SSL,
)

TokenProvider = Callable[[], str | Awaitable[str]]
"""Gives a token for OAUTHBEARER, each time one is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Certificates or a key with its certificates: a file, or its text.

    `type` is PEM or PKCS12; JKS is PKCS12 as well, as in Java. A text is PEM. `password` opens the
    file or the key in it.
    """

    type: str = "PEM"
    path: str | None = None
    text: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raises TypeError for a value of another type."""
        _check_type(self, "type", (str,), "a text")
        for name in ("path", "text", "password"):
            _check_type(self, name, (str, type(None)), "a text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a client needs for one listener of a cluster. Secrets are in no `repr`.

    `context` is the caller's own, instead of `trust`, `identity` and `check_hostname`. `trust` has
    the authorities, those of the system where it is None. `identity` is the client's own key and
    certificate. `key` is the key where it is in a file of its own.

    For PLAIN and SCRAM there are `username` and `password`. For OAUTHBEARER there is `token`, or
    `token_endpoint` with client credentials (RFC 6749, 4.4).
    """

    protocol: str = PLAINTEXT
    context: SSLContext | None = field(default=None, repr=False)
    trust: Store | None = None
    identity: Store | None = None
    key: Store | None = None
    check_hostname: bool = True
    verify: bool = True
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: TokenProvider | None = field(default=None, repr=False)
    token_endpoint: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Raises TypeError for a value of another type, ValueError for an unknown word."""
        for names, types, expected in _FIELDS:
            for name in names:
                _check_type(self, name, types, expected)
        if self.protocol not in PROTOCOLS:
            raise _wrong(self, "protocol", f"one of {', '.join(PROTOCOLS)}")
        if self.mechanism is not None and self.mechanism not in MECHANISMS:
            raise _wrong(self, "mechanism", f"one of {', '.join(MECHANISMS)}")
        if self.token is not None and not callable(self.token):
            raise TypeError(f"token is of type {type(self.token).__name__}, expected a callable")

    @property
    def uses_tls(self) -> bool:
        """Whether bytes are encrypted."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates by SASL."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)


_NONE = type(None)
_TEXTS = ("username", "password", "token_endpoint", "client_id", "client_secret", "scope")
_FIELDS: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (("protocol",), (str,), f"one of {', '.join(PROTOCOLS)}"),
    (("mechanism",), (str, _NONE), f"one of {', '.join(MECHANISMS)}"),
    (("trust", "identity", "key"), (Store, _NONE), "a Store"),
    (("context",), (SSLContext, _NONE), "an ssl.SSLContext"),
    (("check_hostname", "verify"), (bool,), "True or False"),
    (_TEXTS, (str, _NONE), "a text"),
    (("extensions",), (Mapping,), "a mapping"),
)


def _check_type(owner: Store | Security, name: str, types: tuple[type, ...], expected: str) -> None:
    if not isinstance(getattr(owner, name), types):
        raise TypeError(_line(owner, name, expected))


def _wrong(owner: Store | Security, name: str, expected: str) -> ValueError:
    return ValueError(_line(owner, name, expected))


def _line(owner: Store | Security, name: str, expected: str) -> str:
    """What is wrong with a field, with its value where that is no secret."""
    value: Any = getattr(owner, name)
    if not owner.__dataclass_fields__[name].repr or not isinstance(value, str):
        return f"{name} is of type {type(value).__name__}, expected {expected}"
    has_key = "-----BEGIN" in value  # PEM, which may be a private key
    return f"{name} is {'a text' if has_key else visible(repr(value))}, expected {expected}"


NO_SECURITY = Security()
