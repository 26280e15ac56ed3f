"""Addresses in settings: which listener is for clients, and where it is."""

from collections.abc import Iterable
from typing import Protocol

from kohort.config.settings import ConfigError

PORT_MAX = 65_535
PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (what upstream means by no host; `serve` warns)


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


def listener_text(host: str, port: int) -> str:
    """A listener as `listeners` names it."""
    return f"PLAINTEXT://[{host}]:{port}" if ":" in host else f"PLAINTEXT://{host}:{port}"


def check_listeners(config: Listeners) -> None:
    """Raises ConfigError for a listener, or for an address to tell clients, that asks for more than
    plain text. It would not be opened, and another one be open to everybody.
    """
    protocols = _protocols(config)
    for setting, entries in (
        ("listeners", config.listeners),
        ("advertised.listeners", config.advertised_listeners),
    ):
        for entry in entries:
            name = entry.partition("://")[0].upper()
            protocol = protocols.get(name, name)
            if not _is_controllers(name, config) and protocol != PLAINTEXT:
                by = " by listener.security.protocol.map" if name in protocols else ""
                what = f"which is {protocol}{by}: Kohort has plain text only, "
                raise ConfigError(
                    f"{setting} has {entry!r}, {what if '://' in entry else ''}"
                    "expected PLAINTEXT://HOST:PORT"
                )


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
    return found


def _is_controllers(name: str, config: Listeners) -> bool:
    return name.upper() in (other.upper() for other in config.controller_listener_names)


def listening_address(config: Listeners) -> tuple[str, int]:
    """The one of `listeners` that is not a controller's. Raises ConfigError when there is none or a
    second one, which nobody would serve, or when it is none of plain text.
    """
    check_listeners(config)
    listener = _only_one("listeners", config.listeners, config)
    if listener is None:
        raise ConfigError(f"listeners is {','.join(config.listeners)!r}, expected one for clients")
    return _address_in("listeners", listener, no_host=ANY_ADDRESS)


def advertised_address(config: Listeners) -> tuple[str, int] | None:
    """The address to tell clients: the one of `advertised.listeners` that is not a controller's.
    None: where the broker listens. Raises ConfigError, as for a second one.
    """
    check_listeners(config)
    listener = _only_one("advertised.listeners", config.advertised_listeners, config)
    return None if listener is None else _address_in("advertised.listeners", listener)


def _only_one(setting: str, entries: Iterable[str], config: Listeners) -> str | None:
    """The entry for clients. Raises ConfigError for a second one: it must not be dropped in
    silence.
    """
    ours = [entry for entry in entries if not _is_controllers(entry.partition("://")[0], config)]
    if len(ours) > 1:
        raise ConfigError(
            f"{setting} has {ours[1]!r} beside {ours[0]!r}: Kohort has one listener for clients,"
            " expected one"
        )
    return ours[0] if ours else None


def _address_in(setting: str, listener: str, no_host: str = "") -> tuple[str, int]:
    _, found, address = listener.partition("://")
    if not found:
        raise ConfigError(f"{setting} has {listener!r}, expected PLAINTEXT://HOST:PORT")
    try:
        return host_and_port(f"{no_host}{address}" if address[:1] == ":" else address)
    except ConfigError as error:
        raise ConfigError(f"{setting} has {listener!r}: {error}") from None
