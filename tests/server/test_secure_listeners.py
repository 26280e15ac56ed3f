"""What a broker has of TLS and SASL: nothing where all of its listeners are of plain text."""

import subprocess
import sys

import pytest
from tests.server.tls_broker import TlsBroker

from kohort.config import BrokerConfig, ConfigError
from kohort.config.listeners import client_listeners
from kohort.server.secure_listeners import check_security

START = """
import asyncio, sys
from kohort.server.broker import Broker

async def start():
    async with Broker():
        pass

asyncio.run(start())
print(*(name for name in sys.modules if name.startswith("kohort.server.sasl")))
"""


def test_a_broker_of_plain_text_imports_nothing_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", START], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_a_listener_beside_another_has_its_own() -> None:
    with TlsBroker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": 'x.PlainLoginModule required user_alice="alice-secret";',
        }
    ) as broker:
        assert [broker.broker.authenticate(number) is None for number in (0, 1)] == [True, False]


@pytest.mark.parametrize(
    ("listeners", "wrong"),
    [("SSL://127.0.0.1:0", "ssl.keystore"), ("SASL_PLAINTEXT://127.0.0.1:0", "GSSAPI")],
)
def test_what_cannot_be_used_is_refused_before_a_start(listeners: str, wrong: str) -> None:
    config = BrokerConfig.of({"listeners": listeners})
    with pytest.raises(ConfigError, match=wrong):
        check_security(config, client_listeners(config))
