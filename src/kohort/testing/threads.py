# SPDX-License-Identifier: Apache-2.0
"""Threads of a broker under test. A test may patch `threading.Thread`, and signals are the test's.

The handler of a signal may raise in the main thread while it starts one. So whoever needs a thread
has a name for it first and starts it then: a `close` afterwards finds it.
"""

import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, Self, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_SYNCHRONOUS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")
_Task = tuple["Future[Any]", Callable[[], Any]]


class _OwnThread(Thread):
    """A thread whose methods are those of the standard library, whatever a test patches."""

    start = Thread.start
    run = Thread.run
    join = Thread.join


def new_thread(target: Callable[[], None], name: str) -> Thread:
    """A thread, not started, to which no signal of the process is given: the main thread waits for
    those, as pytest-timeout's. Its context is empty, so it keeps nothing of the test.
    """

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            own = {getattr(signal, name) for name in _SYNCHRONOUS if hasattr(signal, name)}
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - own)
        target()

    return _OwnThread(target=Context().run, args=(run,), name=name, daemon=True)


def join(thread: Thread) -> None:
    """Wait for its end. One whose start was interrupted either never begins, or ends by itself."""
    with suppress(RuntimeError):  # it was not started
        thread.join()


class Threads(ThreadPoolExecutor):
    """As many threads as were asked for, from `start` on: its base class makes them one by one, by
    whatever is called `threading.Thread` then. They end with `shutdown`.
    """

    def __init__(self, count: int, name: str) -> None:
        super().__init__(count)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._over = False
        self._workers = [new_thread(self._work, f"{name}_{index}") for index in range(count)]

    def start(self) -> Self:
        """Begin all of them. Raises RuntimeError where the system has no room for one; those that
        have begun end then.
        """
        try:
            for worker in self._workers:
                worker.start()
        except BaseException:
            self.shutdown(wait=False)
            raise
        return self

    def submit(
        self,
        fn: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> "Future[Result]":
        if self._over:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Result] = Future()
        self._tasks.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002, ARG002  (its base class has them)
        self._over = True
        for _ in self._workers:  # again, where an earlier call was interrupted
            self._tasks.put(None)
        if wait:
            for worker in self._workers:
                join(worker)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001  (whoever waits for it has to know)
                    future.set_exception(error)
