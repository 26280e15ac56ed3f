# SPDX-License-Identifier: Apache-2.0
"""What all mechanisms have in common: secrets stay where they are."""

import pytest

from kohort.security.mechanisms import client_mechanism
from kohort.security.names import MECHANISMS
from kohort.security.sasl import SaslError
from kohort.security.settings import Security

CHALLENGES = (b"", b"\x00", b"\xff\xfe", b"e=x", b"v=x", b"r=x,s=,i=1", bytes(range(256)))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("challenge", CHALLENGES)
def test_no_challenge_makes_a_client_tell_its_secret(name: str, challenge: bytes) -> None:
    machine = client_mechanism(
        Security(mechanism=name, username="alice", password="hunter2"), "nonce", "hunter2"
    )
    try:
        answer = machine.answer(challenge)
    except SaslError as error:
        assert "hunter2" not in str(error)  # noqa: PT017  (some of them are answered)
    else:
        assert b"hunter2" not in (answer or b"")
    assert "hunter2" not in repr(machine)
