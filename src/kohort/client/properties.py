"""The settings of a client under upstream's names, as other clients take them in a dict.

Only settings that Kohort follows are accepted: a client that was told to use TLS must not silently
use plain text.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kohort.client.settings import NO_SECURITY, hint_for

SERVERS = "bootstrap.servers"
CLIENT_ID = "client.id"
TIMEOUT = "default.api.timeout.ms"
SETUP = "socket.connection.setup.timeout.ms"
PROTOCOL = "security.protocol"


class Properties(NamedTuple):
    """What a dict of settings says; None for what it leaves out."""

    servers: str | list[str] | None = None
    client_id: str | None = None
    timeout_s: float | None = None
    setup_s: float | None = None


def read_properties(given: Mapping[str, Any]) -> Properties:
    """The settings of a dict such as `{"bootstrap.servers": "127.0.0.1:9092"}`.

    Raises ValueError, which names all unknown settings, or the one with a value that Kohort cannot
    follow.
    """
    unknown = [name for name in given if name not in _READERS]
    if unknown:
        hint = hint_for(unknown[0], [name.replace(".", "_") for name in _READERS])
        raise ValueError(
            f"unknown setting{'s' * (len(unknown) > 1)} {', '.join(map(repr, unknown))}, "
            f"expected one of {', '.join(_READERS)}{hint}"
        )
    found = {name: _READERS[name](name, value) for name, value in given.items()}
    names = (SERVERS, CLIENT_ID, TIMEOUT, SETUP)
    return Properties(*(found.get(name) for name in names))


def _servers(name: str, value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    raise ValueError(f"{name} is {value!r}, expected host:port, or several with commas")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, expected a text")  # noqa: TRY004  (a value, as all)
    return value


def _seconds(name: str, value: Any) -> float:
    try:
        milliseconds = float(value)
    except (TypeError, ValueError):
        milliseconds = 0.0
    if not 0 < milliseconds < 2**31:
        raise ValueError(f"{name} is {value!r}, expected milliseconds from 1 to 2147483647")
    return milliseconds / 1000


def _plain_text(name: str, value: Any) -> None:
    if str(value).upper() != "PLAINTEXT":
        raise ValueError(f"{name} is {value!r}, expected PLAINTEXT: {NO_SECURITY}")


_READERS: dict[str, Callable[[str, Any], Any]] = {
    SERVERS: _servers,
    CLIENT_ID: _text,
    TIMEOUT: _seconds,
    SETUP: _seconds,
    PROTOCOL: _plain_text,
}
