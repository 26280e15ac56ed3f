# SPDX-License-Identifier: Apache-2.0
"""A name, TCP and TLS: which name a certificate must have, and what each failure is."""

import asyncio
import ssl

import pytest
from tests.certificates import Authority
from tests.client.scripted import ScriptedCluster, asynchronous
from tests.ports import free_port

from kohort.client.network.address import Address
from kohort.client.network.connecting import connect, hosts_of, reason_of
from kohort.client.network.connection import Connection
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.credentials import Credentials
from kohort.errors import AuthenticationError
from kohort.security.settings import Security, Store
from kohort.security.stores import server_context

AUTHORITY = Authority()


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


def named(*names: str) -> ssl.SSLContext:
    return server_context(Store(text=AUTHORITY.sign("broker", names=names).pem()))


async def connected(host: str, port: int, **how: object) -> None:
    """To 127.0.0.1, by this name."""
    trust = Store(text=AUTHORITY.pem)
    credentials = Credentials(Security(protocol="SSL", trust=trust, **how))
    address = Address(host, port)
    connection = await connect(
        lambda: Connection(address, "test", credentials), "127.0.0.1", address, credentials, soon()
    )
    await connection.close()


@pytest.mark.parametrize("host", ["localhost", "localhost."])
@asynchronous
async def test_a_certificate_must_have_the_name_and_not_the_number_it_stands_for(host):
    async with ScriptedCluster(tls=named("localhost")) as scripted:
        await connected(host, scripted.nodes[0].port)
    async with ScriptedCluster(tls=named("127.0.0.1")) as scripted:
        with pytest.raises(AuthenticationError, match=r"for 127\.0\.0\.1, and not for loc"):
            await connected(host, scripted.nodes[0].port)
        await connected("127.0.0.1", scripted.nodes[0].port)


@asynchronous
async def test_a_name_that_nobody_checks():
    async with ScriptedCluster(tls=named("elsewhere.example")) as scripted:
        await connected("localhost", scripted.nodes[0].port, check_hostname=False)
        await connected("localhost", scripted.nodes[0].port, verify=False)


@asynchronous
async def test_the_name_is_told_to_the_server():
    """A proxy in front of several clusters goes by it."""
    told = []
    tls = named("localhost")
    tls.sni_callback = lambda _socket, name, _context: told.append(name)
    async with ScriptedCluster(tls=tls) as scripted:
        await connected("localhost", scripted.nodes[0].port)
    assert told == ["localhost"]


@asynchronous
async def test_a_handshake_that_stalls_has_the_time_of_the_connection():
    async def serve(reader, _writer):
        await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = Address("localhost", server.sockets[0].getsockname()[1])
    credentials = Credentials(Security(protocol="SSL", verify=False))
    with pytest.raises(RequestTimeoutError, match=f"cannot connect to {address}: no answer in"):
        await connect(
            lambda: Connection(address, "test", credentials),
            *("127.0.0.1", address, credentials, soon(0.1)),
        )
    server.close()


@asynchronous
async def test_nobody_listens_there():
    address = Address("127.0.0.1", free_port())
    with pytest.raises(ConnectionFailedError, match=f"cannot connect to {address}: refused"):
        await connect(lambda: Connection(address, "test"), "127.0.0.1", address, None, soon())


@asynchronous
async def test_a_name_that_stands_for_nothing():
    with pytest.raises(ConnectionFailedError, match=r"connect to nowhere\.invalid:1: "):
        await hosts_of(Address("nowhere.invalid", 1), soon())
    assert await hosts_of(Address("127.0.0.1", 1), soon()) == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "refused"),
        (ConnectionResetError(), "reset"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1)"), "refused"),
        (OSError(113, "No route to host"), "no route to host"),
    ],
)
def test_why_a_connection_has_failed(error, reason):
    assert reason_of(error) == reason
