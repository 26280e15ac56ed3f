# SPDX-License-Identifier: Apache-2.0
"""An event loop in a thread of its own."""

import asyncio
import sys
import threading

import pytest

from kohort.testing import Broker
from kohort.testing.loop import LoopThread


def test_it_runs_what_it_is_given_and_ends():
    async def work(value):
        await asyncio.sleep(0)
        return value, threading.current_thread().name

    async def fail():
        raise ZeroDivisionError

    before = threading.active_count()
    loop = LoopThread()
    loop.start()
    assert loop.run(work(7)) == (7, "kohort-testing")
    with pytest.raises(ZeroDivisionError):
        loop.run(fail())
    loop.close()
    assert threading.active_count() == before


def test_what_still_runs_at_the_end_is_cancelled():
    ended = []

    async def begin():
        async def wait():
            try:
                await asyncio.sleep(600)
            finally:
                ended.append(True)

        task = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(0)
        return task

    loop = LoopThread()
    loop.start()
    task = loop.run(begin())
    loop.close()
    assert ended == [True]
    assert task.cancelled()


def test_it_cannot_wait_for_itself():
    loop = LoopThread()
    loop.start()

    async def wrong():
        loop.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="called in the thread of the broker"):
        loop.run(wrong())
    loop.close()


def test_a_loop_that_cannot_be_made_is_said_and_can_be_tried_again(monkeypatch):
    def fails():
        raise OSError(24, "Too many open files")

    before = threading.active_count()
    broker = Broker(in_memory=True)
    with monkeypatch.context() as patched:
        patched.setattr("kohort.testing.loop.OwnLoop", fails)
        with pytest.raises(OSError, match="Too many open files"):
            broker.start()
    with broker:
        assert broker.topics == []
    assert threading.active_count() == before


def test_who_waits_for_a_result_takes_no_lock():
    """The handler of a signal may raise behind an `acquire`: the lock is never released then, and
    the loop would wait for it.
    """
    taken = []

    def note(frame, event, function):
        if event == "c_call" and function.__name__ in ("acquire", "__enter__"):
            taken.append(frame.f_code.co_qualname)

    async def work():
        await asyncio.sleep(0.01)
        return 7

    loop = LoopThread()
    loop.start()
    try:
        sys.setprofile(note)
        try:
            assert loop.run(work()) == 7
        finally:
            sys.setprofile(None)
    finally:
        loop.close()
    assert taken == []
