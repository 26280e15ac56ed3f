# SPDX-License-Identifier: Apache-2.0
"""TLS and SASL of the listeners that have them. A broker of plain text does not import this."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kohort.config import BrokerConfig
from kohort.config.listeners import Listener
from kohort.runtime.observers import Observer
from kohort.server.catalog import Catalog
from kohort.server.cluster import Cluster
from kohort.server.metrics.meters import Authentications
from kohort.server.network.sockets import Authenticate, ClientProtocol, Host
from kohort.server.network.tls_sockets import TlsProtocol
from kohort.server.sasl.authentication import Authentication
from kohort.server.sasl.listeners import check_sasl, sasl_listeners
from kohort.server.sasl.users import ScramUsers
from kohort.server.tls_listener import Certificates, check_certificates
from kohort.storage.files import system


class SecureListeners:
    """What all listeners of a broker have of it, by the numbers of these."""

    def __init__(
        self,
        config: BrokerConfig,
        listeners: Sequence[Listener],
        observe: Observer,
        catalog: Callable[[], Catalog],
        new_id: Callable[[], bytes],
        counters: Authentications,
        data_dir: Path | None,
    ) -> None:
        """Raises ConfigError for what is wrong, or cannot be read."""
        self._observe = observe
        self._given = config.prefixed
        self.certificates = Certificates(config, listeners, observe)
        if _is_new(data_dir):
            self.certificates.open(config)
        users = ScramUsers(catalog, new_id() + new_id())
        self._sasl = sasl_listeners(config, listeners, users.look_up, users.decoy, new_id)
        self._key_sources = [
            settings.key_source for settings in self._sasl.values() if settings.key_source
        ]
        for number, settings in self._sasl.items():
            settings.listener.counters = counters
            for warning in settings.warnings:
                observe.warning(f"listener {listeners[number].name}: {warning}")

    async def start(self) -> None:
        """Fetch what is elsewhere. Raises ConfigError where it is not there."""
        await asyncio.gather(*(source.start(self._observe) for source in self._key_sources))

    def stop(self) -> None:
        """Fetch nothing more."""
        for source in self._key_sources:
            source.stop()

    def adopt(self, cluster: Cluster) -> None:
        """Show what the cluster has learned in an earlier life above what the file says.
        Raises ConfigError where neither can be shown.
        """
        if not self.certificates.of or cluster.config.prefixed != self._given:
            self.certificates.open(cluster.config)
        cluster.certificates = self.certificates

    def protocol(self, host: Host, node: int, listener: int) -> ClientProtocol:
        """A new connection to one of the listeners of a node."""
        tls = self.certificates.of.get(listener)
        if tls is None:
            return ClientProtocol(host, node, listener)
        return TlsProtocol(host, node, listener, tls)

    def authenticate(self, listener: int) -> Authenticate | None:
        """What takes over a new connection until its client is known; None without SASL."""
        settings = self._sasl.get(listener)
        return None if settings is None else partial(Authentication, settings.listener)


def check_security(
    config: BrokerConfig, listeners: Sequence[Listener], data_dir: Path | None
) -> None:
    """Raises ConfigError where `SecureListeners` would."""
    check_certificates(config, listeners, read_stores=_is_new(data_dir))
    check_sasl(config, listeners)


def _is_new(data_dir: Path | None) -> bool:
    """Whether nothing stands above the file: a catalog may have settings of an earlier life, and
    the stores that the file names may be gone since.
    """
    if data_dir is None:
        return True
    try:
        system.stat(str(data_dir))
    except OSError:
        return True
    return False
