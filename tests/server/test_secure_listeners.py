# SPDX-License-Identifier: Apache-2.0
"""What a broker has of TLS and SASL: nothing where all of its listeners are of plain text."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.server.tls_broker import API_VERSIONS, TlsBroker, exchange
from tests.waiting import SOON_S, eventually

from kohort.config import BrokerConfig, ConfigError
from kohort.config.listeners import client_listeners
from kohort.server.broker import Broker
from kohort.server.requests import memory_pool
from kohort.server.sasl.key_source import KeySource
from kohort.server.secure_listeners import check_security

SASL = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": 'x.PlainLoginModule required user_alice="alice-secret";',
}

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
    with TlsBroker(SASL) as broker:
        assert [broker.broker.authenticate(number) is None for number in (0, 1)] == [True, False]


def test_a_user_that_is_not_there_is_asked_for_the_same_everywhere() -> None:
    with TlsBroker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
            "listener.security.protocol.map": "OTHER:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        }
    ) as broker:
        asked = set()
        for number in (0, 1):
            authenticate: Any = broker.broker.authenticate(number)
            machine = authenticate.args[0].mechanisms["SCRAM-SHA-256"]()
            asked.add(machine.answer(b"n,,n=nobody,r=C", 0).partition(b",")[2])
    assert len(asked) == 1
    assert asked.pop().endswith(b",i=8192")


@pytest.mark.parametrize(
    ("listeners", "wrong"),
    [("SSL://127.0.0.1:0", "ssl.keystore"), ("SASL_PLAINTEXT://127.0.0.1:0", "GSSAPI")],
)
def test_what_cannot_be_used_is_refused_before_a_start(listeners: str, wrong: str) -> None:
    config = BrokerConfig.of({"listeners": listeners})
    with pytest.raises(ConfigError, match=wrong):
        check_security(config, client_listeners(config), None)


def test_half_a_login_takes_no_room_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of those who hold most makes way for whoever comes."""
    monkeypatch.setattr(memory_pool, "UNAUTHENTICATED_BYTES", 100_000)
    half = (500_000).to_bytes(4) + bytes.fromhex("00110001 00000001 ffff") + bytes(60_000)
    with TlsBroker(SASL) as broker:
        pools = broker.broker.sockets.memory
        with broker.connect("SASL_PLAINTEXT") as first:
            first.sendall(half)
            eventually(lambda: pools.unauthenticated.used > 60_000, "half a login")
            with broker.connect("SASL_PLAINTEXT") as second:
                second.sendall(half)
                assert first.recv(1) == b""
                assert pools.requests.used == 0
                with broker.connect("PLAINTEXT") as served:
                    assert exchange(served, API_VERSIONS)
        eventually(lambda: pools.unauthenticated.used == 0, "nobody")
        assert any("has not authenticated" in line for line in broker.observer.warnings)


SIGNED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
    "listener.security.protocol.map": "OTHER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/keys",
}


def test_keys_that_are_not_there_leave_no_directory(tmp_path: Path) -> None:
    broker = Broker(SIGNED, data_dir=tmp_path / "data")
    with pytest.raises(ConfigError, match=r"keys at http://127.0.0.1:1 cannot be read"):
        asyncio.run(broker.start())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.asyncio
async def test_the_keys_of_several_listeners_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, both = [], asyncio.Event()

    async def start(source: KeySource, _observe: object) -> None:
        reading.append(source)
        if len(reading) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), SOON_S)

    monkeypatch.setattr(KeySource, "start", start)
    async with Broker(SIGNED):
        assert len(reading) == 2
