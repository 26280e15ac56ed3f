# SPDX-License-Identifier: Apache-2.0
"""An event loop in a thread of its own, for callers that wait: each call is a task of that loop.

A caller that is interrupted while it waits, as by Ctrl-C, has its call cancelled. Others go on.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from threading import Lock, Thread, current_thread
from typing import Any, NamedTuple, TypeAlias, TypeVar

Result = TypeVar("Result")
Work: TypeAlias = Callable[[], Awaitable[Any]]


class LoopEndedError(RuntimeError):
    """The loop ends, or has ended: a call of it has no result."""


class _Loop(NamedTuple):
    """A running loop; what `last` is given is its last work."""

    loop: asyncio.AbstractEventLoop
    last: "asyncio.Future[Work]"


class EventLoopThread:
    """Runs from its constructor until `end`. The thread does not keep a program from ending.

    The constructor raises what keeps the loop from running, as OSError without a free descriptor.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pid = os.getpid()
        self._lock = Lock()
        self._ends = False
        running: Future[_Loop] = Future()
        self._thread = Thread(target=_run_loop, args=(running,), name=name, daemon=True)
        self._thread.start()
        self._running = running.result()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._running.loop

    def run(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Call it in the loop, and wait for its result.

        Raises what the call raises, LoopEndedError where it has no result since the loop ends, and
        RuntimeError where nobody could ever answer: in the thread itself, and in a forked process.
        """
        if self._pid != os.getpid():
            raise RuntimeError(f"{self._name} is of another process: make one for each process")
        if current_thread() is self._thread:
            raise RuntimeError(f"{self._name} cannot wait in its own thread: use its event loop")
        with self._lock:  # a call behind the last work would never be answered
            if self._ends:
                raise LoopEndedError(self._name)
            waiting = asyncio.run_coroutine_threadsafe(_result(call), self.loop)
        try:
            return waiting.result()
        except CancelledError:
            raise LoopEndedError(self._name) from None
        finally:
            waiting.cancel()  # this thread was interrupted, or it has its result

    def end(self, last: Work) -> None:
        """Do the last work, cancel the calls that have no result, and wait for the end of that."""
        self.let_end(last)
        if self._pid == os.getpid() and current_thread() is not self._thread:
            self._thread.join()

    def let_end(self, last: Work) -> None:
        """The same without the wait, as for an object that is deleted in whatever thread."""
        if self._pid != os.getpid():
            return  # a forked process has only the thread that forked
        with self._lock:
            if not self._ends:
                self._ends = True
                self.loop.call_soon_threadsafe(self._running.last.set_result, last)


def _run_loop(running: "Future[_Loop]") -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        last: asyncio.Future[Work] = loop.create_future()
        running.set_result(_Loop(loop, last))
        await (await last)()

    try:
        with asyncio.Runner() as runner:
            runner.run(main())
    except BaseException as error:
        if running.done():
            raise
        running.set_exception(error)  # the constructor waits for it


async def _result(call: Callable[[], Awaitable[Result]]) -> Result:
    return await call()
