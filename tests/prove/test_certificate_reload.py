# SPDX-License-Identifier: Apache-2.0
"""The certificate of a listener is replaced again and again while records flow over TLS.

`KOHORT_RELOAD_SECONDS` says for how long each client runs.
"""

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.certificates import Authority
from tests.clients.steady_flow import CLIENTS, flow_through
from tests.peers.kafka import unavailable
from tests.ports import free_ports
from tests.waiting import SOON_S, eventually

pytestmark = [pytest.mark.clients, pytest.mark.prove]

SECONDS = float(os.environ.get("KOHORT_RELOAD_SECONDS", "20"))
PAUSE_S = 0.5
SETTING = "listener.name.ssl.ssl.keystore.location"
NAMES = ("PLAINTEXT", "SSL")


class Served(NamedTuple):
    """A broker in a process of its own, whose listener shows the certificate in `keystore`."""

    process: subprocess.Popen[str]
    addresses: dict[str, str]
    signer: Authority
    authority: Path
    keystore: Path

    def bootstrap(self, listener: str) -> str:
        return self.addresses[listener]

    def shown(self) -> str:
        """The certificate that a new connection gets."""
        host, port = self.addresses["SSL"].split(":")
        return ssl.get_server_certificate((host, int(port)), ca_certs=str(self.authority))

    def alter(self) -> None:
        """By IncrementalAlterConfigs, with the same path. Raises KafkaException if refused."""
        admin = AdminClient({"bootstrap.servers": self.addresses["PLAINTEXT"]})
        entry = ConfigEntry(SETTING, str(self.keystore), incremental_operation=SET)
        resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(SOON_S)

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def replace(self, how: Callable[[], None]) -> None:
        """A new connection sees the new certificate, however the broker hears of it."""
        new = self.signer.sign("localhost")
        new.write_pem(self.keystore)
        how()
        eventually(lambda: self.shown() == new.certificate_pem, "the new certificate")

    def spoil(self, text: str) -> None:
        """A bad one leaves the old one, for both ways."""
        old = self.shown()
        good = self.keystore.read_text()
        self.keystore.write_text(text)
        with pytest.raises(KafkaException):
            self.alter()
        self.hang_up()
        assert {self.shown() for _ in range(5)} == {old}
        self.keystore.write_text(good)


SET = AlterConfigOpType.SET


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("reload")) as here:
        yield here


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    signer = Authority()
    keystore = signer.sign("localhost").write_pem(folder / "server.pem")
    ports = free_ports(len(NAMES))
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(NAMES, ports, strict=True)}
    settings = {
        "listeners": ",".join(f"{name}://{address}" for name, address in addresses.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": keystore,
        "group.initial.rebalance.delay.ms": "0",
    }
    flags = [part for name, text in settings.items() for part in ("-X", f"{name}={text}")]
    with subprocess.Popen(
        [sys.executable, "-m", "kohort", "serve", "--in-memory", "--log-level", "error", *flags],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("kohort ready")
            yield Served(process, addresses, signer, signer.write(folder / "ca.pem"), keystore)
        finally:
            process.terminate()


@pytest.mark.timeout(600 + 3 * SECONDS)
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=[pytest.mark.java] * (name == "java")) for name in CLIENTS]
)
def test_records_flow_on_and_new_connections_see_the_new_one(served: Served, client: str) -> None:
    """SEC-23: by both ways in turns, with bad ones between them."""
    if client == "java" and (reason := unavailable()):
        pytest.skip(reason)
    spoilt = [
        "nothing",
        served.signer.sign("localhost", valid=timedelta(days=-1)).pem(),
        served.signer.sign("elsewhere").pem(),
        served.signer.sign("localhost").key_pem(),
    ]
    replaced = 0
    with ThreadPoolExecutor(1) as pool:
        flowing = pool.submit(flow_through, client, served, "SSL", "", SECONDS)
        while not flowing.done():
            served.replace((served.alter, served.hang_up)[replaced % 2])
            served.spoil(spoilt[replaced % len(spoilt)])
            replaced += 1
            sleep(PAUSE_S)
        flow = flowing.result()
    flow.check()
    assert replaced >= len(spoilt)
