# SPDX-License-Identifier: Apache-2.0
"""The settings of clients: one rule for their names, checked values, one kind of error.

A setting is named as upstream names it, with underscores for the dots: `session_timeout_ms` is
`session.timeout.ms`. Clients take both, keywords and a dict. A setting that Kohort does not follow
is refused: a client that was told to trust one authority must not silently trust others.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from ssl import SSLContext
from typing import Any, NamedTuple, TypedDict, TypeVar

from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.network.credentials import check_security
from kohort.client.security_settings import is_about_security, security_of
from kohort.escaping import visible
from kohort.security.settings import Security

DEFAULT_SERVER = "127.0.0.1:9092"
INT32_MAX = 2**31 - 1
TEXT_BYTES_MAX = 2**15 - 1  # older versions write two bytes of length
_SHOWN_MAX = 100
_DIGITS = re.compile(r"-?[0-9]{1,19}")  # those of ASCII: others are read as numbers by no broker

SomeSettings = TypeVar("SomeSettings")


class SecurityOptions(TypedDict, total=False):
    """How a client speaks with brokers, and who it says it is: a `Security`, or the keywords of
    kafka-python and aiokafka. The dict of settings takes those of Java and of librdkafka, too.
    """

    security: Security
    security_protocol: str
    ssl_context: SSLContext
    ssl_check_hostname: bool
    ssl_cafile: str
    ssl_certfile: str
    ssl_keyfile: str
    ssl_password: str
    sasl_mechanism: str
    sasl_plain_username: str
    sasl_plain_password: str
    sasl_oauth_token_provider: Any


Check = Callable[[str, Any], Any]
"""From the name and what was given to the value; raises ValueError."""

_GIVEN = "_given"
# Of other clients, and what is in their place.
_ELSEWHERE = {
    "retries": "delivery_timeout_ms bounds how long something is sent again",
    "api_version": "versions are agreed on with each broker",
    "loop": "a client belongs to the event loop in which it is started",
    "consumer_timeout_ms": "getmany(timeout_ms=) has it",
    "topics": "topics are given without a name, as Consumer('orders', 'payments')",
    "topic": "topics are given without a name, as Consumer('orders', 'payments')",
}
_FLAGS = {"true": True, "false": False}


def checked_field(default: Any, check: Check) -> Any:
    """A field with a check of its own."""
    return field(default=default, metadata={"check": check})


def whole(default: int, low: int = 0, high: int = INT32_MAX) -> Any:
    """A field that is a whole number from `low` to `high`; digits in a text will do."""

    def check(name: str, value: Any) -> int:
        number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            expected = f"a whole number from {low} to {high}"
            raise ValueError(f"{name} is {short_repr(value)}, expected {expected}")
        return int(number)

    return checked_field(default, check)


def flag(*, default: bool) -> Any:
    """A field that is true or false; these words will do, too."""

    def check(name: str, value: Any) -> bool:
        found = _FLAGS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(found, bool):
            raise ValueError(f"{name} is {short_repr(value)}, expected true or false")  # noqa: TRY004  (a value, as all)
        return found

    return checked_field(default, check)


def choice(default: str, options: Iterable[str]) -> Any:
    """A field that is one of these words."""
    words = tuple(options)

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"{name} is {short_repr(value)}, expected one of {', '.join(words)}")
        return str(value)

    return checked_field(default, check)


def text(default: str | None = None) -> Any:
    """A field that is a text which is not empty, or None where that is the default."""

    def check(name: str, value: Any) -> str | None:
        return None if value is None and default is None else check_text(name, value)

    return checked_field(default, check)


def check_text(name: str, value: Any) -> str:
    """A text that can be sent and is not empty. Raises ValueError."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is {short_repr(value)}, expected a text that is not empty")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {short_repr(value)}, expected text in UTF-8") from None
    if size > TEXT_BYTES_MAX:
        raise ValueError(
            f"{name} is a text of {size} bytes in UTF-8, expected {TEXT_BYTES_MAX} at most"
        )
    return value


def check_time(name: str, value: Any, unit: str, *, least: int = 0) -> float:
    """An argument that is a time in this unit: nan would never end, and inf is no deadline. Raises
    TypeError, and ValueError for one that is out of bounds; `least` 1 asks for more than 0.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is {short_repr(value)}, expected a number of {unit}")
    if not 0 <= value <= INT32_MAX or (least and not value):
        expected = f"more than 0 {unit}" if least else f"0 {unit} or more"
        raise ValueError(f"{name} is {short_repr(value)}, expected {expected}, {INT32_MAX} at most")
    return value


def short_repr(value: Any) -> str:
    """A value in an error, in one short line whatever it is."""
    try:
        found = visible(repr(value))
    except Exception:  # noqa: BLE001  (each class fails in its own way)
        return f"a value of type {type(value).__name__}"
    return found if len(found) <= _SHOWN_MAX else f"{found[: _SHOWN_MAX - 3]}..."


def function() -> Any:
    """A field that is a callable or None."""

    def check(name: str, value: Any) -> Any:
        if value is not None and not callable(value):
            raise ValueError(f"{name} is {short_repr(value)}, expected a callable")
        return value

    return checked_field(None, check)


def settings_of(
    cls: type[SomeSettings], given: Mapping[str, Any], keywords: Mapping[str, Any]
) -> SomeSettings:
    """Settings of this class from a dict with upstream's names and from keywords.

    Raises ValueError for a name that is unknown or given twice, and for a value out of bounds.
    Defaults are checked, too: what a class says of itself holds.
    """
    known: dict[str, Field[Any]] = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    found = dict(keywords)
    spelled = {name: name for name in keywords}
    for dotted, value in given.items():
        if not isinstance(dotted, str):
            raise ValueError(f"settings have the name {short_repr(dotted)}, expected a text")  # noqa: TRY004  (as all)
        name = dotted.replace(".", "_")
        if name in keywords:
            raise ValueError(
                f"{dotted} is given twice, as {short_repr(keywords[name])} and {short_repr(value)}"
            )
        found[name] = value
        spelled[name] = dotted
    for name in found:
        if name not in known:
            raise ValueError(
                f"unknown setting {short_repr(spelled[name])}{hint_for(spelled[name], known)}"
            )
    values = {}
    for name, known_field in known.items():
        value = found.get(name, known_field.default)
        if value is MISSING:
            raise ValueError(f"{name} is missing")
        check: Check | None = known_field.metadata.get("check")
        values[name] = value if check is None else check(spelled.get(name, name), value)
    made = cls(**values)
    # An attribute of its own, as this is no setting: the class is frozen, and compares its fields.
    object.__setattr__(made, _GIVEN, frozenset(name for name in found if found[name] is not None))
    return made


def is_given(settings: object, name: str) -> bool:
    """Whether somebody has given this setting, be it as the default. None gives nothing."""
    return name in getattr(settings, _GIVEN, ())


class ClientSettings(NamedTuple):
    """What a client is made with, beside its own settings."""

    addresses: list[Address]
    security: Security

    def cluster(self, client_id: str, setup_timeout_ms: int) -> Cluster:
        """The cluster that these name."""
        setup_s = setup_timeout_ms / 1000
        return Cluster(self.addresses, client_id=client_id, setup_s=setup_s, security=self.security)


def client_settings(
    cls: type[SomeSettings],
    bootstrap_servers: str | Iterable[str] | Mapping[str, Any],
    keywords: Mapping[str, Any],
) -> tuple[SomeSettings, ClientSettings]:
    """What a client is made with: servers as `addresses_of` takes them, or a dict of settings under
    upstream's names with the servers among them, and keywords. Raises as `addresses_of`,
    `settings_of` and `security_of` do.
    """
    given: Mapping[str, Any] = {}
    servers: Any = bootstrap_servers
    if isinstance(bootstrap_servers, Mapping):
        given = dict(bootstrap_servers)
        servers = given.pop("bootstrap.servers", DEFAULT_SERVER)
    secure = {name: value for name, value in given.items() if _is_secure(name)}
    secure_keywords = {name: value for name, value in keywords.items() if _is_secure(name)}
    settings = settings_of(
        cls,
        {name: value for name, value in given.items() if name not in secure},
        {name: value for name, value in keywords.items() if name not in secure_keywords},
    )
    security = _security(secure, secure_keywords)
    return settings, ClientSettings(addresses_of(servers), security)


def _is_secure(name: Any) -> bool:
    return isinstance(name, str) and (name == "security" or is_about_security(name))


def _security(given: Mapping[str, Any], keywords: Mapping[str, Any]) -> Security:
    """What both say together. No value is shown: it may be a password."""
    spelled = {name.replace(".", "_"): name for name in given}
    for name in keywords:
        if name in spelled:
            raise ValueError(f"{spelled[name]} is given twice, in the dict and as {name}")
    found = {**given, **keywords}
    whole = found.pop("security", None)
    if whole is None:
        return security_of(found)
    if not isinstance(whole, Security):
        raise ValueError(f"security is a value of type {type(whole).__name__}, expected a Security")  # noqa: TRY004  (a value, as all)
    if found:
        raise ValueError(f"security is given, and {next(iter(found))}: expected one of them")
    check_security(whole)
    return whole


def addresses_of(servers: str | Iterable[str]) -> list[Address]:
    """Bootstrap servers: `host:port`, several with commas between them, or a list of such.

    Raises ValueError, and TypeError for what is neither.
    """
    texts: Any = servers.split(",") if isinstance(servers, str) else servers
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        raise TypeError(
            f"bootstrap_servers is {short_repr(servers)}, expected a text or a list of texts"
        )
    given = list(texts)
    for text in given:
        if not isinstance(text, str):
            raise TypeError(f"bootstrap_servers has {short_repr(text)}, expected texts")
    return [Address.of(text.strip()) for text in given if text.strip()]


def hint_for(name: str, known: Iterable[str]) -> str:
    """What to do about a setting that is unknown: the end of a sentence, "" where nothing helps.
    `name` is as it was given, and `known` has underscores.
    """
    plain = name.replace(".", "_")
    if plain in _ELSEWHERE:
        return f": {_ELSEWHERE[plain]}"
    from difflib import get_close_matches  # noqa: PLC0415  (a hint is seldom)

    near = get_close_matches(plain, [*known, "bootstrap_servers"], n=1)
    if not near:
        return ""
    suggestion = near[0].replace("_", ".") if "." in name else near[0]
    return f", did you mean {suggestion!r}?"
