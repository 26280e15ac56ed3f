# SPDX-License-Identifier: Apache-2.0
"""The settings of SASL: upstream's names, kinds and defaults; secrets are in nothing shown."""

import pytest

from kohort.config import BROKER_SETTINGS, BrokerConfig, ConfigError
from kohort.config.authentication import AuthenticationSettings

OWN = [name.replace("_", ".") for name in AuthenticationSettings.__slots__]


def test_they_are_settings_of_a_broker() -> None:
    assert set(OWN) <= set(BROKER_SETTINGS)
    assert BROKER_SETTINGS["sasl.enabled.mechanisms"].default == ("GSSAPI",)
    config = BrokerConfig.of({"sasl.jaas.config": "hunter2", "connections.max.reauth.ms": "5"})
    assert config.connections_max_reauth_ms == 5
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("connections.max.reauth.ms", "-1"),
        ("sasl.server.max.receive.size", "0"),
        ("connection.failed.authentication.delay.ms", "soon"),
        ("sasl.oauthbearer.clock.skew.seconds", "-1"),
    ],
)
def test_bounds(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig.of({name: text})
