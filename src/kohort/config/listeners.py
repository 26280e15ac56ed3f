"""Addresses in settings: which listener is for clients, and where it is."""

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
                raise ConfigError(
                    f"{setting} has {entry!r}, which is {protocol}{by}: Kohort has plain text "
                    f"only, expected PLAINTEXT://HOST:PORT"
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
    """The first of `listeners` that is not a controller's. Raises ConfigError when there is none,
    or when it is none of plain text.
    """
    check_listeners(config)
    for listener in config.listeners:
        name, found, address = listener.partition("://")
        if _is_controllers(name, config):
            continue
        if not found:
            raise ConfigError(f"listeners has {listener!r}, expected PLAINTEXT://HOST:PORT")
        try:
            return host_and_port(f"{ANY_ADDRESS}{address}" if address[:1] == ":" else address)
        except ConfigError as error:
            raise ConfigError(f"listeners has {listener!r}: {error}") from None
    raise ConfigError(f"listeners is {','.join(config.listeners)!r}, expected one for clients")


def advertised_address(config: Listeners) -> tuple[str, int] | None:
    """The address to tell clients: the first of `advertised.listeners` that is not a controller's.
    None: where the broker listens. Raises ConfigError.
    """
    check_listeners(config)
    for listener in config.advertised_listeners:
        name, found, address = listener.partition("://")
        if _is_controllers(name, config):
            continue
        if not found:
            raise ConfigError(
                f"advertised.listeners has {listener!r}, expected PLAINTEXT://HOST:PORT"
            )
        try:
            return host_and_port(address)
        except ConfigError as error:
            raise ConfigError(f"advertised.listeners has {listener!r}: {error}") from None
    return None
