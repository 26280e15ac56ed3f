# SPDX-License-Identifier: Apache-2.0
"""Handshakes that come in single bytes or stop half-way: others are served on, and all of them end.

`KOHORT_SLOW_HANDSHAKES` says how many there are. What they cost is printed.
"""

import os
import ssl
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from socket import socket

import pytest
from tests.certificates import Authority
from tests.prove.test_crowds import AtWork, open_files
from tests.serve.talk import ServeProcess, Talk, frame, serving
from tests.waiting import eventually

from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest

COUNT = int(os.environ.get("KOHORT_SLOW_HANDSHAKES", "1000"))
BYTES = 40
WAIT_S = 10.0
"""Less than any session of a group that is not set on purpose. Printed is what it really was."""
KIB_EACH = 64
"""A session of OpenSSL with its buffers, as long as nothing of the handshake was answered."""
KINDS = ("hello in bytes", "half a hello", "silent", "SASL in bytes", "SASL after a step", "SASL")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def settings(folder: Path, idle_ms: int) -> list[str]:
    keystore = Authority().sign("localhost").write_pem(folder / "server.pem")
    lines = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f'{MODULE} required user_alice="alice-secret";',
        "connections.max.idle.ms": str(idle_ms),
    }
    return [part for name, text in lines.items() for part in ("-X", f"{name}={text}")]


@cache
def hello() -> bytes:
    """The first bytes of a client of TLS."""
    going = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    client = context.wrap_bio(ssl.MemoryBIO(), going)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return going.read()


def begin(broker: ServeProcess, kind: str) -> tuple[Talk, bytes]:
    """A client, and what it will send a byte at a time."""
    client = Talk(broker.listeners["SSL" if kind in KINDS[:3] else "SASL_PLAINTEXT"])
    login = frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2)
    if kind == "half a hello":
        client.socket.sendall(hello()[:200])
    if kind.startswith("SASL"):
        client.send(SaslHandshakeRequest(mechanism="PLAIN"))
        assert client.answer()
    if kind == "SASL after a step":
        client.socket.sendall(login[:20])
    slow = {"hello in bytes": hello(), "SASL in bytes": login[:-1]}
    return client, slow.get(kind, b"")[:BYTES]


def has_ended(sock: socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def files_of(broker: ServeProcess) -> int:
    return len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))


def slow_handshakes(count: int, idle_ms: int, folder: Path) -> None:
    with (
        open_files(count),
        serving("--in-memory", *settings(folder, idle_ms), listen="") as broker,
        ExitStack() as stack,
    ):
        honest = AtWork(broker)
        before, files = broker.resident_mib(), files_of(broker)
        crowd = []
        for number in range(count):
            client, slow = begin(broker, KINDS[number % len(KINDS)])
            crowd.append((stack.enter_context(client), slow))
            if number % 20 == 19:
                honest.work()
        for place in range(BYTES):
            for number, (client, slow) in enumerate(crowd):
                if slow[place : place + 1]:
                    client.socket.sendall(slow[place : place + 1])
                if number % 200 == 199:
                    honest.work()
            honest.work()
        needed = broker.resident_mib() - before

        def ended() -> bool:
            honest.work()
            return all(has_ended(client.socket) for client, _ in crowd)

        eventually(ended, "all that stalled are ended")
        eventually(lambda: files_of(broker) <= files, "their sockets are closed")
        each = needed * 1024 / count
        print(
            f"{count} handshakes that stall: {needed:.0f} MiB, {each:.0f} KiB each; {honest.told()}"
        )
        assert needed * 1024 < KIB_EACH * count
        assert max(honest.waits) < WAIT_S
        assert "closed: it has not ended its handshake" in broker.errors
        assert "closed: it has begun no handshake" in broker.errors


@pytest.mark.timeout(120)
def test_a_few_handshakes_that_stall(tmp_path: Path) -> None:
    """SEC-18, beside a member that is served."""
    slow_handshakes(60, 5_000, tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_many_handshakes_that_stall(tmp_path: Path) -> None:
    """SEC-18, beside a member that is served."""
    slow_handshakes(COUNT, 30_000, tmp_path)
