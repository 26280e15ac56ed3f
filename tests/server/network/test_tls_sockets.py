# SPDX-License-Identifier: Apache-2.0
"""Listeners of TLS, by real sockets: what was recorded of Apache Kafka 4.3.1, and clients that do
harm.
"""

import json
import lzma
import os
import socket
import ssl
import struct
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.certificates import SERVERS, Authority, Identity
from tests.server.tls_broker import API_VERSIONS, SOON_S, TlsBroker, exchange, receive

from kohort.server.network.dispatcher import RequestDispatcher
from kohort.server.network.tls import TlsSession
from kohort.server.requests import memory_pool

DATA = Path(__file__).parents[2] / "data/security"
RECORDED: dict[str, dict[str, Any]] = {
    case["name"]: case
    for case in map(json.loads, lzma.decompress((DATA / "tls.jsonl.xz").read_bytes()).splitlines())
}
CERTIFICATES = json.loads((DATA / "certificates.json").read_text())
SUBJECTS = {
    user: x509.load_pem_x509_certificate(one["certificate"].encode()).subject
    for user, one in CERTIFICATES["certificates"].items()
}
LISTENERS = {  # the name of a listener, and its settings beside its certificate
    "TLS0": {},
    "TLSR": {"ssl.client.auth": "requested"},
    "TLSM": {"ssl.client.auth": "required"},
    "TLSRULES": {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": CERTIFICATES["rules"],
    },
    "TLS12": {"ssl.enabled.protocols": "TLSv1.2"},
    "TLSCBC": {"ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA"},
    "TLSEC": {},
    "WRONGHOST": {},
    "TLSCN": {},
    "EXPIRED": {},
    "TLSFUTURE": {},
    "SASLTLS": {"ssl.client.auth": "none"},
    "SASLTLSM": {"ssl.client.auth": "required"},
}
SERVED = "served"
HANDSHAKE_ANSWER = "0000000100000000000100" + "05504c41494e"  # PLAIN alone
# Alerts of OpenSSL say more than those of Java: docs/skipped.md.
OUR_ALERTS = {
    "no-certificate": ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"),
    "certificate-of-another-authority": ("TLSV1_ALERT_UNKNOWN_CA",) * 2,
    "certificate-expired": ("SSLV3_ALERT_CERTIFICATE_EXPIRED",) * 2,
    "certificate-for-servers": ("SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",) * 2,
    "nosubject": ("closed", "closed"),
}


class World:
    """The authorities, and the certificates of servers and clients in the recorded shapes."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.other = Authority(), Authority("Another CA")
        self.folder = folder
        sign, key = self.authority.sign, rsa.generate_private_key(65537, 2048)
        self.servers: dict[str, Identity] = {
            "TLS0": sign("localhost", key=key),
            "TLSEC": sign("localhost"),
            "WRONGHOST": sign("elsewhere.example", names=("elsewhere.example",)),
            "TLSCN": sign("localhost", names=()),
            "EXPIRED": sign("localhost", valid=timedelta(days=-1)),
            "TLSFUTURE": sign("localhost", begins=timedelta(days=1)),
        }
        self.clients = {user: sign(subject, names=()) for user, subject in SUBJECTS.items()}
        self.clients["nosubject"] = sign(x509.Name([]), names=("nosubject.example",))
        self.clients["certificate"] = self.clients["carol"]
        self.clients["certificate-of-another-authority"] = self.other.sign("carol")
        self.clients["certificate-expired"] = sign("carol", valid=timedelta(days=-1))
        self.clients["certificate-for-servers"] = sign("carol", usage=[SERVERS])
        self.clients["super-user"] = self.clients["super"]

    def settings(self) -> dict[str, str]:
        ca = self.authority.write(self.folder / "ca.pem")
        names = {"ANON": "PLAINTEXT", "SASL": "SASL_PLAINTEXT"}
        names |= {one: "SASL_SSL" if one.startswith("SASL") else "SSL" for one in LISTENERS}
        texts = {
            "listeners": ",".join(f"{one}://127.0.0.1:0" for one in names),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in names.items()),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": 'x.PlainLoginModule required user_alice="alice-secret";',
        }
        for listener, own in LISTENERS.items():
            server = self.servers.get(listener, self.servers["TLS0"])
            path = server.write_pem(self.folder / f"{listener}.pem")
            prefix = f"listener.name.{listener.lower()}."
            texts[f"{prefix}ssl.keystore.location"] = str(path)
            texts |= {f"{prefix}{setting}": text for setting, text in own.items()}
        return texts

    def context(self, case: str) -> ssl.SSLContext:
        """What the recorded client of a case was set to."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        wrong = case == "server/wrong-authority"
        context.load_verify_locations(cadata=(self.other if wrong else self.authority).pem)
        identity = self.identity(case)
        if identity is not None:
            path = identity.write_pem(self.folder / "client.pem")
            context.load_cert_chain(path)
        if case == "server/wrong-host-no-check":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        version = {"tls10": "TLSv1", "tls11": "TLSv1_1", "tls12": "TLSv1_2"}.get(case[9:14])
        if case.endswith("-tls12"):
            version = "TLSv1_2"
        if version is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # which they are
                context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
            context.set_ciphers("ALL:@SECLEVEL=0")
        if case.endswith("client-13"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
        if case.endswith("-cbc-cipher"):
            context.set_ciphers("AES128-SHA")
        if case.endswith("-chacha"):
            context.set_ciphers("ECDHE-RSA-CHACHA20-POLY1305")
        return context

    def identity(self, case: str) -> Identity | None:
        part = case.removesuffix("-tls12").rpartition("/")[2]
        if case == "sasl-ssl/client-auth-required" or part == "plain-with-certificate":
            return self.clients["carol"]
        if "no-certificate" in part or not case.startswith(("client-auth", "principal")):
            return None
        return self.clients[part]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def broker(world: World) -> Iterator[TlsBroker]:
    with TlsBroker(world.settings()) as broker:
        yield broker


def outcome(broker: TlsBroker, world: World, case: str, listener: str) -> dict[str, Any]:
    """What became of a connection: the handshake, and who the client then was, or the refusal."""
    found: dict[str, Any] = {"version": None, "cipher": None, "principal": None}
    host = RECORDED[case]["client"]["server_name"]
    try:
        with broker.connect_tls(listener, world.context(case), host) as sock:
            found["version"], found["cipher"] = sock.version(), sock.cipher()[0]
            answer = exchange(sock, API_VERSIONS)
            found["end"] = SERVED if answer[:6] == b"\0\0\0\1\0\0" else "closed"
            if answer and RECORDED[case]["security"] == "SASL_SSL":
                for step in RECORDED[case]["steps"]:
                    if step.get("api", "").startswith("Sasl"):
                        answer = exchange(sock, bytes.fromhex(step["sent_hex"]))
                        assert answer.hex() in (step["received_hex"], HANDSHAKE_ANSWER)
            if answer:
                found["principal"] = next(iter(broker.principals()), None)
                if RECORDED[case]["security"] == "SASL_SSL" and case.endswith("no-sasl"):
                    assert found.pop("principal") == "User:ANONYMOUS"
                    found["principal"] = None  # upstream was asked once it knew who that is
    except ssl.SSLCertVerificationError as error:
        found["end"] = error.verify_message
    except ssl.SSLError as error:
        found["end"] = error.reason
    except ConnectionError:
        found["end"] = "closed"
    until(lambda: not broker.principals())
    return found


def until(happened) -> None:
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


def recorded_outcome(case: dict[str, Any]) -> dict[str, Any]:
    handshake = case.get("handshake") or {}
    error = case.get("client_error")
    if error is None:
        first = case["steps"][0]
        error = first.get("outcome") if "received_hex" not in first else None
    if error is None:
        end = SERVED
    elif "CERTIFICATE_VERIFY_FAILED" in error:
        end = error.partition("certificate verify failed: ")[2]
    else:
        end = error.partition("[SSL: ")[2].partition("]")[0]
    return {
        "version": handshake.get("version"),
        "cipher": handshake.get("cipher"),
        "principal": case["principal"],
        "end": end,
    }


PLAYED = [
    case
    for case in RECORDED
    if not case.startswith("mixed/") and case != "protocol/tls12-cbc-cipher"
]


@pytest.mark.parametrize("case", PLAYED)
def test_a_recorded_connection_ends_as_upstream_ends_it(
    broker: TlsBroker, world: World, case: str
) -> None:
    """SEC-3, SEC-10 to SEC-15, SEC-20 to SEC-22, SEC-63."""
    recorded = recorded_outcome(RECORDED[case])
    found = outcome(broker, world, case, RECORDED[case]["listener"])
    kind = case.removesuffix("-tls12").rpartition("/")[2]
    kind = "no-certificate" if kind.endswith("no-certificate") else kind
    if kind in OUR_ALERTS and recorded["end"] != SERVED:
        recorded["end"] = OUR_ALERTS[kind][case.endswith("-tls12")]
    assert found == recorded


def test_a_suite_without_forward_secrecy_has_to_be_asked_for(
    broker: TlsBroker, world: World
) -> None:
    """SEC-13: upstream offers it."""
    case = "protocol/tls12-cbc-cipher"
    assert outcome(broker, world, case, "TLS0")["end"] == "SSLV3_ALERT_HANDSHAKE_FAILURE"
    assert outcome(broker, world, case, "TLSCBC") == recorded_outcome(RECORDED[case])


RAW = [case for case in RECORDED if "raw bytes" in str(RECORDED[case].get("steps"))]


@pytest.mark.parametrize("case", RAW)
def test_bytes_that_are_no_tls_are_answered_as_upstream_does(broker: TlsBroker, case: str) -> None:
    """SEC-16, SEC-18."""
    step = RECORDED[case]["steps"][0]
    with broker.connect(RECORDED[case]["listener"]) as sock:
        sock.sendall(bytes.fromhex(step["sent_hex"]))
        ended = step["outcome"].removeprefix("closed after ")
        if ended == step["outcome"]:  # half a hello: nobody says anything
            sock.settimeout(0.3)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            return
        assert sock.recv(100).hex() == ended
        assert sock.recv(1) == b""
    assert "which speaks TLS, closed: its first bytes are no TLS (" in broker.lines[-1]


@pytest.mark.parametrize("case", ["mixed/tls-on-plain-port", "mixed/tls-on-sasl-plaintext-port"])
def test_tls_on_a_plain_port_is_named_in_the_log(
    broker: TlsBroker, world: World, case: str
) -> None:
    """SEC-17."""
    listener = RECORDED[case]["listener"]
    with pytest.raises((ssl.SSLEOFError, ConnectionError)):
        broker.connect_tls(listener, world.context(case))
    until(lambda: "it looks like a TLS handshake" in broker.lines[-1])
    assert f"on listener {listener}" in broker.lines[-1]


def test_sasl_on_a_listener_of_tls_is_refused_and_the_connection_goes_on(
    broker: TlsBroker, world: World
) -> None:
    """SEC-19."""
    steps = RECORDED["mixed/sasl-on-ssl-port"]["steps"]
    with broker.connect_tls("TLS0", world.context("mixed/sasl-on-ssl-port")) as sock:
        for step in steps[:2]:
            answer = exchange(sock, bytes.fromhex(step["sent_hex"]))
            assert answer.hex() == step["received_hex"]


def test_bytes_one_by_one_and_large_records_arrive(broker: TlsBroker, world: World) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = world.context("protocol/tls13").wrap_bio(
        to_client, to_server, server_hostname="localhost"
    )
    with broker.connect("TLS0") as sock:

        def send() -> None:
            for octet in to_server.read():
                sock.sendall(bytes([octet]))

        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                send()
                to_client.write(sock.recv(1 << 16))
        frame = struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS
        client.write(frame)
        send()
        client.write(frame * 2000)
        sock.sendall(to_server.read())
        answered = 0
        while answered < 2001:
            try:
                size = client.read(4)
                left = struct.unpack(">i", size)[0]
                while left:
                    left -= len(client.read(left))
                answered += 1
            except ssl.SSLWantReadError:
                to_client.write(sock.recv(1 << 16))


def test_a_handshake_that_does_not_end_is_ended(broker: TlsBroker) -> None:
    """Its bytes are bounded: a record of the handshake that promises more and more."""
    before = len(broker.lines)
    hello = b"\x01" + (0xFFFFFF).to_bytes(3) + bytes(12_000)
    with broker.connect("TLS0") as sock, suppress(ConnectionError):
        for _ in range(100):
            sock.sendall(b"\x16\x03\x01" + len(hello).to_bytes(2) + hello)
        while sock.recv(1 << 16):
            continue
    until(lambda: len(broker.lines) > before)
    assert "which speaks TLS, closed: " in broker.lines[-1]


def test_a_stalled_handshake_ends_after_the_idle_limit(world: World) -> None:
    """SEC-18, and one line names it; who is served meanwhile stays."""
    settings = world.settings() | {"connections.max.idle.ms": "1000"}
    with TlsBroker(settings) as broker:
        hello = bytes.fromhex(
            RECORDED["mixed/part-of-a-client-hello-on-tls-port"]["steps"][0]["sent_hex"]
        )
        with broker.connect("TLS0") as silent, broker.connect("TLS0") as half:
            half.sendall(hello)
            with broker.connect_tls("TLS0", world.context("protocol/tls13")) as served:
                for sock in (silent, half):
                    sock.setblocking(False)
                ends = set()
                while len(ends) < 2:
                    assert exchange(served, API_VERSIONS)
                    ends |= {sock for sock in (silent, half) if _has_ended(sock)}
                    time.sleep(0.05)
        assert any("closed: it has begun no handshake" in line for line in broker.lines)
        assert any("closed: it has not ended its handshake" in line for line in broker.lines)


def _has_ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_each_listener_tells_its_own_addresses(world: World) -> None:
    """SEC-1: Metadata, FindCoordinator and DescribeCluster, of two nodes."""
    settings = world.settings()
    with TlsBroker(settings, nodes=2) as broker:
        metadata = bytes.fromhex("0003000100000009ffff00000000")
        ports = {}
        with broker.connect("ANON") as plain:
            ports["ANON"] = exchange(plain, metadata)
        with broker.connect_tls("TLS0", world.context("protocol/tls13")) as sock:
            ports["TLS0"] = exchange(sock, metadata)
        for listener, answer in ports.items():
            for node in range(2):
                told = b"127.0.0.1" + struct.pack(">i", broker.port(listener, node))
                assert told in answer
                other = "ANON" if listener == "TLS0" else "TLS0"
                assert struct.pack(">i", broker.port(other, node)) not in answer


def test_many_handshakes_do_not_hold_a_served_client(
    broker: TlsBroker, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have come before anything is handled. The request is handled before the handshakes are:
    they wait for their slices.
    """
    many = 100
    happened: list[str] = []
    step, take = TlsSession.step, RequestDispatcher.take

    def stepped(self: TlsSession) -> None:
        happened.append("step")
        step(self)

    def taken(self: RequestDispatcher, *arguments: Any) -> bool:
        happened.append("request")
        return take(self, *arguments)

    hellos = [_hello(world) for _ in range(many)]
    with ExitStack() as stack:
        plain = stack.enter_context(broker.connect("ANON"))
        assert exchange(plain, API_VERSIONS)
        crowd = [stack.enter_context(broker.connect("TLS0")) for _ in range(many)]
        until(lambda: len(broker.principals()) == many + 1)
        monkeypatch.setattr(TlsSession, "step", stepped)
        monkeypatch.setattr(RequestDispatcher, "take", taken)
        held, released = Event(), Event()
        broker.loop.call_soon_threadsafe(lambda: (held.set(), released.wait(20)))
        assert held.wait(20)
        for sock, hello in zip(crowd, hellos, strict=True):
            sock.sendall(hello)
        plain.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
        released.set()
        assert receive(plain)
        until(lambda: happened.count("step") == many)
    assert happened.index("request") < many / 2
    until(lambda: not broker.principals())


def _hello(world: World) -> bytes:
    to_server = ssl.MemoryBIO()
    client = world.context("protocol/tls13").wrap_bio(
        ssl.MemoryBIO(), to_server, server_hostname="localhost"
    )
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return to_server.read()


def _handshaken(world: World, sock: socket.socket) -> tuple[ssl.SSLObject, ssl.MemoryBIO]:
    """A client in memory whose handshake is done, and what goes from it."""
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = world.context("protocol/tls13").wrap_bio(coming, going, server_hostname="localhost")
    while True:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            sock.sendall(going.read())
            coming.write(sock.recv(1 << 16))
        else:
            sock.sendall(going.read())
            return client, going


@pytest.mark.parametrize("requests", [1, 500])
def test_requests_that_come_with_the_end_of_tls_break_nothing(
    broker: TlsBroker, world: World, requests: int
) -> None:
    """A crowd does so in one go: more than a slice has time for."""
    failures: list[dict[str, Any]] = []
    broker.call(lambda: broker.loop.set_exception_handler(lambda _loop, one: failures.append(one)))
    before = len(broker.lines)
    frame = struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS
    with ExitStack() as stack:
        crowd = []
        for _ in range(20):
            sock = stack.enter_context(broker.connect("TLS0"))
            client, going = _handshaken(world, sock)
            client.write(frame * requests)
            with suppress(ssl.SSLError):
                client.unwrap()
            crowd.append((sock, going.read()))
        held, released = Event(), Event()
        broker.loop.call_soon_threadsafe(lambda: (held.set(), released.wait(20)))
        assert held.wait(20)
        for sock, data in crowd:
            sock.sendall(data)
        released.set()
        for sock, _ in crowd:
            with suppress(ConnectionError):
                while sock.recv(1 << 16):
                    continue
    until(lambda: not broker.principals())
    broker.call(lambda: broker.loop.set_exception_handler(None))
    assert not failures
    assert broker.lines[before:] == []


def test_what_tls_itself_answers_leaves_at_once(
    broker: TlsBroker, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As to a KeyUpdate: a client that sends nothing else would have the answers pile up."""

    def receive(session: TlsSession, _data: bytes = b"") -> bytes:
        session._out.write(b"an answer of TLS")
        return b""

    with broker.connect_tls("TLS0", world.context("protocol/tls13")) as client:
        assert exchange(client, API_VERSIONS)
        monkeypatch.setattr(TlsSession, "receive", receive)
        client.sendall(b"0")
        with socket.socket(fileno=os.dup(client.fileno())) as below:
            below.settimeout(SOON_S)
            assert below.recv(100) == b"an answer of TLS"


def test_bytes_are_counted_as_they_are_before_they_are_encrypted(
    broker: TlsBroker, world: World
) -> None:
    """The same request has as many on each listener."""
    traffic, frame_bytes = broker.broker.traffic, 4 + len(API_VERSIONS)
    found = []
    until(lambda: not broker.principals())
    for connect in (
        lambda: broker.connect("ANON"),
        lambda: broker.connect_tls("TLS0", world.context("protocol/tls13")),
    ):
        before = traffic.received_bytes, traffic.sent_bytes
        with connect() as sock:
            assert exchange(sock, API_VERSIONS)
        found.append((traffic.received_bytes - before[0], traffic.sent_bytes - before[1]))
    assert found[0] == found[1]
    assert found[0][0] == frame_bytes


def test_a_handshake_that_fails_inside_ends_its_connection_and_no_other(
    broker: TlsBroker, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its step is taken in the turn of everybody."""
    failures: list[dict[str, Any]] = []
    broker.call(lambda: broker.loop.set_exception_handler(lambda _loop, one: failures.append(one)))
    context = world.context("protocol/tls13")
    with broker.connect_tls("TLS0", context) as served:
        assert exchange(served, API_VERSIONS)

        def fail(_session: TlsSession) -> None:
            raise IndexError("no such group")

        with monkeypatch.context() as patched:
            patched.setattr(TlsSession, "step", fail)
            with pytest.raises(OSError, match=r"reset|EOF"):
                broker.connect_tls("TLS0", context)
        assert exchange(served, API_VERSIONS)
    broker.call(lambda: broker.loop.set_exception_handler(None))
    assert not failures
    assert any("a request of /127.0.0.1 has failed" in line for line in broker.observer.errors)
    broker.observer.errors.clear()


def test_half_a_handshake_takes_no_memory_without_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of those who hold most makes way for whoever comes."""
    monkeypatch.setattr(memory_pool, "UNAUTHENTICATED_BYTES", 60_000)
    part = b"\x01" + (100_000).to_bytes(3) + bytes(15_000)
    half = b"".join(b"\x16\x03\x01" + len(one).to_bytes(2) + one for one in (part, *[part[4:]] * 2))
    with TlsBroker(world.settings()) as broker, ExitStack() as stack:
        pool = broker.broker.sockets.memory.unauthenticated
        crowd = [stack.enter_context(broker.connect("TLS0")) for _ in range(2)]
        crowd[0].sendall(half)
        until(lambda: pool.used > 40_000)
        crowd[1].sendall(half)
        assert crowd[0].recv(1) == b""
        with broker.connect_tls("TLS0", world.context("protocol/tls13")) as served:
            assert exchange(served, API_VERSIONS)
        assert pool.used < 60_000
        crowd[1].close()
        until(lambda: pool.used == 0)
        assert any("has not authenticated" in line for line in broker.observer.warnings)


def test_a_handshake_waits_until_a_connection_of_its_listener_ends(tmp_path: Path) -> None:
    """`listener.name.ssl.max.connections`, as measured on Apache Kafka 4.3.1: others go on."""
    authority = Authority()
    keystore = authority.sign("localhost").write_pem(tmp_path / "server.pem")
    settings = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "listener.name.ssl.max.connections": "1",
    }
    context = ssl.create_default_context(cadata=authority.pem)
    with TlsBroker(settings) as broker:
        addresses = {name: nodes[0] for name, nodes in broker.broker.listeners.items()}

        def shaken(below: socket.socket) -> ssl.SSLSocket:
            return context.wrap_socket(below, server_hostname="localhost")

        first = shaken(socket.create_connection(addresses["SSL"], SOON_S))
        second = socket.create_connection(addresses["SSL"], 0.5)
        with pytest.raises(TimeoutError):
            shaken(second)
        third = socket.create_connection(addresses["SSL"], SOON_S)
        waiting = Thread(target=lambda: found.append(shaken(third).version()))
        found: list[str | None] = []
        waiting.start()
        with socket.create_connection(addresses["PLAINTEXT"], SOON_S) as plain:
            plain.sendall(len(API_VERSIONS).to_bytes(4) + API_VERSIONS)
            assert plain.recv(4)
        assert not found
        second.close()
        first.close()
        waiting.join(SOON_S)
        assert found == ["TLSv1.3"]
        third.close()
    assert len(broker.observer.warnings) == 2
    limit = "listener.name.ssl.max.connections=1"
    assert broker.observer.warnings[0].endswith(f"waits until another one ends: {limit}")
