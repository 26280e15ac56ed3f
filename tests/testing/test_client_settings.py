# SPDX-License-Identifier: Apache-2.0
"""What clients are given to connect by. `test_security.py` has them connect."""

import asyncio
import ssl

import pytest

from kohort import AdminClient
from kohort.errors import KohortError
from kohort.testing import Broker

PROTOCOLS = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def broker():
    enabled = {"sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER,PLAIN"}
    users = {"alice": "secret", "bob": "other"}
    with Broker(enabled, security=PROTOCOLS, users=users, in_memory=True) as broker:
        yield broker


def without(settings):
    return {name: value for name, value in settings.items() if "bootstrap" not in name}


def test_a_broker_of_plain_text_has_its_address():
    with Broker(in_memory=True) as broker:
        for client, name in (("java", "bootstrap.servers"), ("python", "bootstrap_servers")):
            assert broker.client_settings(client) == {name: broker.bootstrap}
        assert broker.client_settings("librdkafka", protocol="PLAINTEXT")
        with pytest.raises(KohortError, match=r"^protocol is 'SSL', expected 'PLAINTEXT'$"):
            broker.client_settings("librdkafka", protocol="SSL")
    with pytest.raises(KohortError, match="does not run"):
        broker.client_settings("java")


def test_every_protocol_has_its_own_address(broker):
    for protocol in PROTOCOLS:
        found = broker.client_settings("java", protocol=protocol)
        assert found["bootstrap.servers"] == broker.bootstrap_of(protocol)
        assert found["security.protocol"] == protocol
    assert broker.bootstrap == broker.bootstrap_of("PLAINTEXT")


def test_java(broker):
    files = broker.tls.client("alice")
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": broker.tls.ca_file}
    assert without(broker.client_settings("java", protocol="SSL", user="alice")) == {
        "security.protocol": "SSL",
        **trust,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.keystore_file,
    }
    login = {"protocol": "SASL_SSL", "user": "bob"}
    for mechanism, line in (
        ("SCRAM-SHA-256", 'scram.ScramLoginModule required username="bob" password="other";'),
        ("PLAIN", 'plain.PlainLoginModule required username="bob" password="other";'),
        (
            "OAUTHBEARER",
            'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="bob";',
        ),
    ):
        assert without(broker.client_settings("java", **login, mechanism=mechanism)) == {
            "security.protocol": "SASL_SSL",
            **trust,
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{MODULES}.{line}",
        }


def test_librdkafka(broker):
    files = broker.tls.client("alice")
    assert without(broker.client_settings("librdkafka", protocol="SSL", user="alice")) == {
        "security.protocol": "SSL",
        "ssl.ca.location": broker.tls.ca_file,
        "ssl.certificate.location": files.certificate_file,
        "ssl.key.location": files.key_file,
    }
    assert without(broker.client_settings("librdkafka", protocol="SASL_PLAINTEXT")) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }


def test_python(broker):
    found = broker.client_settings(
        "python", protocol="SASL_SSL", user="carol", password="guess", mechanism="SCRAM-SHA-256"
    )
    assert isinstance(found.pop("ssl_context"), ssl.SSLContext)
    assert without(found) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "carol",
        "sasl_plain_password": "guess",
    }
    with pytest.raises(KohortError, match="from a provider of yours"):
        broker.client_settings("python", protocol="SASL_SSL", mechanism="OAUTHBEARER")


def test_our_clients_take_every_dialect(broker):
    asyncio.run(ask_in_every_dialect(broker))


async def ask_in_every_dialect(broker):
    for protocol in PROTOCOLS:
        for client in ("java", "librdkafka"):
            async with AdminClient(broker.client_settings(client, protocol=protocol)) as admin:
                assert list(await admin.list_topics()) == []
        async with AdminClient(**broker.client_settings("python", protocol=protocol)) as admin:
            assert list(await admin.list_topics()) == []


@pytest.mark.parametrize(
    ("login", "words"),
    [
        ({"client": "ruby"}, "client is 'ruby', expected 'librdkafka' or 'java' or 'python'"),
        ({"protocol": "TLS"}, "protocol is 'TLS', expected 'PLAINTEXT' or"),
        ({"user": "alice"}, "user is 'alice', expected none: PLAINTEXT knows no users"),
        ({"mechanism": "PLAIN"}, "a mechanism or a password is given for PLAINTEXT, expected"),
        ({"protocol": "SSL", "password": "x"}, "a mechanism or a password is given for SSL"),
        ({"protocol": "SASL_SSL", "user": "carol"}, "user is 'carol', expected 'alice' or 'bob'"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI"}, "mechanism is 'GSSAPI', expected 'SCRAM"),
    ],
)
def test_what_the_broker_has_not_is_refused(broker, login, words):
    with pytest.raises(KohortError) as caught:
        broker.client_settings(**{"client": "librdkafka", **login})
    assert words in str(caught.value)


def test_a_broker_of_plain_text_has_none():
    with pytest.raises(KohortError, match=r"^no listener speaks TLS, expected Broker\(security="):
        _ = Broker(security="SASL_PLAINTEXT").tls
