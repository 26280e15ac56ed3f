"""Threads of a broker under test. A test may patch `threading.Thread`, and signals are the test's.

Also how the thread of its event loop begins: with no signal, and nothing of the test's context.
"""

import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_SYNCHRONOUS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")
_Task = tuple["Future[Any]", Callable[[], Any]]


def start_thread(target: Callable[[], None], name: str) -> Thread:
    """Start a thread to which no signal of the process is given: the main thread waits for those,
    as pytest-timeout's. Its context is empty, so it keeps nothing of the test that came first.
    """

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            own = {getattr(signal, name) for name in _SYNCHRONOUS if hasattr(signal, name)}
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - own)
        target()

    thread = Thread(target=Context().run, args=(run,), name=name, daemon=True)
    thread.start()
    return thread


class Threads(ThreadPoolExecutor):
    """As many threads as were asked for, from the beginning on: its base class makes them one by
    one, by whatever is called `threading.Thread` then. They end with `shutdown`.
    """

    def __init__(self, count: int, name: str) -> None:
        super().__init__(count)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._over = False
        self._workers = [start_thread(self._work, f"{name}_{index}") for index in range(count)]

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
                worker.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001  (whoever waits for it has to know)
                    future.set_exception(error)
