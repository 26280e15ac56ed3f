# SPDX-License-Identifier: Apache-2.0
"""Which listeners have SASL, by the settings of a broker (SEC-2)."""

import pytest
from tests.server.sasl.conversing import OAUTHBEARER, PASSWORDS, PLAIN, Credentials

from kohort.config import BrokerConfig, ConfigError
from kohort.config.listeners import client_listeners
from kohort.server.sasl.listeners import check_sasl, sasl_listeners

LISTENERS = "PLAINTEXT://:1,SASL_PLAINTEXT://:2,INSIDE://:3"
BASE = {
    "listeners": LISTENERS,
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "connections.max.reauth.ms": "5000",
    "listener.name.inside.sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
    "listener.name.inside.scram-sha-256.connections.max.reauth.ms": "7000",
    "listener.name.inside.connection.failed.authentication.delay.ms": "0",
    "listener.name.inside.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER} required unsecured=x;",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} required {PASSWORDS};",
}


def test_each_listener_has_its_own() -> None:
    config = BrokerConfig.of(BASE)
    none = Credentials()
    found = sasl_listeners(
        config, client_listeners(config), none.look_up, none.decoy, lambda: b"x" * 16
    )
    assert list(found) == [1, 2]
    assert list(found[1].listener.mechanisms) == ["PLAIN"]
    assert found[1].listener.max_reauth_ms == {"PLAIN": 5000}
    assert found[1].listener.delay_ms == 100
    assert found[2].listener.max_reauth_ms == {"SCRAM-SHA-256": 7000, "OAUTHBEARER": 5000}
    assert found[2].listener.delay_ms == 0
    assert len(found[2].warnings) == 1


def test_a_listener_that_is_wrong_is_named_without_a_secret() -> None:
    jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    config = BrokerConfig.of(BASE | {jaas: f'{PLAIN} required user_alice="hunter2"'})
    with pytest.raises(ConfigError, match=r"listener SASL_PLAINTEXT: plain\.sasl") as at:
        check_sasl(config, client_listeners(config))
    assert "hunter2" not in str(at.value)
    assert "hunter2" not in repr(config)


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"did you mean listener\.name\.inside\.connections\.max\.reauth\.ms"
    ):
        BrokerConfig.of(BASE | {"listener.name.inside.connections.max.reauth": "1"})
