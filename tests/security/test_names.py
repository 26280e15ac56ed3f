# SPDX-License-Identifier: Apache-2.0
"""Brokers and clients take the same words."""

import pytest

from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners
from kohort.security.names import MECHANISMS, PROTOCOLS, SASL_PLAINTEXT
from kohort.security.settings import Security


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_is_one_on_both_sides(protocol: str) -> None:
    client = Security(protocol=protocol)
    (listener,) = client_listeners(BrokerConfig.of({"listeners": f"{protocol}://127.0.0.1:0"}))
    assert listener.protocol == client.protocol
    assert (listener.uses_tls, listener.uses_sasl) == (client.uses_tls, client.uses_sasl)
    assert listener.uses_tls == protocol.endswith("SSL")
    assert listener.uses_sasl == protocol.startswith("SASL")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_is_one_on_both_sides(mechanism: str) -> None:
    assert Security(protocol=SASL_PLAINTEXT, mechanism=mechanism).mechanism == mechanism
    own = f"listener.name.secure.{mechanism.lower()}.sasl.jaas.config"
    config = BrokerConfig.of(
        {
            "listeners": "SECURE://127.0.0.1:0",
            "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
            own: "x.Module required;",
        }
    )
    assert not config.ignored
