# SPDX-License-Identifier: Apache-2.0
"""Which listeners a broker has, where they are, and which settings each has."""

import pytest

from kohort.config import BrokerConfig, ConfigError, listener_settings
from kohort.config.listeners import (
    advertised_addresses,
    client_listeners,
    host_and_port,
    listener_text,
)

MAP = "A:PLAINTEXT,B:SSL,C:SASL_SSL,CONTROLLER:PLAINTEXT"


def config_of(listeners: str, **more: str) -> BrokerConfig:
    named = {name.replace("_", "."): text for name, text in more.items()}
    return BrokerConfig.of(
        {
            "listeners": listeners,
            "listener.security.protocol.map": MAP,
            "controller.listener.names": "CONTROLLER",
            **named,
        }
    )


def test_listeners_have_names_protocols_and_addresses() -> None:
    """SEC-1."""
    config = config_of("a://:9092,B://h:9093,C://[::1]:0,CONTROLLER://x:1,SSL://y:9094")
    assert client_listeners(config) == (
        ("A", "PLAINTEXT", "0.0.0.0", 9092),
        ("B", "SSL", "h", 9093),
        ("C", "SASL_SSL", "::1", 0),
        ("SSL", "SSL", "y", 9094),
    )
    assert [listener.uses_tls for listener in client_listeners(config)] == [False, True, True, True]
    assert [one.uses_sasl for one in client_listeners(config)] == [False, False, True, False]
    assert listener_text("::1", 5, "C") == "C://[::1]:5"


def test_each_listener_has_an_address_to_tell() -> None:
    """SEC-1."""
    config = config_of(
        "A://h:1,B://h:2", advertised_listeners="B://public:2,CONTROLLER://c:9,a://[fe80::1]:7"
    )
    assert advertised_addresses(config) == {"A": ("fe80::1", 7), "B": ("public", 2)}


@pytest.mark.parametrize(
    ("listeners", "advertised", "words"),
    [
        ("D://h:1", "", "'D://h:1', whose protocol is not known, expected D:PROTOCOL in"),
        ("A://h:1,a://h:2", "", "has the name A twice"),
        ("A://h:1,B://i:1", "", "has port 1 for A and for B"),
        ("CONTROLLER://h:1", "", "expected one for clients"),
        ("A:9092", "", "listeners has 'A:9092', expected NAME://HOST:PORT"),
        ("A://h:1", "B://h:1", "'B://h:1', which is none of listeners, expected one of A"),
        ("A://h:1", "A://h:1,A://i:1", "has A twice"),
        ("A://h:1", "A://0.0.0.0:1", "'A://0.0.0.0:1', which no client can reach"),
        ("A://h:1", "A://[::]:1", "which no client can reach"),
        ("A://h:1", "A://h", "'h' is not an address, expected HOST:PORT"),
    ],
)
def test_what_contradicts_itself_is_refused(listeners: str, advertised: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config_of(listeners, **({"advertised_listeners": advertised} if advertised else {}))
    assert words in str(refused.value)


def test_a_port_may_be_one_of_each_family() -> None:
    config = config_of("A://1.2.3.4:9092,B://[::1]:9092,C://h:0,SSL://h:0")
    assert len(client_listeners(config)) == 4


def test_the_settings_of_a_listener_stand_above_those_of_all() -> None:
    """SEC-2, SEC-10: SASL_SSL asks for certificates only where its own setting says so."""
    config = BrokerConfig.of(
        {
            "listeners": "B://h:1,C://h:2",
            "listener.security.protocol.map": MAP,
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.enabled.protocols": "TLSv1.3",
            "listener.name.b.ssl.enabled.protocols": " TLSv1.2 ",
            "listener.name.c.ssl.key.password": "c-secret",
        }
    )
    of_b, of_c = (listener_settings(config, one) for one in client_listeners(config))
    assert of_b == {
        "ssl.client.auth": "required",
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.keystore.type": "PEM",
    }
    assert of_c == {
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.key.password": "c-secret",
        "ssl.keystore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "listener.name.b.ssl.keystore.locaton",
            "x",
            "did you mean listener.name.b.ssl.keystore.location",
        ),
        ("listener.name.b.ssl.client.auth", "maybe", "listener.name.b.ssl.client.auth is 'maybe'"),
        (
            "listener.name.b.plian.ssl.keystore.location",
            "x",
            "listener.name.b.plian.ssl.keystore.location is not a setting; did you mean",
        ),
        (
            "listener.name.b.plain.ssl.keystore.location",
            "x",
            "listener.name.b.plain.ssl.keystore.location is not a setting; did you mean",
        ),
        (
            "listener.name.b.scramsha256.sasl.jaas.config",
            "x",
            "listener.name.b.scramsha256.sasl.jaas.config is not a setting",
        ),
        ("ssl.keystore.locaton", "x", "did you mean ssl.keystore.location"),
        ("ssl.keystore.type", "BKS", "ssl.keystore.type is 'BKS', expected one of PEM, PKCS12"),
    ],
)
def test_a_wrong_setting_of_a_listener_is_named_as_it_was_written(
    name: str, text: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        config_of("B://h:1", **{name.replace(".", "_"): text})
    assert words in str(refused.value)
    assert words in str(BrokerConfig.mistakes({name: text})[name])


def test_what_is_set_for_a_listener_that_is_none_has_no_effect_and_is_told() -> None:
    names = (
        "listener.name.x.ssl.client.auth",
        "listener.name.plaintext.num.partitions",
        "listener.name.plaintext.gssapi.sasl.jaas.config",
    )
    config = BrokerConfig.of(dict.fromkeys(names, "none") | {names[1]: "3"})
    assert sorted(config.ignored) == sorted(names)
    known = {
        "listener.name.plaintext.plain.sasl.jaas.config": "x",
        "listener.name.plaintext.scram-sha-256.connections.max.reauth.ms": "1",
    }
    assert BrokerConfig.of(known).ignored == ()


def test_no_secret_is_shown() -> None:
    secret = "t0p-s3cret"
    names = ("key.password", "keystore.password", "keystore.key", "truststore.password")
    texts = {f"ssl.{name}": secret for name in names}
    texts |= {f"listener.name.plaintext.ssl.{name}": secret for name in names}
    config = BrokerConfig.of(texts)
    assert config.ssl_key_password == secret
    assert secret not in repr(config)


def test_addresses() -> None:
    assert host_and_port("[::1]:9") == ("::1", 9)
    with pytest.raises(ConfigError, match="has port 70000, expected 0 to 65535"):
        host_and_port("h:70000")
