"""Addresses in settings: which listener is for clients, and where it is."""

from kohort.config.broker import BrokerConfig
from kohort.config.settings import ConfigError

PORT_MAX = 65_535
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (what upstream means by no host; `serve` warns)


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


def listening_address(config: BrokerConfig) -> tuple[str, int]:
    """The first of `listeners` that is not a controller's. Raises ConfigError when there is none,
    or when it needs more than plain text.
    """
    protocols = dict(entry.split(":", 1) for entry in config.listener_security_protocol_map)
    for listener in config.listeners:
        name, found, address = listener.partition("://")
        if name in config.controller_listener_names:
            continue
        if not found or protocols.get(name, name) != "PLAINTEXT":
            raise ConfigError(f"listeners has {listener!r}, expected PLAINTEXT://HOST:PORT")
        try:
            return host_and_port(f"{ANY_ADDRESS}{address}" if address[:1] == ":" else address)
        except ConfigError as error:
            raise ConfigError(f"listeners has {listener!r}: {error}") from None
    raise ConfigError(f"listeners is {','.join(config.listeners)!r}, expected one for clients")


def advertised_address(config: BrokerConfig) -> tuple[str, int] | None:
    """The address to tell clients: the first of `advertised.listeners` that is not a controller's.
    None: where the broker listens. Raises ConfigError.
    """
    for listener in config.advertised_listeners:
        name, found, address = listener.partition("://")
        if name in config.controller_listener_names:
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
