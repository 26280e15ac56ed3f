# SPDX-License-Identifier: Apache-2.0
"""Each reason for which a client and a broker do not come together has a line of its own."""

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta

import pytest
from tests.certificates import Authority
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort.client.network import refusals
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.client.network.refusals import other_protocol, refusing_alert
from kohort.errors import AuthenticationError, ErrorCode
from kohort.security.settings import Security, Store
from kohort.security.stores import server_context
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

MISMATCH = ErrorCode.SECURITY_PROTOCOL_MISMATCH
FAILED = ErrorCode.SSL_AUTHENTICATION_FAILED
HERE = Address("h", 1)
AUTHORITY, STRANGER = Authority(), Authority("Another CA")
TRUST = Store(text=AUTHORITY.pem)
SSL = Security(protocol="SSL", trust=TRUST)
PLAIN_TEXT = Security()


def user(protocol: str) -> Security:
    trust = TRUST if protocol == "SASL_SSL" else None
    return Security(
        protocol=protocol, trust=trust, mechanism="PLAIN", username="alice", password="s3cret"
    )


def listener(signer: Authority = AUTHORITY, client_auth: str = "none", **how) -> ssl.SSLContext:
    identity = signer.sign("broker", **how)
    return server_context(Store(text=identity.pem()), client_auth=client_auth, trust=TRUST)


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def reached(cluster: Cluster) -> None:
    """As a Consumer and a Producer begin. Tries for five seconds where that may help."""
    await cluster.reach(soon())
    await cluster.metadata((), soon())


async def refusal_at(address: Address, security: Security) -> AuthenticationError:
    """How a client is refused that asks something. It is refused by each call, and at once."""
    cluster = Cluster([address], client_id="test", security=security)
    try:
        for _ in range(2):
            with pytest.raises(AuthenticationError) as asked:
                await reached(cluster)
    finally:
        await cluster.close()
    assert "s3cret" not in str(asked.value)
    assert "\n" not in str(asked.value)
    return asked.value


async def refusal_of(scripted: ScriptedCluster, security: Security) -> AuthenticationError:
    return await refusal_at(Address("127.0.0.1", scripted.nodes[0].port), security)


@asynccontextmanager
async def port(answer):
    """A port whose connections are given to `answer`."""

    async def serve(reader, writer):
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


@contextmanager
def alerting(tls: ssl.SSLContext) -> Iterator[Address]:
    """A port that says why it ends a handshake: servers of asyncio do not."""

    def serve() -> None:
        while True:
            try:
                plain, _ = server.accept()
            except OSError:
                return
            plain.settimeout(5)
            with plain, suppress(OSError), tls.wrap_socket(plain, server_side=True) as secure:
                secure.recv(1000)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    ("ours", "theirs", "expected", "other"),
    [
        ("PLAINTEXT", "TLS", "SSL or SASL_SSL", "without TLS"),
        ("SASL_PLAINTEXT", "TLS", "SASL_SSL", "without TLS"),
        ("SSL", "Kafka", "PLAINTEXT or SASL_PLAINTEXT", "with TLS"),
        ("SASL_SSL", "Kafka", "SASL_PLAINTEXT", "with TLS"),
    ],
)
def test_a_port_of_another_protocol(ours, theirs, expected, other):
    error = other_protocol(HERE, theirs, Security(protocol=ours))
    speaks = "TLS" if theirs == "TLS" else "plain text"
    assert error.code is MISMATCH
    assert error.message == (
        f"h:1 speaks {speaks}, and security.protocol is {ours}: expected {expected}, or the port "
        f"of a listener {other}"
    )


@pytest.mark.parametrize("security", [PLAIN_TEXT, SSL, user("SASL_PLAINTEXT"), user("SASL_SSL")])
@asynchronous
async def test_a_web_server_is_known_by_its_answer(security):
    async def answer(reader, writer):
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with port(answer) as address:
        error = await refusal_at(address, security)
    assert error.code is MISMATCH
    text = "speaks HTTP, so it is no Kafka broker; give the port of one"
    assert error.message == f"{address} {text}"


@pytest.mark.parametrize("security", [PLAIN_TEXT, user("SASL_PLAINTEXT")])
@asynchronous
async def test_tls_is_known_by_its_alert(security):
    """SEC-16: what a Kafka sends to plain text on a port of TLS."""

    async def answer(reader, writer):
        await reader.read(100)
        writer.write(bytes.fromhex("15030300020250"))
        await writer.drain()

    async with port(answer) as address:
        error = await refusal_at(address, security)
    assert f"{address} speaks TLS, and security.protocol is {security.protocol}" in error.message


@pytest.mark.parametrize("security", [SSL, user("SASL_SSL")])
@asynchronous
async def test_plain_text_is_known_by_asking_again(security):
    """SEC-17: a Kafka closes without a byte, and so does a port that is not ready yet."""
    async with ScriptedCluster() as scripted:
        error = await refusal_of(scripted, security)
        assert "speaks plain text, and security.protocol is " in error.message


@asynchronous
async def test_a_port_that_only_closes_may_be_one_that_starts():
    async def answer(_reader, _writer):
        pass

    async with port(answer) as address:
        for security in (PLAIN_TEXT, SSL):
            cluster = Cluster([address], client_id="test", security=security)
            with pytest.raises(ConnectionFailedError):
                await cluster.reach(soon(0.3))
            await cluster.close()


@pytest.mark.parametrize(
    ("ours", "expected"), [("PLAINTEXT", "SASL_PLAINTEXT"), ("SSL", "SASL_SSL")]
)
@asynchronous
async def test_a_port_that_wants_sasl_names_its_mechanisms(ours, expected):
    """SEC-34: any other request than a handshake closes the connection without a word."""
    answers = {
        MetadataRequest: lambda _: CLOSE,
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(error_code=33, mechanisms=["B", "A"]),
    }
    tls = listener() if ours == "SSL" else None
    async with ScriptedCluster(answers=answers, tls=tls) as scripted:
        error = await refusal_of(scripted, SSL if ours == "SSL" else PLAIN_TEXT)
        assert error.message == (
            f"{scripted.bootstrap} wants SASL, and security.protocol is {ours}: expected "
            f"{expected} with one of its mechanisms (A, B)"
        )


@asynchronous
async def test_a_port_without_sasl_says_so():
    """SEC-38."""
    async with ScriptedCluster(tls=listener()) as scripted:
        error = await refusal_of(scripted, user("SASL_SSL"))
        assert "has no SASL, and security.protocol is SASL_SSL: expected SSL, or" in error.message


CERTIFICATES = {
    "another authority": (
        *({"signer": STRANGER}, SSL),
        r"that is not trusted \(CN=Another CA,O=Kohort\): expected one of ssl_cafile \(ssl\.trust",
    ),
    "none that this system knows": (
        *({}, Security(protocol="SSL")),
        r"this system does not trust \(CN=Kohort Test CA,O=Kohort\): give the authority by ssl_",
    ),
    "a context of the caller": (
        *({}, Security(protocol="SSL", context=ssl.create_default_context())),
        r"\(CN=Kohort Test CA,O=Kohort\): expected one of ssl_context$",
    ),
    "expired": (
        *({"valid": timedelta(days=-1)}, SSL),
        r"its certificate has expired, on 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC$",
    ),
    "another name": (
        *({"names": ("a.example", "10.0.0.1")}, SSL),
        r"is for 10\.0\.0\.1, a\.example, and not for 127\.0\.0\.1: expected an address by one of",
    ),
    "no names": ({"names": ()}, SSL, r"is for CN=broker,O=Kohort, and not for 127\.0\.0\.1: "),
}


@pytest.mark.parametrize("case", CERTIFICATES)
@asynchronous
async def test_a_certificate_that_cannot_be_trusted_says_why(case):
    how, security, line = CERTIFICATES[case]
    async with ScriptedCluster(tls=listener(**how)) as scripted:
        error = await refusal_of(scripted, security)
        assert error.code is FAILED
        assert error.message.startswith(f"TLS with {scripted.bootstrap} failed: its certificate ")
        assert re.search(line, error.message), error.message


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("identity", "line"),
    [
        (None, "it requires a client certificate, and none is given: expected ssl_certfile"),
        (STRANGER, "the client's certificate is of an authority that it does not trust"),
    ],
)
@asynchronous
async def test_a_client_certificate_that_is_missing_or_strange(identity, line, version):
    """SEC-12: in TLS 1.3 the client learns it at its first read."""
    tls = listener(client_auth="required")
    tls.minimum_version = tls.maximum_version = version
    own = None if identity is None else Store(text=identity.sign("alice").pem())
    with alerting(tls) as address:
        security = Security(protocol="SSL", trust=TRUST, identity=own)
        error = await refusal_at(address, security)
    if version is ssl.TLSVersion.TLSv1_2 and identity is None:  # what OpenSSL says then
        line = "no cipher suite in common with the client, or requires a client certificate"
    assert line in error.message
    assert error.code is FAILED


@asynchronous
async def test_a_client_certificate_that_is_right_is_taken():
    async with ScriptedCluster(tls=listener(client_auth="required")) as scripted:
        own = Store(text=AUTHORITY.sign("alice").pem())
        cluster = scripted.cluster(Security(protocol="SSL", trust=TRUST, identity=own))
        assert (await cluster.metadata((), soon())).brokers
        await cluster.close()


@asynchronous
async def test_versions_of_tls_without_one_in_common():
    tls = listener()
    tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_2
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with alerting(tls) as address:
        error = await refusal_at(address, Security(protocol="SSL", context=context))
        assert "it takes no version of TLS that the client offers (alert protocol_" in error.message


@pytest.mark.parametrize(
    ("alert", "line"),
    [
        ("HANDSHAKE_FAILURE", "it has no cipher suite in common with the client, or requires a"),
        ("INTERNAL_ERROR", r"it ended the handshake \(alert internal_error\)$"),
    ],
)
def test_other_alerts(alert, line):
    assert re.search(line, refusing_alert(alert, HERE, SSL).message)


def test_a_client_with_a_context_of_its_own_is_told_of_it():
    security = Security(protocol="SSL", context=ssl.create_default_context())
    error = refusing_alert("CERTIFICATE_REQUIRED", HERE, security)
    assert "requires a client certificate, and ssl_context shows none" in error.message


@asynchronous
async def test_a_broker_that_is_silent_when_asked_again_costs_a_second_at_most(monkeypatch):
    monkeypatch.setattr(refusals, "ASKING_S", 0.05)
    asked = []

    async def answer(reader, _writer):
        asked.append(await reader.read(100))
        if asked[-1][:1] != b"\x16":  # no ClientHello
            await asyncio.sleep(10)

    async with port(answer) as address:
        cluster = Cluster([address], client_id="test", security=SSL)
        with pytest.raises(ConnectionFailedError, match=f"cannot connect to {address}: "):
            await cluster.connection(address, soon())
        await cluster.close()
    assert len(asked) == 2


@asynchronous
async def test_one_broker_with_a_bad_certificate_does_not_hide_the_others():
    tls = listener(signer=STRANGER)
    async with ScriptedCluster(tls=tls) as bad, ScriptedCluster(tls=listener()) as good:
        addresses = [Address("127.0.0.1", one.nodes[0].port) for one in (bad, good)]
        cluster = Cluster(addresses, client_id="test", security=SSL)
        await cluster.reach(soon())
        connection = await cluster.any_connection(soon())
        assert connection.address == addresses[1]
        assert connection.offers(ListGroupsRequest)
        await cluster.close()
