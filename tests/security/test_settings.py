# SPDX-License-Identifier: Apache-2.0
"""The value that says how a client proves who it is."""

import pytest

from kohort.security.names import SASL_SSL
from kohort.security.settings import Security, Store


def test_secrets_are_not_shown() -> None:
    secret = "hunter2"
    store = Store(text=secret, password=secret)
    security = Security(
        protocol=SASL_SSL,
        trust=store,
        identity=store,
        key=store,
        username="alice",
        password=secret,
        token=lambda: secret,
        client_secret=secret,
        extensions={"trace": secret},
    )
    assert secret not in repr(security)
    assert "alice" in repr(security)


SECRET = "hunter2"
WRONG = {
    "trust": ({"trust": "ca.pem"}, TypeError, "trust is 'ca.pem', expected a Store"),
    "key": ({"key": f"-----BEGIN {SECRET}"}, TypeError, "key is a text, expected a Store"),
    "protocol": ({"protocol": "TLS"}, ValueError, "protocol is 'TLS', expected one of PLAINTEXT,"),
    "no text": ({"protocol": None}, TypeError, "protocol is of type NoneType, expected one of PL"),
    "mechanism": ({"mechanism": "GSSAPI"}, ValueError, "mechanism is 'GSSAPI', expected one of P"),
    "context": ({"context": SECRET}, TypeError, "context is of type str, expected an ssl.SSLC"),
    "flag": ({"verify": "false"}, TypeError, "verify is 'false', expected True or False"),
    "user": ({"username": 5}, TypeError, "username is of type int, expected a text"),
    "password": ({"password": SECRET.encode()}, TypeError, "password is of type bytes, expected"),
    "token": ({"token": SECRET}, TypeError, "token is of type str, expected a callable"),
    "extensions": ({"extensions": SECRET}, TypeError, "extensions is of type str, expected a map"),
}


@pytest.mark.parametrize(("given", "kind", "line"), WRONG.values(), ids=WRONG)
def test_a_wrong_field_is_refused_when_the_value_is_made(given, kind, line) -> None:
    with pytest.raises(kind) as refused:
        Security(**given)
    assert str(refused.value).startswith(line)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "kind", "line"),
    [
        ({"path": 5}, TypeError, "path is of type int, expected a text"),
        ({"text": SECRET.encode()}, TypeError, "text is of type bytes, expected a text"),
        ({"path": "a", "type": None}, TypeError, "type is of type NoneType, expected a text"),
        ({"path": "a", "password": 5}, TypeError, "password is of type int, expected a text"),
    ],
)
def test_what_is_no_store_is_refused_when_it_is_made(given, kind, line) -> None:
    with pytest.raises(kind) as refused:
        Store(**given)
    assert str(refused.value).startswith(line)
    assert SECRET not in str(refused.value)
