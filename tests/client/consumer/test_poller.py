# SPDX-License-Identifier: Apache-2.0
"""How the application asks, how long it waits, and that others on the loop have their turn."""

import asyncio
from typing import Any, cast

import pytest
from tests.client.consumer.fakes import T0, FakeFetcher, record
from tests.client.scripted import asynchronous

from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.ownership import Ownership
from kohort.client.consumer.poller import Poller, caller_task
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.fetcher import OffsetAndEpoch


class World:
    def __init__(self) -> None:
        self.asked = 0
        self.fetcher = FakeFetcher()
        self.in_flight = InFlightRecords()
        fetcher: Any = cast("Any", self.fetcher)
        self.ownership = Ownership(fetcher, self.in_flight, ConsumerSettings(), None)
        self.reading = Poller(fetcher, self.in_flight, self.ownership, 3, self.on_ask)

    def on_ask(self) -> None:
        self.asked += 1


@asynchronous
async def test_one_by_one() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.ready = {T0: [record(T0, offset) for offset in range(5)]}
    assert [(await world.reading.one()).offset for _ in range(3)] == [0, 1, 2]
    assert world.asked == 4  # and before it was handed what had come


@asynchronous
async def test_many_at_once() -> None:
    world = World()
    await world.ownership.assigned([T0])
    for most, expected in ((None, 3), (2, 2)):
        world.fetcher.ready = {T0: [record(T0, offset) for offset in range(5)]}
        assert len((await world.reading.many(most, 1000))[T0]) == expected
        assert world.in_flight.works_on([T0])
    assert await world.reading.many(None, 0.0) == {}
    assert not world.in_flight.works_on([T0])


@asynchronous
async def test_what_was_lined_up_comes_first_in_a_batch() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.ready = {T0: [record(T0, 0), record(T0, 1)]}
    await world.reading.one()
    await world.reading.many(None, 0.0)
    assert world.fetcher.told == [("seek", T0, OffsetAndEpoch(1, 3))]


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
    waiting = asyncio.create_task(world.reading.many(None, 5000))
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


# Whose work is done when another task asks, or ends something


async def lent(world: World, name: str) -> "asyncio.Task[Any]":
    """Another task that was handed record 5 of T0, and what became of it, by name."""
    world.fetcher.ready = {T0: [record(T0, 5), record(T0, 6)]}
    got = asyncio.Event()

    async def work() -> None:
        await (world.reading.many(1, 1000) if "batch" in name else world.reading.one())
        got.set()
        if "raised" in name:
            raise ArithmeticError
        if "ended" not in name:
            await asyncio.sleep(3600)

    if "only asked" in name:  # as `asyncio.wait_for` has it done below Python 3.12
        me = asyncio.current_task()
        task: asyncio.Task[Any] = asyncio.create_task(world.reading.one(me))
        await task
        return task
    task = asyncio.create_task(work(), name="worker")
    await got.wait()
    if "cancelled" in name:
        task.cancel()
    if "works" not in name:
        await asyncio.gather(task, return_exceptions=True)
    return task


OUTCOMES = {  # of the task that was handed record 5: is it processed, and what does another one get
    "it works": (False, "worker, works on records"),
    "it works on a batch": (False, "worker, works on records"),
    "it was cancelled": (False, 5),
    "it was cancelled with a batch": (False, 5),
    "it raised": (False, 5),
    "it raised with a batch": (False, 5),
    "it ended": (True, 6),
    "it ended with a batch": (True, 6),
    "it only asked for this one": (True, 6),
}


@pytest.mark.parametrize("name", OUTCOMES)
@asynchronous
async def test_nobody_speaks_for_a_task_that_works(name: str) -> None:
    is_processed, then = OUTCOMES[name]
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.places[T0] = OffsetAndEpoch(7)
    task = await lent(world, name)
    assert world.in_flight.in_work
    assert world.reading.is_processed is is_processed
    if isinstance(then, str):
        with pytest.raises(RuntimeError, match=then):
            await world.reading.one()
        assert world.in_flight.processed(T0, OffsetAndEpoch(7)).offset == 5
        assert world.reading.reader is task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return
    world.fetcher.told.clear()
    world.fetcher.ready = {T0: [record(T0, offset) for offset in (then, then + 1)]}
    assert (await world.reading.one()).offset == then
    on_seek = [("seek", T0, OffsetAndEpoch(5, 3))] if then == 5 else []
    assert world.fetcher.told == on_seek
    assert world.in_flight.processed(T0, OffsetAndEpoch(7)).offset == then
    assert world.reading.is_processed  # by the task that asks now


@asynchronous
async def test_who_was_handed_nothing_may_be_followed_by_anybody() -> None:
    world = World()
    await world.ownership.assigned([T0])
    ready = asyncio.Event()

    async def asks_in_vain() -> None:
        assert await world.reading.many(None, 0.0) == {}
        ready.set()
        await asyncio.sleep(3600)

    task = asyncio.create_task(asks_in_vain())
    await ready.wait()
    assert world.reading.is_processed
    world.fetcher.ready = {T0: [record(T0, 0)]}
    assert (await world.reading.one()).offset == 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("first", ["bare", "awaited by another task"])
@asynchronous
async def test_who_asks_is_who_calls_whatever_task_awaits_it(first: str) -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.ready = {T0: [record(T0, offset) for offset in range(3)]}
    me = asyncio.current_task()
    if first == "bare":
        assert (await world.reading.one(me)).offset == 0
    else:
        assert (await asyncio.create_task(world.reading.one(me))).offset == 0
    assert (await asyncio.create_task(world.reading.one(me))).offset == 1
    assert world.reading.reader is me
    with pytest.raises(RuntimeError, match="works on records"):
        await asyncio.create_task(world.reading.one())  # somebody else
    assert (await world.reading.one(me)).offset == 2


def test_a_call_outside_of_a_loop_is_asked_by_the_task_that_runs_it() -> None:
    assert caller_task() is None
