# SPDX-License-Identifier: Apache-2.0
"""Where a broker listens, as people write it; and a name that stands for several addresses."""

import asyncio
import socket

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import AdminClient, Consumer, Producer
from kohort.client.network.address import Address, without_protocols
from kohort.client.network.connection import Connection
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.errors import ApiError
from kohort.escaping import visible


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("broker:9093", ("broker", 9093), "broker:9093"),
        ("broker", ("broker", 9092), "broker:9092"),
        ("127.0.0.1:1", ("127.0.0.1", 1), "127.0.0.1:1"),
        ("[::1]:9093", ("::1", 9093), "[::1]:9093"),
        ("[::1]", ("::1", 9092), "[::1]:9092"),
    ],
)
def test_addresses(text, address, shown):
    assert Address.of(text) == address
    assert str(Address.of(text)) == shown


@pytest.mark.parametrize("text", ["", ":9092", "broker:", "broker:x", "::1"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="is not an address, expected host:port"):
        Address.of(text)


@pytest.mark.parametrize("port", [0, 65536])
def test_a_port_that_cannot_be_is_told(port):
    with pytest.raises(ValueError, match=f"'broker:{port}' has port {port}, expected 1 to 65535"):
        Address.of(f"broker:{port}")


def named(monkeypatch, *hosts):
    """A name that stands for these addresses."""

    async def getaddrinfo(_self, _host, port, **_):
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (host, port)) for host in hosts]

    real = asyncio.base_events.BaseEventLoop.getaddrinfo

    async def only_names(self, host, port, **named):
        ours = host == "brokers.test"
        return await (getaddrinfo if ours else real)(self, host, port, **named)

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", only_names)


@pytest.mark.parametrize(
    ("host", "hosts"),
    [("127.0.0.1", ["127.0.0.1"]), ("::1", ["::1"]), ("brokers.test", ["127.0.0.2", "127.0.0.3"])],
)
@asynchronous
async def test_a_name_has_as_many_addresses_as_it_has(monkeypatch, host, hosts):
    named(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.2")
    assert await Address(host, 9092).hosts() == hosts


async def silent(_reader, writer):
    """A server that takes a connection and says nothing."""
    await asyncio.sleep(60)
    writer.close()


@asynchronous
async def test_a_silent_address_of_a_name_has_the_next_one_tried(monkeypatch):
    named(monkeypatch, "127.0.0.2", "127.0.0.1")
    async with ScriptedCluster() as scripted:
        port = scripted.nodes[0].port
        server = await asyncio.start_server(silent, "127.0.0.2", port)
        deadline = asyncio.get_running_loop().time() + 60
        async with asyncio.timeout(20):
            connection = await Connection.open(
                Address("brokers.test", port), client_id="test", deadline=deadline
            )
        assert connection.is_open
        await connection.close()
        server.close()


@asynchronous
async def test_of_two_addresses_that_answer_at_the_same_moment_one_is_closed(monkeypatch):
    """Nobody else would close it: only one is returned."""
    named(monkeypatch, "127.0.0.2", "127.0.0.1")
    monkeypatch.setattr("kohort.client.network.connection.PATIENCE_S", 0.001)
    opened, go_on = [], asyncio.Event()
    real = Connection._open_at

    async def open_at(_host, *arguments):
        opened.append(await real("127.0.0.1", *arguments))
        if len(opened) == 2:
            asyncio.get_running_loop().call_soon(go_on.set)  # both end in one turn of the loop
        await go_on.wait()
        return opened[0] if _host == "127.0.0.2" else opened[1]

    monkeypatch.setattr(Connection, "_open_at", open_at)
    async with ScriptedCluster() as scripted, asyncio.timeout(20):
        connection = await Connection.open(
            Address("brokers.test", scripted.nodes[0].port),
            client_id="test",
            deadline=asyncio.get_running_loop().time() + 60,
        )
        assert [each.is_open for each in opened] == [each is connection for each in opened]
        await connection.close()


@pytest.mark.parametrize("hosts", [("127.0.0.2", "127.0.0.1"), ("127.0.0.1", "127.0.0.2")])
@asynchronous
async def test_an_address_that_refuses_is_passed_over(monkeypatch, hosts):
    named(monkeypatch, *hosts)
    async with ScriptedCluster() as scripted:
        deadline = asyncio.get_running_loop().time() + 60
        connection = await Connection.open(
            Address("brokers.test", scripted.nodes[0].port), client_id="test", deadline=deadline
        )
        await connection.close()


@asynchronous
async def test_when_no_address_of_a_name_answers_the_name_is_told_once(monkeypatch):
    named(monkeypatch, "127.0.0.2", "127.0.0.1")
    deadline = asyncio.get_running_loop().time() + 60
    with pytest.raises(ConnectionFailedError) as caught:
        await Connection.open(Address("brokers.test", 1), client_id="test", deadline=deadline)
    assert caught.value.message == "cannot connect to brokers.test:1: refused"


@asynchronous
async def test_one_that_refuses_and_one_that_is_silent_are_a_timeout(monkeypatch):
    named(monkeypatch, "127.0.0.2", "127.0.0.1")
    server = await asyncio.start_server(silent, "127.0.0.2", 0)
    port = server.sockets[0].getsockname()[1]
    deadline = asyncio.get_running_loop().time() + 0.3
    with pytest.raises(RequestTimeoutError, match=r"did not answer ApiVersions in time.*refused"):
        await Connection.open(Address("brokers.test", port), client_id="test", deadline=deadline)
    server.close()


@pytest.mark.parametrize(
    ("given", "servers"),
    [
        ("PLAINTEXT://h:1", "h:1"),
        ("SASL_SSL://h:1, SSL://[::1]:2,h:3", "h:1, [::1]:2,h:3"),
        ("my-listener.1://h:1,", "h:1,"),
        ("h:1,[::1]:2", "h:1,[::1]:2"),
        ("http://h://p:1", "h://p:1"),
    ],
)
def test_the_form_of_a_listener_is_an_address_to_a_java_client(given, servers):
    assert without_protocols(given) == servers


STRANGE = ["a\x1b[2Jb", "a\nb", "a\rb", "a\u202eb", "a\u200bb", "a\u3164b", "\x00"]


@pytest.mark.parametrize("host", STRANGE, ids=ascii)
@asynchronous
async def test_a_host_with_characters_that_nobody_sees_is_shown_with_escapes(host):
    """In the repr of each client, in the refusal and in the error of a failed connection."""
    texts = [str(Address(host, 1)), repr(Consumer(bootstrap_servers=f"{host}:1"))]
    texts += [repr(make(bootstrap_servers=f"{host}:1")) for make in (AdminClient, Producer)]
    async with AdminClient(f"{host}:9092", timeout=0.5) as admin:
        with pytest.raises(ApiError) as raised:
            await admin.describe_cluster()
    texts.append(str(raised.value))
    for port in ("x", "0", "9" * 5000):
        with pytest.raises(ValueError, match=r"expected|port") as refused:
            AdminClient(f"{host}:{port}")
        texts.append(str(refused.value))
    for text in texts:
        assert text == visible(text), ascii(text)
