# SPDX-License-Identifier: Apache-2.0
"""Applications in the simulated world: the process around our clients, and how it ends."""

import asyncio
import os
import subprocess
import sys
from random import Random

import pytest

from kohort.client.network.environment import environment
from kohort.sim.actor_context import ActorContext
from kohort.sim.events import Events, virtual_loop
from kohort.sim.network import Network
from kohort.sim.programs.program import Program

ADDRESS = "127.0.0.1", 9092
SECOND = 1_000_000


def fail(error):
    raise error


class Echo(asyncio.Protocol):
    """A broker that sends back what it gets."""

    def __init__(self):
        self.lost = False

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)

    def connection_lost(self, exc):
        assert exc is None
        self.lost = True


class RequestState(asyncio.Protocol):
    def __init__(self):
        self.got = asyncio.get_running_loop().create_future()
        self.lost = asyncio.get_running_loop().create_future()

    def data_received(self, data):
        self.got.set_result(data)

    def connection_lost(self, exc):
        self.lost.set_result(None)


class World:
    """A network with one node, and programs."""

    def __init__(self, *, listens=True):
        self.events = Events()
        self.network = Network(Random(1))
        loop = virtual_loop(self.events, fail)
        self.brokers = []
        if listens:
            serving = virtual_loop(self.events, fail, self.network)
            self.network.listen(serving, self.new_broker, *ADDRESS).serving = True
        self.stage = ActorContext(loop, self.network, 1, lambda _: Random(2), fail, fail, fail)

    def new_broker(self):
        self.brokers.append(Echo())
        return self.brokers[-1]

    def start(self, work):
        return Program(self.stage, Random(3), work)

    def run(self, seconds=60):
        self.events.run(self.events.now + seconds * SECOND)


async def connected():
    return await asyncio.get_running_loop().create_connection(RequestState, *ADDRESS)


async def forever():
    await asyncio.get_running_loop().create_future()


def test_a_program_has_a_clock_chance_and_connections_of_its_own():
    world, seen = World(), []

    async def work():
        transport, protocol = await connected()
        transport.write(b"hello")
        seen.append(await protocol.got)
        now = environment()
        seen.append(now.clock.monotonic() == asyncio.get_running_loop().time())
        seen.append(now.new_uuid())
        transport.close()
        await protocol.lost

    program = world.start(work)
    world.run()
    assert (program.ended, program.failure) == (True, "")
    assert seen[:2] == [b"hello", True]
    again, seen = seen, []
    world.start(work)
    world.run()
    assert again[2] == seen[2]  # by the same chance


@pytest.mark.parametrize(
    ("left", "failure"),
    [
        (lambda: asyncio.create_task(forever(), name="one"), "leaves 1 tasks"),
        (connected, "leaves a connection"),
        (lambda: fail(ValueError("broken")), "fails by ValueError: broken"),
    ],
)
def test_what_a_program_leaves_behind_is_told(left, failure):
    world, kept = World(), []

    async def work():
        found = left()
        kept.append(await found if asyncio.iscoroutine(found) else found)

    program = world.start(work)
    world.run()
    assert program.ended
    assert program.failure.startswith(failure)
    program.bury()


def test_an_exception_that_nobody_looks_at_is_told():
    world = World()

    async def work():
        asyncio.get_running_loop().call_soon(fail, ValueError("unseen"))
        await asyncio.sleep(1)

    program = world.start(work)
    world.run()
    assert program.failure == "leaves ValueError: unseen"


def test_a_frozen_program_does_nothing_and_goes_on_later():
    world, seen = World(), []

    async def work():
        while True:
            await asyncio.sleep(1)
            seen.append(world.events.now)

    program = world.start(work)
    world.run(5)
    before = len(seen)
    program.stand_still(20_000)
    world.run(19)
    assert len(seen) == before
    world.run(5)
    assert len(seen) > before
    program.bury()


def test_the_broker_hears_of_a_program_that_is_gone():
    world, seen = World(), []

    async def work():
        seen.append(await connected())
        try:
            await forever()
        finally:
            seen.append("went on")

    program = world.start(work)
    world.run(5)
    program.die()
    world.run(5)
    assert program.ended
    assert world.brokers[0].lost
    assert not world.network.open_lines
    assert "went on" not in seen
    program.bury()


def test_a_node_that_does_not_listen_refuses_and_one_out_of_reach_says_nothing():
    world, seen = World(listens=False), []

    async def work():
        try:
            await connected()
        except ConnectionRefusedError:
            seen.append("refused")

    world.start(work)
    world.run(2)
    assert seen == ["refused"]
    world.network.cut_off(ADDRESS)
    program = world.start(work)
    world.run(30)
    assert seen == ["refused"]
    program.bury()


@pytest.mark.parametrize("seed", [3, 29])
def test_a_seed_with_programs_is_the_same_run_under_every_hash_seed(seed):
    command = [sys.executable, "-m", "kohort.sim.main", "--seed", str(seed), "--minutes", "0.5"]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": number},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in ("1", "2")
    ]
    lines = {process.communicate()[0] for process in processes}
    assert len(lines) == 1, lines
    assert f"seed {seed}: ok" in lines.pop()
