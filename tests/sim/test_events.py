# SPDX-License-Identifier: Apache-2.0
"""Time of the simulated world passes, whatever somebody in it does."""

import asyncio

import pytest

from kohort.sim.events import MICROS, Events, virtual_loop


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def loop(events):
    def fail(error):
        raise error

    return virtual_loop(events, fail)


@pytest.mark.parametrize("delay", [1e-9, 0.4e-6, 0.6e-6, 1.4e-6, 0.5])
def test_a_delay_takes_a_microsecond_or_more(events, loop, delay):
    rang = []
    loop.call_later(delay, lambda: rang.append(events.now))
    events.run(MICROS)
    assert rang == [max(round(delay * MICROS), 1)]


def test_no_delay_takes_no_time(events, loop):
    rang = []
    loop.call_later(0, lambda: rang.append(events.now))
    events.run(MICROS)
    assert rang == [0]


def test_who_waits_for_the_rest_of_a_microsecond_gets_on(events, loop):
    async def wait_until(end):
        while loop.time() < end:  # noqa: ASYNC110  (time is what is tested)
            await asyncio.sleep(end - loop.time())

    task = loop.begin(wait_until(2.3e-6))
    events.run(MICROS)
    assert task.done()


def test_a_loop_that_waits_for_nothing_is_an_error(events, loop):
    async def spin():
        while True:  # noqa: ASYNC110  (time is what is tested)
            await asyncio.sleep(0)

    loop.begin(spin())
    with pytest.raises(RuntimeError, match="time stands still at 0 us: <Handle"):
        events.run(MICROS)


def test_many_entries_of_many_instants_are_no_error(events, loop, monkeypatch):
    monkeypatch.setattr("kohort.sim.events.AT_ONCE_MAX", 3)
    rang = []
    for at in range(10):
        for _ in range(4):
            loop.call_at_us(at, lambda: rang.append(events.now))
    events.run(MICROS)
    assert len(rang) == 40
