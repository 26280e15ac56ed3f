# SPDX-License-Identifier: Apache-2.0
"""What arrives of a connection whose client hangs up, and in which order."""

import asyncio
from random import Random

import pytest

from kohort.sim.events import Events, virtual_loop
from kohort.sim.network import WINDOW_BYTES, Network

ADDRESS = "127.0.0.1", 9092


def fail(error: BaseException) -> None:
    raise error


class Client:
    def __init__(self):
        self.got = b""
        self.is_lost = False

    def received(self, data):
        self.got += data

    def lost(self):
        self.is_lost = True


class Broker(asyncio.Protocol):
    """Remembers what happens to it, and answers each piece with its length."""

    def __init__(self):
        self.happened = []

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.happened.append(data)
        self.transport.write(b"%d" % len(data))

    def connection_lost(self, exc):
        assert exc is None
        self.happened.append("lost")


class World:
    """A client and a broker on loops of their own, connected."""

    def __init__(self):
        self.events = Events()
        self.network = Network(Random(1))
        self.clients = virtual_loop(self.events, fail, self.network)
        self.brokers = virtual_loop(self.events, fail, self.network)
        self.client, self.broker = Client(), Broker()
        self.network.listen(self.brokers, lambda: self.broker, *ADDRESS).serving = True
        self.line = self.network.connect(self.clients, ADDRESS, self.client)

    def run(self, seconds):
        self.events.run(self.events.now + int(seconds * 1_000_000))


@pytest.fixture
def world():
    return World()


def test_what_a_client_has_sent_before_it_hangs_up_arrives_and_then_the_end(world):
    world.line.send(b"one")
    world.line.send(b"three")
    world.line.close()
    world.run(1)
    assert world.broker.happened == [b"one", b"three", "lost"]
    assert world.client.got == b""
    assert not world.network.open_lines


def test_a_broker_that_stood_still_finds_the_request_first_and_the_end_behind_it(world):
    world.brokers.stand_still(9_000_000)
    world.line.send(b"one")
    world.run(4)
    world.line.close()
    world.run(4)
    assert world.broker.happened == []
    world.run(2)
    assert world.broker.happened == [b"one", "lost"]


def test_a_broker_that_does_not_read_learns_of_the_end_when_it_has_read(world):
    world.broker.transport.pause_reading()
    world.line.send(b"one")
    world.line.close()
    world.run(1)
    assert world.broker.happened == []
    assert world.network.open_lines == 1
    world.broker.transport.resume_reading()
    world.run(1)
    assert world.broker.happened == [b"one", "lost"]


def test_a_broker_that_writes_to_nobody_is_told_so(world):
    world.broker.transport.pause_reading()
    world.line.close()
    world.run(1)
    world.broker.transport.write(b"anybody?")
    world.run(1)
    assert world.broker.happened == ["lost"]
    assert not world.client.is_lost


def test_a_broker_that_waits_to_write_is_told_when_nobody_is_there_any_more(world):
    """It does not read while its client does not, so it learns nothing by reading."""
    world.line.read(on=False)
    world.broker.pause_writing = world.broker.transport.pause_reading
    world.broker.transport.write(bytes(4 * WINDOW_BYTES))
    world.run(1)
    assert world.broker.transport.get_write_buffer_size()
    world.line.close()
    world.run(1)
    assert world.broker.happened == ["lost"]
    assert not world.network.open_lines


def test_nothing_arrives_of_a_connection_that_breaks(world):
    world.line.send(b"one")
    world.line.end()
    world.run(1)
    assert world.broker.happened == ["lost"]
    assert world.client.is_lost


def test_the_end_waits_with_everything_else_for_a_node_that_nobody_reaches(world):
    world.network.cut_off(ADDRESS)
    world.line.send(b"one")
    world.line.close()
    world.run(5)
    assert world.broker.happened == []
    world.network.reach_again(ADDRESS)
    world.run(1)
    assert world.broker.happened == [b"one", "lost"]
