# SPDX-License-Identifier: Apache-2.0
"""Which machine a client gets for its settings."""

import pytest

from kohort.security.mechanisms import client_mechanism
from kohort.security.names import MECHANISMS
from kohort.security.sasl import SaslError
from kohort.security.settings import Security


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_machine(name: str) -> None:
    security = Security(mechanism=name, username="alice", password="hunter2")
    machine = client_mechanism(security, "nonce", "a.b.c")
    assert machine.name == name
    assert machine.first()


@pytest.mark.parametrize(
    ("security", "reason"),
    [
        (Security(), "SASL mechanism None, expected one of PLAIN, SCRAM-SHA-256"),
        (Security(mechanism="PLAIN", username="alice"), "PLAIN needs a user name and a password"),
        (Security(mechanism="SCRAM-SHA-512", password="hunter2"), "SCRAM-SHA-512 needs a user"),
        (Security(mechanism="OAUTHBEARER"), "OAUTHBEARER needs a token"),
    ],
)
def test_what_is_missing_is_named(security: Security, reason: str) -> None:
    with pytest.raises(SaslError, match=reason) as caught:
        client_mechanism(security, "nonce")
    assert "hunter2" not in str(caught.value)
