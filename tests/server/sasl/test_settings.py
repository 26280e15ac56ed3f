# SPDX-License-Identifier: Apache-2.0
"""What the settings of a listener say of its clients, and what is refused at the start (SEC-2)."""

import pytest
from tests.server.sasl.conversing import ALL, OAUTHBEARER, PLAIN, Credentials

from kohort.config.settings import ConfigError
from kohort.security.names import MECHANISMS
from kohort.security.oauthbearer import OAuthBearerServer
from kohort.security.plain import PlainServer
from kohort.security.scram_server import ScramServer
from kohort.server.sasl.settings import SaslSettings

ENABLED = "sasl.enabled.mechanisms"
KEYS = "sasl.oauthbearer.jwks.endpoint.url"


def read(**settings: str) -> SaslSettings:
    return SaslSettings(
        {name.replace("__", "-").replace("_", "."): text for name, text in settings.items()},
        Credentials().look_up,
        Credentials.decoy,
        lambda: bytes(16),
    )


def read_all(more: dict[str, str]) -> SaslSettings:
    none = Credentials()
    return SaslSettings({**ALL, **more}, none.look_up, none.decoy, lambda: bytes(16))


def test_every_mechanism_has_a_machine() -> None:
    listener = read_all({}).listener
    assert list(listener.mechanisms) == ALL[ENABLED].split(",")
    assert sorted(listener.mechanisms) == sorted(MECHANISMS)
    made = [make() for make in listener.mechanisms.values()]
    assert [one.name for one in made] == list(listener.mechanisms)
    assert [type(one) for one in made] == [PlainServer, ScramServer, ScramServer, OAuthBearerServer]
    assert (listener.receive_bytes, listener.delay_ms) == (524_288, 100)
    assert set(listener.max_reauth_ms.values()) == {0}


def test_a_setting_of_a_mechanism_wins() -> None:
    listener = read_all(
        {"connections.max.reauth.ms": "5000", "scram-sha-256.connections.max.reauth.ms": "7000"}
    ).listener
    assert listener.max_reauth_ms["PLAIN"] == 5000
    assert listener.max_reauth_ms["SCRAM-SHA-256"] == 7000


def test_a_login_module_for_all_counts_for_the_mechanism_that_it_is_of() -> None:
    jaas = f'{PLAIN} required user_alice="hunter2";'
    read_plain = read(sasl_enabled_mechanisms="SCRAM-SHA-256, PLAIN", sasl_jaas_config=jaas)
    assert list(read_plain.listener.mechanisms) == ["SCRAM-SHA-256", "PLAIN"]


def test_tokens_without_a_signature_are_warned_of() -> None:
    (warning,) = read_all({}).warnings
    assert "tokens that nobody has signed" in warning
    handler = "oauthbearer.sasl.server.callback.handler.class"
    by_class = {
        ENABLED: "OAUTHBEARER",
        handler: "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
        "OAuthBearerUnsecuredValidatorCallbackHandler",
    }
    assert len(read_all(by_class).warnings) == 1
    signed = read_all({ENABLED: "OAUTHBEARER", KEYS: "file:///keys.json"})
    assert signed.warnings == []
    assert signed.key_source is not None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({ENABLED: "GSSAPI"}, "sasl.enabled.mechanisms has 'GSSAPI', expected some of PLAIN,"),
        ({ENABLED: ""}, "sasl.enabled.mechanisms is not set, and its default GSSAPI is not"),
        ({ENABLED: " , "}, "sasl.enabled.mechanisms has ''"),
        ({ENABLED: "PLAIN,plain"}, "has 'plain'"),
        ({"plain.sasl.jaas.config": ""}, "PLAIN has no users, expected sasl.jaas.config"),
        ({"plain.sasl.jaas.config": f"{PLAIN} required;"}, "PLAIN has no users"),
        (
            {"plain.sasl.jaas.config": f'{PLAIN} required user_a="hunter2"'},
            r"plain\.sasl\.jaas\.config: .* does not end, expected a semicolon",
        ),
        (
            {"plain.sasl.jaas.config": f'{OAUTHBEARER} required user_a="hunter2";'},
            "plain.sasl.jaas.config has .*OAuthBearerLoginModule, expected PlainLoginModule",
        ),
        (
            {"plain.sasl.server.callback.handler.class": "com.example.Handler"},
            "of PLAIN is 'com.example.Handler', and Kohort runs no Java class",
        ),
        (
            {"oauthbearer.sasl.server.callback.handler.class": "com.example.Handler"},
            "of OAUTHBEARER is 'Handler', expected OAuthBearerValidatorCallbackHandler",
        ),
        (
            {"oauthbearer.sasl.jaas.config": f"{OAUTHBEARER} required;"},
            "OAUTHBEARER has no keys to check tokens with, expected sasl.oauthbearer.jwks",
        ),
        ({KEYS: "ftp://example"}, "the URL of the keys is 'ftp://example', expected file:"),
        ({"connections.max.reauth.ms": "soon"}, "connections.max.reauth.ms is 'soon'"),
        ({"connections.max.reauth.ms": "-1"}, "connections.max.reauth.ms is '-1'"),
        ({"sasl.server.max.receive.size": "0"}, "sasl.server.max.receive.size is '0'"),
        (
            {
                "oauthbearer.sasl.jaas.config": f"{OAUTHBEARER} required"
                ' unsecuredValidatorAllowableClockSkewMs="x";'
            },
            "unsecuredValidatorAllowableClockSkewMs is 'x'",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_line_without_a_secret(
    changed: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        read_all(changed)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_secret_is_shown() -> None:
    settings = read_all({})
    assert "alice-secret" not in repr(settings.listener)
