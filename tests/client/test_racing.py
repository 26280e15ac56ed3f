"""Attempts a moment apart: the first answer counts, and a silent one holds up nobody."""

import asyncio

import pytest
from tests.client.scripted import asynchronous

from kohort.client.racing import first_of

OFTEN_S = 0.001
NEVER_S = 60.0


def saying(value):
    async def attempt():
        return value

    return attempt


def failing(error):
    async def attempt():
        raise error

    return attempt


class Silent:
    """An attempt without an end, which knows whether it was ended."""

    def __init__(self):
        self.began = self.cancelled = False

    async def __call__(self):
        self.began = True
        try:
            await asyncio.sleep(NEVER_S)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


@asynchronous
async def test_the_second_does_not_begin_where_the_first_answers():
    second = Silent()
    assert await first_of([saying(1), second], NEVER_S, (OSError,)) == 1
    assert not second.began


@asynchronous
async def test_a_silent_one_is_named_and_ended_and_the_others_answer():
    silent, named = [Silent(), Silent()], []
    attempts = [*silent, saying(3)]
    async with asyncio.timeout(10):
        assert await first_of(attempts, OFTEN_S, (OSError,), named.append) == 3
    assert named == [0, 1]
    assert all(attempt.cancelled for attempt in silent)


@asynchronous
async def test_a_failure_makes_the_next_begin_at_once():
    async with asyncio.timeout(10):
        found = await first_of([failing(OSError("no")), saying(2)], NEVER_S, (OSError,))
    assert found == 2


@asynchronous
async def test_a_slow_answer_counts_though_others_have_begun():
    go_on = asyncio.Event()

    async def slow():
        await go_on.wait()
        return "slow"

    async def later():
        go_on.set()
        await asyncio.sleep(NEVER_S)

    async with asyncio.timeout(10):
        assert await first_of([slow, later], OFTEN_S, (OSError,)) == "slow"


@asynchronous
async def test_all_failures_are_told_in_the_order_of_attempts():
    one, two = OSError("one"), OSError("two")
    with pytest.raises(ExceptionGroup) as caught:
        await first_of([failing(one), failing(two)], NEVER_S, (OSError,))
    assert caught.value.exceptions == (one, two)


@asynchronous
async def test_an_error_that_is_not_expected_ends_everything():
    silent = Silent()
    with pytest.raises(ValueError, match="wrong"):
        await first_of([silent, failing(ValueError("wrong")), saying(1)], OFTEN_S, (OSError,))
    assert silent.cancelled


@asynchronous
async def test_who_is_cancelled_leaves_nothing_behind():
    silent = Silent()
    race = asyncio.ensure_future(first_of([silent], OFTEN_S, (OSError,)))
    await asyncio.sleep(0.01)
    race.cancel()
    with pytest.raises(asyncio.CancelledError):
        await race
    assert silent.cancelled
