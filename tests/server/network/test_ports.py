# SPDX-License-Identifier: Apache-2.0
"""The ports of all listeners of all nodes."""

import asyncio
import socket

import pytest
from tests.ports import free_port

from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners
from kohort.errors import KohortError
from kohort.server.network.ports import Ports

MAP = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}


def config_of(listeners, **more):
    return BrokerConfig.of({"listeners": listeners, **MAP, **more})


def ports_of(config, nodes):
    return Ports(client_listeners(config), nodes)


@pytest.mark.asyncio
async def test_each_node_has_a_port_of_each_listener_and_they_follow():
    config = config_of("A://127.0.0.1:0,B://127.0.0.1:0")
    ports = ports_of(config, 3)
    ports.check(config)
    await ports.bind(lambda _node, _listener: asyncio.Protocol())
    before = {name: list(found) for name, found in ports.addresses.items()}
    for found in before.values():
        numbers = [port for _, port in found]
        assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    ports.close()
    await ports.wait_closed()
    await ports.bind(lambda _node, _listener: asyncio.Protocol())
    assert ports.addresses == before
    ports.close()
    await ports.wait_closed()


@pytest.mark.asyncio
async def test_a_connection_is_of_its_node_and_listener():
    made = asyncio.Queue()

    def protocol(node, listener):
        made.put_nowait((node, listener))
        return asyncio.Protocol()

    ports = ports_of(config_of("A://127.0.0.1:0,B://127.0.0.1:0"), 2)
    await ports.bind(protocol)
    await ports.serve()
    for number, name in enumerate("AB"):
        for node in range(2):
            with socket.create_connection(ports.addresses[name][node], timeout=20):
                assert await asyncio.wait_for(made.get(), 20) == (node, number)
    ports.close_node(1)
    with pytest.raises(ConnectionError):
        socket.create_connection(ports.addresses["B"][1], timeout=20)
    await ports.open_node(1)
    with socket.create_connection(ports.addresses["B"][1], timeout=20):
        assert await asyncio.wait_for(made.get(), 20) == (1, 1)
    ports.close()
    await ports.wait_closed()


@pytest.mark.asyncio
async def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = ports_of(config_of(f"A://127.0.0.1:0,B://127.0.0.1:{port}"), 1)
        with pytest.raises(OSError, match="ddress already in use"):
            await ports.bind(lambda _node, _listener: asyncio.Protocol())
        assert ports.tried == ("127.0.0.1", port)
        ports.close()
        await ports.wait_closed()


@pytest.mark.asyncio
async def test_a_node_that_cannot_be_opened_has_no_port_left_open():
    ports = ports_of(config_of("A://127.0.0.1:0,B://127.0.0.1:0"), 1)
    await ports.bind(lambda _node, _listener: asyncio.Protocol())
    await ports.serve()
    ports.close_node(0)
    with (
        socket.create_server(ports.addresses["B"][0]),
        pytest.raises(OSError, match="ddress already in use"),
    ):
        await ports.open_node(0)
    with pytest.raises(ConnectionError):
        socket.create_connection(ports.addresses["A"][0], timeout=20)
    await ports.open_node(0)
    for name in "AB":
        socket.create_connection(ports.addresses[name][0], timeout=20).close()
    ports.close()
    await ports.wait_closed()


@pytest.mark.asyncio
async def test_a_start_that_is_cancelled_leaves_no_port_open(monkeypatch):
    ports = ports_of(config_of("A://127.0.0.1:0"), 2)
    made = []
    make = ports._server

    async def server(node, *where):
        if node:
            raise asyncio.CancelledError
        made.append(await make(node, *where))
        return made[-1]

    monkeypatch.setattr(ports, "_server", server)
    with pytest.raises(asyncio.CancelledError):
        await ports.bind(lambda _node, _listener: asyncio.Protocol())
    assert [one.sockets for one in made] == [()]


@pytest.mark.parametrize(
    ("listeners", "advertised", "words"),
    [
        ("A://h:10,B://h:12", "", "expected port 12 of listener B beyond them"),
        ("B://h:12,A://h:10", "", "expected port 12 of listener B beyond them"),
        ("A://h:65534", "", "3 nodes from port 65534 on end beyond port 65535"),
        ("A://h:1", "A://h:65535", "end beyond port 65535"),
    ],
)
def test_ports_that_run_into_each_other_are_refused(listeners, advertised, words):
    config = config_of(listeners, **({"advertised.listeners": advertised} if advertised else {}))
    with pytest.raises(KohortError, match=words):
        ports_of(config, 3).check(config)


@pytest.mark.asyncio
async def test_what_clients_are_told():
    config = config_of(
        "A://127.0.0.1:0,B://127.0.0.1:0", **{"advertised.listeners": "B://public:7000"}
    )
    ports = ports_of(config, 2)
    await ports.bind(lambda _node, _listener: asyncio.Protocol())
    of_a, of_b = ports.endpoints(config, 5, ["r", None])
    assert [one[:3] for one in of_b] == [(5, "public", 7000), (6, "public", 7001)]
    assert [(one.host, one.port) for one in of_a] == ports.addresses["A"]
    assert [one.rack for one in of_a] == ["r", None]
    ports.close()
    await ports.wait_closed()


@pytest.mark.asyncio
async def test_clients_are_told_the_name_by_which_a_listener_is_known():
    """A certificate may be for it alone, as upstream has it."""
    port = free_port()
    config = config_of(
        f"A://localhost:{port},B://0.0.0.0:0,C://localhost:0",
        **{"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"},
    )
    ports = ports_of(config, 1)
    await ports.bind(lambda _node, _listener: asyncio.Protocol())
    hosts = [one.host for (one,) in ports.endpoints(config, 5, [None])]
    assert hosts == ["localhost", "127.0.0.1", ports.addresses["C"][0][0]]
    ports.close()
    await ports.wait_closed()
