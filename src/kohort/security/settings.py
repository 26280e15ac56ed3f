"""How a client proves who it is, and whom it trusts: one value, whatever dialect it came from."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from ssl import SSLContext

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

TokenProvider = Callable[[], str | Awaitable[str]]
"""Gives a token for OAUTHBEARER, each time one is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Certificates or a key with its certificates: a file, or its text.

    `type` is PEM or PKCS12. A text is PEM. `password` opens the file or the key in it.
    """

    type: str = "PEM"
    path: str | None = None
    text: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


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

    @property
    def uses_tls(self) -> bool:
        """Whether bytes are encrypted."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates by SASL."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)


NO_SECURITY = Security()
