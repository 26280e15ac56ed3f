# SPDX-License-Identifier: Apache-2.0
"""Clients take the time, chance and threads from one place, which a simulator can fill."""

import ast
import asyncio
import time
from contextvars import copy_context
from pathlib import Path
from uuid import UUID

import pytest

import kohort.client
from kohort.client.network import environment as module
from kohort.client.network.cluster import Cluster
from kohort.client.network.connection import Address
from kohort.client.network.environment import ENVIRONMENT, Environment, environment, in_thread
from kohort.client.producer.sender import pauses
from kohort.client.producer.settings import ProducerSettings

CLIENT = Path(kohort.client.__file__).parent
OF_THE_MACHINE = {"time", "random", "uuid", "threading", "secrets", "socket", "concurrent"}
FOR_CALLERS = {  # who wait in threads of their own; the simulator has none of them
    "event_loop_thread.py": {"threading", "concurrent"},
    "synchronous.py": {"threading"},
}


class Still:
    """A clock that stands, and chance that is always the same."""

    def time(self):
        return 12.5

    def time_ns(self):
        return 12_500_000_000

    def monotonic(self):
        return 1.0

    def random(self):
        return 1.0

    def randrange(self, start, _stop):
        return start


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize(
    "path", sorted(CLIENT.rglob("*.py")), ids=lambda path: str(path.relative_to(CLIENT))
)
def test_no_other_module_of_the_clients_has_a_clock_chance_or_threads(path):
    found = OF_THE_MACHINE.intersection(imported(path)) - FOR_CALLERS.get(path.name, set())
    assert not found or path == Path(module.__file__)


def test_a_client_takes_the_environment_of_the_context_in_which_it_is_made():
    still = Still()
    context = copy_context()
    context.run(
        ENVIRONMENT.set, Environment(clock=still, chance=still, new_uuid=lambda: UUID(int=7))
    )
    settings = ProducerSettings(retry_backoff_ms=100)
    assert context.run(pauses, settings)(0) == 120  # by the most of its jitter
    assert context.run(environment).new_uuid() == UUID(int=7)
    assert environment().clock is time  # outside of it all is as ever


def test_a_cluster_takes_the_chance_of_its_caller_first():
    cluster = Cluster([Address("h", 1)], client_id="c", chance=lambda: 0.25)
    assert cluster._chance() == 0.25


def test_what_a_thread_returns_or_raises_is_what_the_caller_gets():
    def stop():
        raise StopIteration

    async def program():
        assert await in_thread(lambda: 7, "seven") == 7
        with pytest.raises(ZeroDivisionError):
            await in_thread(lambda: 1 // 0, "nothing")
        with pytest.raises(RuntimeError, match="StopIteration"):
            await in_thread(stop, "stop")

    asyncio.run(program())


def test_nobody_guesses_a_nonce():
    nonces = {environment().new_nonce() for _ in range(100)}
    assert len(nonces) == 100
    assert all(len(nonce) >= 32 for nonce in nonces)
