# SPDX-License-Identifier: Apache-2.0
"""Attempts a moment apart: the first answer counts, and a silent one holds up nobody."""

import asyncio

import pytest
from tests.client.scripted import asynchronous

from kohort.client.network.happy_eyeballs import first_of

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


async def race(attempts, discarded, **given):
    async with asyncio.timeout(10):
        return await first_of(attempts, OFTEN_S, (OSError,), discard=discarded.append, **given)


def together(count):
    """Attempts with their numbers as values, all in one turn of the loop, once all have begun."""
    go_on, begun = asyncio.Event(), []

    def numbered(number):
        async def attempt():
            begun.append(number)
            if len(begun) == count:
                asyncio.get_running_loop().call_soon(go_on.set)
            await go_on.wait()
            return number

        return attempt

    return [numbered(number) for number in range(count)]


def stubborn(value):
    """An attempt that has a value though it was cancelled."""

    async def attempt():
        try:
            await asyncio.sleep(NEVER_S)
        except asyncio.CancelledError:
            return value

    return attempt


@asynchronous
async def test_values_that_come_together_with_the_first_one_are_discarded():
    discarded = []
    assert await race(together(3), discarded) == 0
    assert discarded == [1, 2]


@asynchronous
async def test_a_value_that_comes_of_a_cancelled_attempt_is_discarded():
    discarded = []
    assert await race([stubborn("late"), Silent(), saying("first")], discarded) == "first"
    assert discarded == ["late"]


@asynchronous
async def test_a_value_beside_an_error_that_ends_everything_is_discarded():
    discarded = []
    one, other = together(2)

    async def wrong():
        await one()
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await race([wrong, other], discarded)
    assert discarded == [1]


@asynchronous
async def test_a_value_that_nobody_waits_for_any_more_is_discarded():
    """Its race was cancelled in the turn of the loop in which it came."""
    discarded = []
    one, other = together(2)

    async def cancelling():
        value = await one()
        racing.cancel()
        return value

    racing = asyncio.ensure_future(race([cancelling, other], discarded))
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert sorted(discarded) == [0, 1]


@asynchronous
async def test_the_first_value_is_discarded_where_its_race_is_cancelled_at_its_end():
    """It waits for the others to end: who is cancelled then never has the value."""
    discarded, ending = [], asyncio.Event()

    async def slow_to_end():
        try:
            await asyncio.sleep(NEVER_S)
        except asyncio.CancelledError:
            ending.set()
            await asyncio.sleep(NEVER_S)

    racing = asyncio.ensure_future(race([slow_to_end, saying("first")], discarded))
    await ending.wait()
    racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert discarded == ["first"]
