# SPDX-License-Identifier: Apache-2.0
"""Heartbeats, commits and records over TLS, and the same in plain text.

Both servers show a certificate of one authority, with a key of an elliptic curve. Connecting is not
counted. The load client knows no TLS, so a proxy stands between, in a process of its own. One
stands before the listener in plain text as well, so that requests come alike.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import CLIENT_CPU, Bench
from confluent_kafka import Producer
from figures import Figure
from processes import can_pin, cpu_seconds, pin
from servers import Server, wait_until_answering
from tests.certificates import Authority
from tests.ports import free_port
from wire_client import make_topics, wait_for_coordinator

from measures import commits, heartbeats

PROXY = Path(__file__).parents[1] / "tls_proxy.py"
CONNECTIONS = 50
RECORDS, SIZE = 50_000, 1000


class Behind(NamedTuple):
    """A server as the load client sees it: its process, and the port of a proxy or its own."""

    name: str
    pid: int
    port: int


def launch(bench: Bench, name: str, folder: Path) -> tuple[Server, int]:
    """A server with a listener of TLS beside that in plain text, and its port."""
    server, tls_port = bench.server(name), free_port()
    plain, tls = f"PLAINTEXT://127.0.0.1:{server.port}", f"SSL://127.0.0.1:{tls_port}"
    settings = {
        "listeners": f"{plain},{tls}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "server.pem",
    }
    if name == "kafka":
        controller = server.properties()["listeners"].partition(",")[2]
        settings |= {
            "listeners": f"{plain},{tls},{controller}",
            "advertised.listeners": f"{plain},{tls}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        }
    server.settings.update(settings)
    if name == "kafka":
        server.format()
    server.launch()
    wait_until_answering(server)
    return server, tls_port


@contextmanager
def proxy(bench: Bench, port: int, *authority: str) -> Iterator[int]:
    """The port of a proxy before a port; with an authority it speaks TLS to it."""
    command = [sys.executable, str(PROXY), str(port), *authority]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = int(process.stdout.readline())
            if bench.pinned and can_pin():
                pin(process.pid, {CLIENT_CPU})
            yield found
        finally:
            process.terminate()


def produced(server: Server, port: int, security: dict[str, str]) -> float:
    """Records per CPU-second of the server, from the first to the last acknowledgement."""
    producer = Producer(
        {
            "bootstrap.servers": f"localhost:{port}",
            "broker.address.family": "v4",
            "linger.ms": 5,
            "batch.size": 65_536,
            "queue.buffering.max.messages": RECORDS,
            "log_level": 0,
            **security,
        }
    )
    for count in (RECORDS // 10, RECORDS):
        before = cpu_seconds(server.pid)
        for _ in range(count):
            producer.produce("produced", b"x" * SIZE)
        if producer.flush(120):
            raise RuntimeError(f"{server.name} has not taken all records")
    return RECORDS / (cpu_seconds(server.pid) - before)


def run(bench: Bench) -> list[Figure]:
    authority = Authority()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        authority.write(folder / "ca.pem")
        authority.sign("localhost").write_pem(folder / "server.pem")
        servers, ports = [], {}
        for one in bench.names:
            server, ports[one] = launch(bench, one, folder)
            stack.callback(server.close)
            servers.append(server)
            make_topics(server.port, {"t10": 10, commits.TOPIC: 100, "produced": 3})
            wait_for_coordinator(server.port)
        time.sleep(heartbeats.METADATA_SECONDS)

        def behind(one: Server, port: int, *authority: str) -> Behind:
            return Behind(one.name, one.pid, stack.enter_context(proxy(bench, port, *authority)))

        faces = {
            "plain": [behind(one, one.port) for one in servers],
            "TLS": [behind(one, ports[one.name], str(folder / "ca.pem")) for one in servers],
        }
        return [*steady(bench, servers, faces), *producing(bench, servers, ports, folder)]


def steady(bench: Bench, servers: list[Server], faces: dict[str, list[Behind]]) -> list[Figure]:
    beats = {one.name: heartbeats.joined(one, CONNECTIONS, 1, CONNECTIONS) for one in servers}
    ends = {one.name: commits.load(CONNECTIONS, CONNECTIONS) for one in servers}
    for behind in faces.values():  # a compiler has seen all of it before anything counts
        for face in behind:
            for loads in (beats, ends):
                bench.warm_up(face, loads[face.name])
    return [
        bench.steady(Figure(f"{what}, {how}", "1/CPU-s", more_is_better=True), behind, loads)
        for what, loads in (("KIP-848 heartbeats", beats), ("OffsetCommit", ends))
        for how, behind in faces.items()
    ]


def producing(
    bench: Bench, servers: list[Server], ports: dict[str, int], folder: Path
) -> list[Figure]:
    tls = {"security.protocol": "SSL", "ssl.ca.location": str(folder / "ca.pem")}
    figures = []
    for how, security in (("plain", {}), ("TLS", tls)):
        what = f"records of {SIZE:,} B that librdkafka sends, {how}"
        figure = Figure(what, "1/CPU-s", more_is_better=True)
        for turn in range(-1, bench.rounds):  # one to warm up
            for server in bench.order(servers, turn):
                port = ports[server.name] if security else server.port
                found = produced(server, port, security)
                if turn >= 0:
                    figure.add(server.name, found)
        figures.append(figure)
    return figures
