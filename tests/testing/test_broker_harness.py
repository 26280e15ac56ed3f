# SPDX-License-Identifier: Apache-2.0
"""A broker under test inside its own loop."""

import asyncio
import socket

import pytest
from tests.ports import free_port

from kohort.errors import KohortError
from kohort.testing.broker_harness import BrokerHarness, BrokerSpec
from kohort.testing.disk import RealDisk
from kohort.testing.log_lines import LogLines


def plan(port=0, **different):
    settings = {"offsets.topic.num.partitions": "2"}
    usual = {
        "settings": settings,
        "data_dir": None,
        "nodes": 1,
        "ports": {"PLAINTEXT": port},
        "clock": "manual",
        "begin_ms": 1_000,
        "moved_ms": 0,
    }
    return BrokerSpec(**{**usual, **different})


def staged(play, **different):
    async def whole():
        harness = BrokerHarness(plan(**different), LogLines([]), RealDisk(synced=False))
        (bootstrap,) = (await harness.start()).values()
        try:
            return await play(harness, bootstrap)
        finally:
            await harness.stop()

    return asyncio.run(whole())


def test_it_starts_where_the_plan_says():
    async def play(harness, bootstrap):
        await harness.advance(500)
        return bootstrap, await harness.time_ms()

    bootstrap, now = staged(play)
    assert now == 1_500
    port = int(bootstrap.rpartition(":")[2])
    again, _ = staged(play, port=port)
    assert again == bootstrap


@pytest.fixture
def taken():
    """Two ports one behind the other, of which somebody else has the second."""
    while True:
        port = free_port()
        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            yield port, other
            return


def test_a_port_that_somebody_has_for_a_moment(taken):
    """As a client of another program, which the system gave the port of a broker that was away."""
    port, other = taken

    async def play(harness, bootstrap):
        await harness.stop_node(1, notify_clients=True, replaced=True)
        with socket.socket() as another:
            another.bind(("127.0.0.1", port + 1))
            asyncio.get_running_loop().call_later(0.1, another.close)
            await harness.start_node(1)
        return bootstrap

    async def whole():
        harness = BrokerHarness(plan(nodes=2, port=port), LogLines([]), RealDisk(synced=False))
        asyncio.get_running_loop().call_later(0.1, other.close)
        (bootstrap,) = (await harness.start()).values()
        try:
            return await play(harness, bootstrap)
        finally:
            await harness.stop()

    assert asyncio.run(whole()) == f"127.0.0.1:{port},127.0.0.1:{port + 1}"


def test_a_port_that_somebody_keeps(taken, monkeypatch):
    port, _other = taken
    monkeypatch.setattr("kohort.testing.broker_harness.BIND_S", 0.1)

    async def whole():
        harness = BrokerHarness(plan(nodes=2, port=port), LogLines([]), RealDisk(synced=False))
        with pytest.raises(KohortError, match=f"port {port + 1} is taken"):
            await harness.start()

    asyncio.run(whole())


def test_the_port_of_a_node_that_somebody_keeps(monkeypatch):
    monkeypatch.setattr("kohort.testing.broker_harness.BIND_S", 0.1)

    async def play(harness, bootstrap):
        await harness.stop_node(1, notify_clients=True, replaced=True)
        port = int(bootstrap.rpartition(":")[2])
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))
            with pytest.raises(KohortError, match=f"port {port} is taken"):
                await harness.start_node(1)
        await harness.start_node(1)

    staged(play, nodes=2)


def test_without_faults_nobody_is_asked():
    async def play(harness, _bootstrap):
        from kohort.testing.fault_injector import Fault

        dispatchers = [harness._broker.dispatcher(index) for index in range(2)]
        assert [one.gate for one in dispatchers] == [None, None]
        await harness.add_fault(1, Fault("drop", 3, None))
        await harness.add_fault(2, Fault("drop", 3, None))
        assert all(one.gate is not None for one in dispatchers)
        await harness.clear_fault(1)
        await harness.clear_fault(1)
        assert all(one.gate is not None for one in dispatchers)
        await harness.clear_fault(2)
        assert [one.gate for one in dispatchers] == [None, None]
        assert await harness.hits(2) == 0
        assert await harness.hits(99) == 0

    staged(play, nodes=2)


def test_abandoned_logs_are_whole(tmp_path):
    async def life():
        harness = BrokerHarness(plan(data_dir=str(tmp_path)), LogLines([]), RealDisk(synced=False))
        await harness.start()
        await harness.abandon()
        await harness.abandon()

    asyncio.run(life())
    lines = []

    async def again():
        harness = BrokerHarness(
            plan(data_dir=str(tmp_path)), LogLines(lines), RealDisk(synced=False)
        )
        await harness.start()
        await harness.stop()

    asyncio.run(again())
    assert not any("WARNING" in line for line in lines)


def test_a_disk_that_is_not_there():
    async def play(harness, _bootstrap):
        await harness.fill_disk(full=True)

    with pytest.raises(KohortError, match="a broker in memory has no disk"):
        staged(play)


def test_fetches_that_are_not_ended_any_more_are_told():
    lines = []

    async def play():
        harness = BrokerHarness(plan(), LogLines(lines), RealDisk(synced=False))
        await harness.start()
        cluster = harness._broker.cluster
        cluster.fetch_purgatory, waiting = [None], cluster.fetch_purgatory
        await asyncio.wait([harness._patience])
        cluster.fetch_purgatory = waiting
        await harness.stop()

    asyncio.run(play())
    notify_clients = "fetches that wait are not ended any more: AttributeError"
    assert [line for line in lines if notify_clients in line]
