"""Settings of clients: names, bounds and errors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kohort.client.address import Address
from kohort.client.settings import (
    DEFAULT_SERVER,
    addresses_of,
    checked,
    choice,
    flag,
    function,
    plain_text,
    settings_of,
    taken,
    text,
    whole,
)


def _even(name: str, value: int) -> int:
    if value % 2:
        raise ValueError(f"{name} is {value}, expected an even number")
    return value


@dataclass(frozen=True, kw_only=True)
class Some:
    session_timeout_ms: int = whole(45_000, 1)
    enable_auto_commit: bool = flag(default=True)
    isolation_level: str = choice("read_uncommitted", ("read_uncommitted", "read_committed"))
    group_id: str | None = text()
    client_id: str = text("kohort")
    on_loss: Callable[..., Any] | None = function()  # noqa: RUF009  (a field)
    security_protocol: str = plain_text()
    even: int = checked(2, _even)


def test_defaults_hold_and_both_spellings_are_understood() -> None:
    assert settings_of(Some, {}, {}) == Some()
    given = settings_of(Some, {"session.timeout.ms": "9"}, {"enable_auto_commit": False})
    assert given == Some(session_timeout_ms=9, enable_auto_commit=False)
    assert settings_of(Some, {"enable.auto.commit": "FALSE"}, {}).enable_auto_commit is False
    assert settings_of(Some, {"security.protocol": "plaintext"}, {}) == Some()


@pytest.mark.parametrize(
    ("given", "keywords", "refusal"),
    [
        ({}, {"sesion_timeout_ms": 1}, "unknown setting 'sesion_timeout_ms', did you mean"),
        ({"sesion.timeout.ms": 1}, {}, "'sesion.timeout.ms', did you mean 'session.timeout.ms'"),
        ({}, {"bootstrap_server": "x"}, "'bootstrap_server', did you mean 'bootstrap_servers'"),
        ({"bootstrap.server": "x"}, {}, "'bootstrap.server', did you mean 'bootstrap.servers'"),
        ({"ssl.ca.location": "x"}, {}, "'ssl.ca.location': Kohort speaks no TLS and no SASL yet"),
        ({}, {"sasl_mechanism": "PLAIN"}, "'sasl_mechanism': Kohort speaks no TLS and no SASL"),
        ({}, {"sasl_plain_password": "x"}, "'sasl_plain_password': Kohort speaks no TLS"),
        ({}, {"ssl_context": None}, "'ssl_context': Kohort speaks no TLS"),
        ({}, {"retries": 3}, "'retries': delivery_timeout_ms bounds"),
        ({}, {"topics": ["a"]}, "'topics': topics are given without a name"),
        ({}, {"quite_another_thing": 3}, "unknown setting 'quite_another_thing'$"),
        ({"group.id": "a"}, {"group_id": "b"}, "group.id is given twice, as 'b' and 'a'"),
        ({}, {"session_timeout_ms": 0}, "session_timeout_ms is 0, expected a whole number from 1"),
        ({}, {"session_timeout_ms": True}, "session_timeout_ms is True, expected a whole number"),
        ({}, {"session_timeout_ms": "x"}, "session_timeout_ms is 'x', expected a whole number"),
        ({}, {"session_timeout_ms": 2**31}, "from 1 to 2147483647"),
        ({"enable.auto.commit": 1}, {}, "enable.auto.commit is 1, expected true or false"),
        ({}, {"isolation_level": "none"}, "expected one of read_uncommitted, read_committed"),
        ({}, {"group_id": ""}, "group_id is '', expected a text that is not empty"),
        ({}, {"client_id": None}, "client_id is None, expected a text"),
        ({}, {"on_loss": 3}, "on_loss is 3, expected a callable"),
        ({}, {"security_protocol": "SSL"}, "security_protocol is 'SSL', expected PLAINTEXT"),
        ({}, {"even": 3}, "even is 3, expected an even number"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    given: dict[str, Any], keywords: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(ValueError, match=refusal):
        settings_of(Some, given, keywords)


def test_a_setting_without_a_default_is_needed() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Needs:
        group_id: str

    with pytest.raises(ValueError, match="group_id is missing"):
        settings_of(Needs, {}, {})


def test_servers_stand_in_a_dict_of_settings_or_by_themselves() -> None:
    for given in ("h:1", ["h:1"], {"bootstrap.servers": "h:1"}):
        assert taken(Some, given, {"even": 4}) == (Some(even=4), [Address("h", 1)])
    for given in ({}, {"group.id": "g"}):
        settings, servers = taken(Some, given, {})
        assert (settings.group_id, servers) == (given.get("group.id"), addresses_of(DEFAULT_SERVER))
