# SPDX-License-Identifier: Apache-2.0
"""The certificate that a listener of TLS shows, and the principals of its clients' certificates.

The broker reads stores again while it runs. Open connections keep what they have begun with.
"""

from collections.abc import Iterable, Sequence

from kohort.config import BrokerConfig, ConfigError, listener_settings
from kohort.config.listeners import Listener
from kohort.errors import KohortError
from kohort.runtime.observers import Observer
from kohort.security.certificates import Certificate, read_certificate
from kohort.security.listener import TlsConfig, tls_config
from kohort.security.sasl import LONGEST_NAME
from kohort.security.stores import ServerContext, StoreError, expired_text, server_context


class TlsListener:
    """`context` is for the next connection."""

    def __init__(self, config: TlsConfig, observe: Observer) -> None:
        """Raises ConfigError for a store that cannot be used."""
        self.name = config.listener.name
        self._observe = observe
        self._use(config, _load(config))

    def reload(self, config: TlsConfig) -> None:
        """Show from now on what these settings say. Raises ConfigError, and changes nothing, for
        what cannot be used or is of another subject.
        """
        context = _load(config)
        certificate = context.certificate
        _check_change(config, self.context.certificate, certificate)
        self._use(config, context)
        self._observe.info(
            f"listener {self.name} shows the certificate of {certificate.subject}, valid until"
            f" {certificate.not_after:%Y-%m-%d %H:%M:%S} UTC, from now on"
        )

    def check(self, config: TlsConfig) -> None:
        """Raises ConfigError as `reload` would."""
        _check_change(config, self.context.certificate, _load(config).certificate)

    def _use(self, config: TlsConfig, context: ServerContext) -> None:
        self.context = context
        self._mapping = config.mapping
        self._is_by_certificate = not config.listener.uses_sasl and config.client_auth != "none"
        expired = expired_text(config.identity, context.certificate)
        if expired is not None:
            self._observe.warning(f"listener {self.name}: {expired}")

    def principal(self, certificate: bytes | None) -> str | None:
        """Whom a client's certificate proves; None where nobody has to be. Raises KohortError for
        one that proves nobody.
        """
        if certificate is None or not self._is_by_certificate:
            return None
        subject = read_certificate(certificate).subject
        if not subject:
            raise KohortError("the client's certificate has no subject, expected one")
        name = self._mapping.principal(subject)
        size = len(name.encode())
        if size > LONGEST_NAME:  # it is kept with all that is remembered of its client
            raise KohortError(
                f"the client's certificate stands for a name of {size} bytes, expected at most"
                f" {LONGEST_NAME}"
            )
        return f"User:{name}"


class Certificates:
    """The certificates of all listeners that have some, by the numbers of these in `listeners`."""

    def __init__(
        self, config: BrokerConfig, listeners: Sequence[Listener], observe: Observer
    ) -> None:
        """Raises ConfigError for settings that contradict one another. `open` reads the stores."""
        self._observe = observe
        self._file = config
        self._listeners = [
            (number, listener) for number, listener in enumerate(listeners) if listener.uses_tls
        ]
        for _, listener in self._listeners:
            _config_of(config, listener)
        self.of: dict[int, TlsListener] = {}

    def open(self, config: BrokerConfig) -> None:
        """Show what these settings say; where they cannot be used, what those of the file say.
        Raises ConfigError where neither can be.
        """
        for number, listener in self._listeners:
            self.of[number] = self._opened(listener, config)

    def _opened(self, listener: Listener, config: BrokerConfig) -> TlsListener:
        if listener_settings(config, listener) != listener_settings(self._file, listener):
            try:
                return TlsListener(_config_of(config, listener), self._observe)
            except ConfigError as error:
                self._observe.warning(f"{error}; that of the file is shown instead")
        return TlsListener(_config_of(self._file, listener), self._observe)

    def check(self, config: BrokerConfig, names: Iterable[str]) -> None:
        """Raises ConfigError where these settings, some of which are new, cannot be used."""
        left = set(names)
        for number, listener in self._listeners:
            own = {name for name in left if name.startswith(listener.prefix)}
            left -= own
            if own:
                self.of[number].check(_config_of(config, listener))
        if left:
            raise ConfigError(
                f"{', '.join(sorted(left))}: no listener that speaks TLS has this name, expected"
                f" one of {', '.join(listener.name for _, listener in self._listeners) or '(none)'}"
            )

    def reload(self, config: BrokerConfig, names: Iterable[str] | None = None) -> None:
        """Read the stores of these settings again, or all. Where one cannot be used, the broker
        warns and the old certificate stays.
        """
        wanted = None if names is None else list(names)
        for number, listener in self._listeners:
            if wanted is None or any(name.startswith(listener.prefix) for name in wanted):
                try:
                    self.of[number].reload(_config_of(config, listener))
                except ConfigError as error:
                    self._observe.warning(f"{error}; the old certificate stays")


def _config_of(config: BrokerConfig, listener: Listener) -> TlsConfig:
    return tls_config(listener, listener_settings(config, listener))


def check_certificates(
    config: BrokerConfig, listeners: Sequence[Listener], *, read_stores: bool
) -> None:
    """Raises ConfigError where `Certificates` would, and where its `open` would."""
    for listener in listeners:
        if listener.uses_tls:
            own = _config_of(config, listener)
            if read_stores:
                _load(own)


def _load(config: TlsConfig) -> ServerContext:
    try:
        return server_context(
            config.identity,
            key=config.key,
            trust=config.trust,
            client_auth=config.client_auth,
            protocols=config.protocols,
            cipher_suites=config.cipher_suites,
        )
    except StoreError as error:
        raise ConfigError(f"listener {config.listener.name}: {error}") from None


def _check_change(config: TlsConfig, old: Certificate, new: Certificate) -> None:
    """Raises ConfigError for a certificate that has expired, or that clients would not know for
    that of this listener (upstream's SslFactory).
    """
    expired = expired_text(config.identity, new)
    if expired is not None:
        raise ConfigError(expired)
    store = "location" if config.identity.text is None else "certificate.chain"
    setting = f"{config.listener.prefix}ssl.keystore.{store}"
    if not config.allow_dn_changes and new.subject != old.subject:
        raise ConfigError(
            f"{setting} has a certificate of {new.subject!r}, expected {old.subject!r},"
            " as before, or ssl.allow.dn.changes=true"
        )
    missing = old.alternative_names - new.alternative_names
    if not config.allow_san_changes and missing:
        raise ConfigError(
            f"{setting} has a certificate that lacks {len(missing)} of the"
            f" {len(old.alternative_names)} alternative names that the old one has, expected all of"
            " them, or ssl.allow.san.changes=true"
        )
