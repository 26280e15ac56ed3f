# SPDX-License-Identifier: Apache-2.0
"""Settings of clients: names, bounds and errors."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest

from kohort import AdminClient, Consumer, Producer
from kohort.client.admin.settings import AdminSettings
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.network.address import Address
from kohort.client.producer.settings import ProducerSettings
from kohort.client.settings import (
    DEFAULT_SERVER,
    ClientSettings,
    addresses_of,
    checked_field,
    choice,
    client_settings,
    flag,
    function,
    settings_of,
    text,
    whole,
)
from kohort.security.settings import NO_SECURITY, Security, Store


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
    even: int = checked_field(2, _even)


def test_defaults_hold_and_both_spellings_are_understood() -> None:
    assert settings_of(Some, {}, {}) == Some()
    given = settings_of(Some, {"session.timeout.ms": "9"}, {"enable_auto_commit": False})
    assert given == Some(session_timeout_ms=9, enable_auto_commit=False)
    assert settings_of(Some, {"enable.auto.commit": "FALSE"}, {}).enable_auto_commit is False


@pytest.mark.parametrize(
    ("given", "keywords", "refusal"),
    [
        ({}, {"sesion_timeout_ms": 1}, "unknown setting 'sesion_timeout_ms', did you mean"),
        ({"sesion.timeout.ms": 1}, {}, "'sesion.timeout.ms', did you mean 'session.timeout.ms'"),
        ({}, {"bootstrap_server": "x"}, "'bootstrap_server', did you mean 'bootstrap_servers'"),
        ({"bootstrap.server": "x"}, {}, "'bootstrap.server', did you mean 'bootstrap.servers'"),
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
        plain = ClientSettings([Address("h", 1)], NO_SECURITY)
        assert client_settings(Some, given, {"even": 4}) == (Some(even=4), plain)
    for given in ({}, {"group.id": "g"}):
        settings, common = client_settings(Some, given, {})
        assert settings.group_id == given.get("group.id")
        assert common.addresses == addresses_of(DEFAULT_SERVER)


ODD = [
    *(None, True, -1, 0, 1, 1.5, float("nan"), float("inf"), 10**30, 10**5000),
    *("", " ", "x", "\u0665", "+5", " 5", "5.0", "--5", "-", "5_0", "1" * 5000, "nan"),
    *("\ud800", "a\x1b[2Jb", "x" * 40_000, b"5", [], [1], [None], {}, {1: 2}, object(), print, int),
]


def made(client: type[Any], name: str, value: Any) -> None:
    """Read the setting as the client does, and what follows from all of them together."""
    settings = settings_of(client, {name.replace("_", "."): value}, {})
    if hasattr(settings, "check"):
        settings.check()


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("client", [AdminSettings, ConsumerSettings, ProducerSettings])
def test_an_odd_value_of_any_setting_is_taken_or_refused_in_one_clear_line(
    client: type[Any], value: Any
) -> None:
    for field in fields(client):
        try:
            made(client, field.name, value)
        except ValueError as error:
            line = str(error)
            assert field.name in line.replace(".", "_"), line
            assert line.isprintable(), line
            assert len(line) < 300, line


@pytest.mark.parametrize("client", [AdminSettings, ConsumerSettings, ProducerSettings])
def test_digits_are_those_of_ascii_in_every_setting_that_is_a_number(client: type[Any]) -> None:
    numbers = [field.name for field in fields(client) if type(field.default) is int]
    assert numbers
    for name in numbers:
        with pytest.raises(ValueError, match=f"{name.replace('_', '.')} is '\u0665', expected"):
            made(client, name, "\u0665")


@pytest.mark.parametrize("make", [AdminClient, Consumer, Producer])
@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({1: 2}, "settings have the name 1, expected a text"),
        ({"client.idd": "x"}, "unknown setting 'client.idd', did you mean 'client.id'?"),
        ({"client.id": ""}, "client.id is '', expected a text that is not empty"),
        ({"client.id": "\ud800"}, r"client.id is '\ud800', expected text in UTF-8"),
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS', expected one of PLAINTEXT"),
        ({"ssl.cafile": "ca.pem"}, "ssl.cafile is given, but security.protocol is PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing, expected one of PLAIN"),
        ({"sasl.mechanism": "GSSAPI", "security.protocol": "SASL_SSL"}, "expected one of PLAIN"),
        ({"sasl.kerberos.service.name": "kafka"}, "sasl.kerberos.service.name is for Kerberos"),
        ({"socket.connection.setup.timeout.ms": "\u0665"}, "is '\u0665', expected a whole number"),
        ({"socket.connection.setup.timeout.ms": 10**400}, ", expected a whole number from 1 to 2"),
    ],
)
def test_every_client_reads_its_dict_by_the_same_rules(
    make: Any, given: dict[Any, Any], line: str
) -> None:
    with pytest.raises(ValueError, match=r"expected|unknown") as caught:
        make(bootstrap_servers=given)
    assert line in str(caught.value)


# Security

SCRAM = Security(
    protocol="SASL_SSL",
    trust=Store(path="ca.pem"),
    mechanism="SCRAM-SHA-512",
    username="u",
    password="p",
)
DIALECTS = {
    "python": {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": "ca.pem",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    },
    "java": {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="u" password="p";',
    },
    "librdkafka": {
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": "ca.pem",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
    },
    "a value": {"security": SCRAM},
}


@pytest.mark.parametrize("make", [AdminClient, Consumer, Producer])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_client_takes_the_security_of_every_dialect(make: Any, dialect: str) -> None:
    client = make(bootstrap_servers={"bootstrap.servers": "h:9093", **DIALECTS[dialect]})
    assert client._cluster._credentials.security == SCRAM
    assert client._addresses == [Address("h", 9093)]
    assert "'p'" not in repr(client) + repr(vars(client))


@pytest.mark.parametrize("make", [AdminClient, Consumer, Producer])
@pytest.mark.parametrize("dialect", ["python", "a value"])
def test_keywords_say_the_same(make: Any, dialect: str) -> None:
    client = make(bootstrap_servers="h:9093", **DIALECTS[dialect])
    assert client._cluster._credentials.security == SCRAM


@pytest.mark.parametrize(
    ("given", "keywords", "line"),
    [
        (
            {"ssl.cafile": "ca.pem"},
            {"ssl_cafile": "other.pem"},
            "ssl.cafile is given twice, in the dict and as ssl_cafile",
        ),
        (
            {"sasl.password": "s3cret"},
            {"security": SCRAM},
            "security is given, and sasl.password: expected one of them",
        ),
        ({}, {"security": "s3cret"}, "security is a value of type str, expected a Security"),
        (
            {"sasl.password": "s3cret"},
            {"sasl_plain_password": "s4cret"},
            "sasl.password and sasl_plain_password contradict each other: give one",
        ),
    ],
)
def test_security_that_contradicts_itself_is_refused_without_a_secret(
    given: dict[str, Any], keywords: dict[str, Any], line: str
) -> None:
    with pytest.raises(ValueError, match=r"security|given|sasl") as caught:
        client_settings(Some, given, keywords)
    assert line in str(caught.value)
    assert "s3cret" not in str(caught.value)
