# SPDX-License-Identifier: Apache-2.0
"""The threads of a broker under test."""

import signal
import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest
from tests.waiting import eventually

from kohort.testing.threads import Threads, join, new_thread

variable = ContextVar("variable", default="empty")


def test_work_is_done_and_told_of():
    before = threading.active_count()
    with Threads(2, "name") as threads:
        threads.start()
        assert threads.submit(pow, 2, exp=3).result() == 8
        with pytest.raises(ZeroDivisionError):
            threads.submit(divmod, 1, 0).result()
        assert threads.submit(lambda: threading.current_thread().name).result() in (
            "name_0",
            "name_1",
        )
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="after shutdown"):
        threads.submit(pow, 2, 3)
    threads.shutdown()


def test_as_many_work_at_once_as_were_asked_for():
    with Threads(3, "name") as threads:
        threads.start()
        barrier = threading.Barrier(3)
        for future in [threads.submit(barrier.wait) for _ in range(3)]:
            assert future.result() in range(3)


def test_where_one_cannot_begin_the_others_end(monkeypatch):
    def fails():
        raise RuntimeError("can't start new thread")

    before = threading.active_count()
    threads = Threads(3, "name")
    monkeypatch.setattr(threads._workers[-1], "start", fails)
    with pytest.raises(RuntimeError, match="can't start"):
        threads.start()
    eventually(lambda: threading.active_count() == before, "they have ended")


def test_what_waits_at_the_end_is_done():
    with Threads(1, "name") as threads:
        threads.start()
        begun = threading.Event()
        threads.submit(begun.wait)
        waiting = threads.submit(pow, 2, 3)
        begun.set()
    assert waiting.result() == 8


def test_a_thread_has_no_signal_and_an_empty_context():
    variable.set("of the test")
    found: Future = Future()

    def look():
        found.set_result((variable.get(), signal.pthread_sigmask(signal.SIG_BLOCK, [])))

    thread = new_thread(look, "name")
    thread.start()
    join(thread)
    value, masked = found.result()
    assert value == "empty"
    assert {signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD} <= masked
    assert not {signal.SIGSEGV, signal.SIGABRT} & masked, "faulthandler wants these"


def test_threads_that_were_not_started_end_at_once():
    before = threading.active_count()
    threads = Threads(2, "name")
    threads.shutdown()
    threads.start()
    for _ in range(2):
        threads.shutdown()
    assert threading.active_count() == before
