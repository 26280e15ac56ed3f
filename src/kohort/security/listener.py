# SPDX-License-Identifier: Apache-2.0
"""What a listener of TLS shows its clients and asks of them, read from its settings (`ssl.*`)."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kohort.config import BROKER_SETTINGS, ConfigError
from kohort.config.listeners import Listener
from kohort.security.principals import MappingRuleError, PrincipalMapping
from kohort.security.settings import Store


class TlsConfig(NamedTuple):
    """The settings of one listener. `key` is the key where it is not in `identity`; without `trust`
    the authorities of the system sign the certificates of clients.
    """

    listener: Listener
    identity: Store
    key: Store | None
    trust: Store | None
    client_auth: str
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    mapping: PrincipalMapping
    allow_dn_changes: bool
    allow_san_changes: bool


def tls_config(listener: Listener, texts: Mapping[str, str]) -> TlsConfig:
    """Read the settings of a listener, without its prefix. Raises ConfigError."""

    def value(name: str) -> Any:
        return BROKER_SETTINGS[name].parse_or_default(texts.get(name))

    try:
        identity, key = _keystore(value)
        trust = _truststore(value)
        mapping = PrincipalMapping(value("ssl.principal.mapping.rules"))
    except (ConfigError, MappingRuleError) as error:
        raise ConfigError(f"listener {listener.name} ({listener.protocol}): {error}") from None
    return TlsConfig(
        listener,
        identity,
        key,
        trust,
        value("ssl.client.auth"),
        value("ssl.enabled.protocols"),
        value("ssl.cipher.suites"),
        mapping,
        value("ssl.allow.dn.changes"),
        value("ssl.allow.san.changes"),
    )


def _keystore(value: Callable[[str], Any]) -> tuple[Store, Store | None]:
    """The certificates, and the key where it is beside them."""
    location, chain, key = (
        value(name)
        for name in (
            "ssl.keystore.location",
            "ssl.keystore.certificate.chain",
            "ssl.keystore.key",
        )
    )
    password, key_password = value("ssl.keystore.password"), value("ssl.key.password")
    if location and (chain or key):
        raise ConfigError("ssl.keystore.location stands beside texts of it, expected one way")
    if bool(chain) != bool(key):
        missing = "ssl.keystore.key" if chain else "ssl.keystore.certificate.chain"
        raise ConfigError(f"{missing} is missing, expected it beside the other text")
    if chain:
        return Store(text=chain), Store(text=key, password=key_password)
    if not location:
        raise ConfigError(
            "it has no certificate to show, expected ssl.keystore.location, or ssl.keystore.key and"
            " ssl.keystore.certificate.chain"
        )
    kind = value("ssl.keystore.type")
    if kind == "PEM" and password:
        raise ConfigError("ssl.keystore.password is set for a PEM, expected ssl.key.password alone")
    return Store(type=kind, path=location, password=password or key_password), None


def _truststore(value: Callable[[str], Any]) -> Store | None:
    location, text = value("ssl.truststore.location"), value("ssl.truststore.certificates")
    kind, password = value("ssl.truststore.type"), value("ssl.truststore.password")
    if location and text:
        raise ConfigError("ssl.truststore.location stands beside a text of it, expected one way")
    if kind == "PEM" and password:
        raise ConfigError("ssl.truststore.password is set for a PEM, which has none, expected none")
    if text:
        return Store(text=text)
    return Store(type=kind, path=location, password=password) if location else None
