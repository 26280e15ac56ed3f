"""How the application asks, how long it waits, and that others on the loop have their turn."""

import asyncio
from typing import Any, cast

import pytest
from tests.client.consumer.fakes import T0, FakeFetcher, record
from tests.client.scripted import asynchronous

from kohort.client.consumer.handing import Handing
from kohort.client.consumer.ownership import Ownership
from kohort.client.consumer.reading import Reading
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.fetching import Place


class World:
    def __init__(self) -> None:
        self.asked = 0
        self.fetcher = FakeFetcher()
        self.handing = Handing()
        fetcher: Any = cast("Any", self.fetcher)
        self.ownership = Ownership(fetcher, self.handing, ConsumerSettings(), None)
        self.reading = Reading(fetcher, self.handing, self.ownership, 3, self.on_ask)

    def on_ask(self) -> None:
        self.asked += 1


@asynchronous
async def test_one_by_one() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.ready = {T0: [record(T0, offset) for offset in range(5)]}
    assert [(await world.reading.one()).offset for _ in range(3)] == [0, 1, 2]
    assert world.asked == 3


@asynchronous
async def test_many_at_once() -> None:
    world = World()
    await world.ownership.assigned([T0])
    for most, expected in ((None, 3), (2, 2)):
        world.fetcher.ready = {T0: [record(T0, offset) for offset in range(5)]}
        assert len((await world.reading.many(most, 1.0))[T0]) == expected
        assert world.handing.works_on([T0])
    assert await world.reading.many(None, 0.0) == {}
    assert not world.handing.works_on([T0])


@asynchronous
async def test_what_was_lined_up_comes_first_in_a_batch() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.ready = {T0: [record(T0, 0), record(T0, 1)]}
    await world.reading.one()
    await world.reading.many(None, 0.0)
    assert world.fetcher.told == [("seek", T0, Place(1, 3))]


@asynchronous
async def test_trouble_is_raised_once() -> None:
    world = World()
    world.ownership.fail(RuntimeError("no room"))
    with pytest.raises(RuntimeError, match="no room"):
        await world.reading.many(None, 0.0)
    assert await world.reading.many(None, 0.0) == {}


@asynchronous
async def test_a_second_task_may_not_ask() -> None:
    """It would say that the first one has processed its record."""
    world = World()
    waiting = asyncio.create_task(world.reading.many(None, 5.0))
    await asyncio.sleep(0)
    for ask in (world.reading.one(), world.reading.many(None, 0.0)):
        with pytest.raises(RuntimeError, match="another task is asking"):
            await ask
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await world.reading.many(None, 0.0) == {}


@asynchronous
async def test_who_works_is_away_and_who_waits_is_not() -> None:
    world = World()
    now = asyncio.get_running_loop().time()
    assert world.reading.away_s(now + 9) == 0  # it has not begun
    world.reading.start(now)
    assert world.reading.away_s(now + 9) == pytest.approx(9)
    world.fetcher.ready = {T0: [record(T0, 0)]}
    await world.ownership.assigned([T0])
    await world.reading.one()
    assert world.reading.away_s(asyncio.get_running_loop().time() + 5) == pytest.approx(5, abs=0.5)


@asynchronous
async def test_others_have_a_turn_whenever_somebody_asks() -> None:
    world = World()
    await world.ownership.assigned([T0])
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    world.fetcher.ready = {T0: [record(T0, offset) for offset in range(3)]}
    for _ in range(3):
        await world.reading.one()
    task.cancel()
    assert turns >= 3
    assert world.reading.turn_at > asyncio.get_running_loop().time() - 1
