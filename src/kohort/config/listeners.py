# SPDX-License-Identifier: Apache-2.0
"""Addresses in settings: which listeners there are for clients, and where they are."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kohort.config.settings import ConfigError
from kohort.security.names import PLAINTEXT, PROTOCOLS, SASL_PLAINTEXT, SASL_SSL, SSL

PORT_MAX = 65_535
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (what upstream means by no host; `serve` warns)
NO_ROUTES = (ANY_ADDRESS, "::")
PREFIX = "listener.name."


_OF_LISTENERS = (
    *("ssl.", "sasl.", "connections.max.reauth.ms", "connection.failed.authentication.delay.ms"),
    "principal.builder.class",
)


class Listener(NamedTuple):
    """A listener for clients: its name in capital letters, its security protocol, its address."""

    name: str
    protocol: str
    host: str
    port: int

    @property
    def uses_tls(self) -> bool:
        return self.protocol in (SSL, SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)

    @property
    def prefix(self) -> str:
        """What stands before the name of a setting that is for this listener alone."""
        return f"{PREFIX}{self.name.lower()}."


class Listeners(Protocol):
    """The settings of a broker that are about listeners."""

    @property
    def listeners(self) -> tuple[str, ...]: ...
    @property
    def advertised_listeners(self) -> tuple[str, ...]: ...
    @property
    def listener_security_protocol_map(self) -> tuple[str, ...]: ...
    @property
    def controller_listener_names(self) -> tuple[str, ...]: ...


def is_of_listeners(name: str) -> bool:
    """Whether a setting may be another one for each listener."""
    return name.startswith(_OF_LISTENERS) or name == "max.connections"


def host_and_port(text: str) -> tuple[str, int]:
    """`HOST:PORT`, an IPv6 host in brackets. Raises ConfigError."""
    host, found, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_number = port.isascii() and port.isdigit()
    if found and host and is_number and int(port) > PORT_MAX:
        raise ConfigError(f"{text!r} has port {port}, expected 0 to {PORT_MAX}")
    if not found or not host or not is_number:
        raise ConfigError(f"{text!r} is not an address, expected HOST:PORT")
    return host, int(port)


def listener_text(host: str, port: int, name: str = PLAINTEXT) -> str:
    """A listener as `listeners` names it."""
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"


def check_listeners(config: Listeners) -> None:
    """Raises ConfigError for settings of listeners that contradict one another."""
    client_listeners(config)
    advertised_addresses(config)


def client_listeners(config: Listeners) -> tuple[Listener, ...]:
    """Those of `listeners` that are not a controller's. Raises ConfigError where there is none, or
    one that cannot be opened beside the others.
    """
    protocols = _protocols(config)
    found: dict[str, Listener] = {}
    for entry in _of_clients(config.listeners, config):
        name, host, port = _parts("listeners", entry, no_host=ANY_ADDRESS)
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"listeners has {entry!r}, whose protocol is not known, expected {name}:PROTOCOL in"
                f" listener.security.protocol.map or one of the names {', '.join(PROTOCOLS)}"
            )
        listener = Listener(name, protocol, host, port)
        if name in found:
            raise ConfigError(f"listeners has the name {name} twice, expected each name once")
        for other in found.values():
            if port and port == other.port and (":" in host) == (":" in other.host):
                raise ConfigError(
                    f"listeners has port {port} for {other.name} and for {name}, expected a port"
                    " for each"
                )
        found[name] = listener
    if not found:
        raise ConfigError(f"listeners is {','.join(config.listeners)!r}, expected one for clients")
    return tuple(found.values())


def advertised_addresses(config: Listeners) -> dict[str, tuple[str, int]]:
    """The addresses to tell clients, by the name of the listener that is asked. A listener that is
    not there tells where it is. Raises ConfigError.
    """
    names = [listener.name for listener in client_listeners(config)]
    found: dict[str, tuple[str, int]] = {}
    for entry in _of_clients(config.advertised_listeners, config):
        name, host, port = _parts("advertised.listeners", entry)
        if name not in names:
            raise ConfigError(
                f"advertised.listeners has {entry!r}, which is none of listeners, expected one of"
                f" {', '.join(names)}"
            )
        if name in found:
            raise ConfigError(f"advertised.listeners has {name} twice, expected each name once")
        if host in NO_ROUTES:
            raise ConfigError(
                f"advertised.listeners has {entry!r}, which no client can reach, expected the"
                " address of this machine"
            )
        found[name] = host, port
    return found


def _protocols(config: Listeners) -> dict[str, str]:
    """The security protocol of each listener that is named. Raises ConfigError."""
    found = {}
    for entry in config.listener_security_protocol_map:
        name, _, protocol = entry.upper().partition(":")
        if not name or protocol not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map has {entry!r}, expected NAME:PROTOCOL, with one "
                f"of {', '.join(PROTOCOLS)}"
            )
        found[name] = protocol
    return dict(zip(PROTOCOLS, PROTOCOLS, strict=True)) | found


def _of_clients(entries: Iterable[str], config: Listeners) -> list[str]:
    controllers = [name.upper() for name in config.controller_listener_names]
    return [one for one in entries if one.partition("://")[0].upper() not in controllers]


def _parts(setting: str, entry: str, no_host: str = "") -> tuple[str, str, int]:
    name, found, address = entry.partition("://")
    if not found or not name:
        raise ConfigError(f"{setting} has {entry!r}, expected NAME://HOST:PORT")
    try:
        host, port = host_and_port(f"{no_host}{address}" if address[:1] == ":" else address)
    except ConfigError as error:
        raise ConfigError(f"{setting} has {entry!r}: {error}") from None
    return name.upper(), host, port
