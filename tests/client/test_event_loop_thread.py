# SPDX-License-Identifier: Apache-2.0
"""A loop in a thread of its own: calls wait for it, are cancelled, and end with it."""

import asyncio
import errno
import os
import sys
import threading
from subprocess import PIPE

import pytest
from tests.interruptible import started
from tests.waiting import SOON_S

from kohort.client.event_loop_thread import EventLoopThread, LoopEndedError


async def nothing():
    pass


@pytest.fixture
def thread():
    thread = EventLoopThread("a loop")
    yield thread
    thread.end(nothing)


def waits(started, outcome):
    """A call that never has a result by itself."""

    async def call():
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise

    return call


def test_a_call_has_its_result_or_its_error(thread):
    async def value(number):
        await asyncio.sleep(0)
        if number == 3:
            raise KeyError(number)
        return number, threading.current_thread().name

    assert thread.run(lambda: value(1)) == (1, "a loop")
    with pytest.raises(KeyError):
        thread.run(lambda: value(3))
    assert thread.run(lambda: value(2)) == (2, "a loop")


def test_several_callers_wait_at_once(thread):
    barrier = asyncio.Barrier(4)
    found = []

    def meet():
        found.append(thread.run(barrier.wait))

    callers = [threading.Thread(target=meet) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(SOON_S)
    assert sorted(found) == [0, 1, 2, 3]


def test_who_waits_when_the_loop_ends_is_told_and_the_thread_is_over(thread):
    before, outcome, started, order = threading.active_count(), [], threading.Event(), []

    def wait():
        with pytest.raises(LoopEndedError):
            thread.run(waits(started, outcome))
        order.append("told")

    async def last():
        order.append("last")

    caller = threading.Thread(target=wait)
    caller.start()
    assert started.wait(SOON_S)
    thread.end(last)
    caller.join(SOON_S)
    assert outcome == ["cancelled"]
    assert order == ["last", "told"]
    assert threading.active_count() == before - 1
    with pytest.raises(LoopEndedError):
        thread.run(nothing)
    thread.end(last)
    assert order == ["last", "told"]


def test_a_loop_that_cannot_be_made_is_an_error_of_the_constructor(monkeypatch):
    """In a thread, so that a constructor that waits fails this test instead of blocking it."""
    found = []

    def refuse():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def construct():
        try:
            EventLoopThread("no loop")
        except OSError as error:
            found.append(error.errno)

    monkeypatch.setattr("asyncio.events.new_event_loop", refuse)
    caller = threading.Thread(target=construct, daemon=True)
    caller.start()
    caller.join(SOON_S)
    assert found == [errno.EMFILE]


def test_a_thread_that_would_wait_for_itself_is_refused(thread):
    async def call():
        return thread.run(nothing)

    with pytest.raises(RuntimeError, match="a loop cannot wait in its own thread"):
        thread.run(call)
    assert thread.run(nothing) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_is_refused_and_may_end_what_it_has_not(thread):
    pid = os.fork()
    if not pid:
        try:
            thread.run(nothing)
        except RuntimeError as error:
            thread.end(nothing)
            os._exit(0 if "make one for each process" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert thread.run(nothing) is None


PROGRAM = """
import asyncio, os, signal, threading
from kohort.client.event_loop_thread import EventLoopThread

thread, cancelled = EventLoopThread("a loop"), threading.Event()

async def wait():
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        cancelled.set()
        raise

async def value():
    return 7

try:
    thread.run(wait)
except KeyboardInterrupt:
    print(cancelled.wait(60), thread.run(value))
"""


def test_ctrl_c_cancels_the_call_and_the_next_one_is_answered():
    """The program then ends, although nobody has ended the thread."""
    process = started([sys.executable, "-c", PROGRAM], stdout=PIPE, stderr=PIPE, text=True)
    said = process.communicate(timeout=SOON_S)
    assert (process.returncode, *said) == (0, "True 7\n", "")
