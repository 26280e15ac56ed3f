# SPDX-License-Identifier: Apache-2.0
"""The queue of what happens next, and the only time there is.

Everything that happens in a simulated run is an entry of one queue: bytes that arrive, timers,
threads that end, faults. Entries of the same instant come in the order in which they were made, so
a run depends on its seed alone.

A `VirtualLoop` is an asyncio loop on that queue. A process of the simulated world has one of its
own: it can stand still, and it can die with everything it had planned.
"""

import asyncio
import heapq
from asyncio import events as asyncio_events
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from itertools import count
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
MICROS = 1_000_000  # in a second
EPOCH_SECONDS = 1_700_000_000  # the time of day when a run begins, since 1970
AT_ONCE_MAX = 100_000  # entries of one instant; the most that a seed has needed are some hundreds


class Listening(Protocol):
    """The network, as a process that wants to listen sees it."""

    def listen(
        self, loop: "VirtualLoop", factory: Callable[[], Any], host: str, port: int
    ) -> Any: ...


class Events:
    """The queue. `now` is in microseconds since the begin of the run."""

    def __init__(self) -> None:
        self.now = 0
        self.taken = 0  # entries that have happened
        self._taken_before = 0  # this instant
        self._heap: list[tuple[int, int, VirtualLoop, asyncio.Handle]] = []
        self._numbers = count()

    def add(self, when: int, loop: "VirtualLoop", handle: asyncio.Handle) -> None:
        """Have a handle run at an instant, or now if that is over."""
        heapq.heappush(self._heap, (max(when, self.now), next(self._numbers), loop, handle))

    def run(self, until: int) -> None:
        """Let everything happen that is to happen before an instant. Raises RuntimeError where time
        does not pass, since somebody goes on without waiting for anything.
        """
        heap = self._heap
        while heap and heap[0][0] < until:
            when, number, loop, handle = heapq.heappop(heap)
            if handle.cancelled() or not loop.alive:
                continue
            if loop.busy_until > when:  # it keeps its place among those that wait as well
                heapq.heappush(heap, (loop.busy_until, number, loop, handle))
                continue
            if when > self.now:
                self.now = when
                self._taken_before = self.taken
            elif self.taken - self._taken_before > AT_ONCE_MAX:
                raise RuntimeError(f"time stands still at {when} us: {handle!r}")
            self.taken += 1
            loop.run_one(handle)
        self.now = max(self.now, until)


def virtual_loop(
    events: Events, failed: Callable[[BaseException], None], network: Listening | None = None
) -> "VirtualLoop":
    """The loop of a process. What asyncio asks of a loop and nobody here needs is missing."""
    return VirtualLoop(events, failed, network)  # type: ignore[abstract]


class VirtualLoop(asyncio.AbstractEventLoop):
    """The event loop of one process of the simulated world.

    `failed` is called with every exception that nothing in the process has caught.
    """

    def __init__(
        self, events: Events, failed: Callable[[BaseException], None], network: Listening | None
    ) -> None:
        self.events = events
        self.alive = True
        self.busy_until = 0  # the process stands still until then
        self.beside = False  # what happens now is a thread's work
        self.post_late_us = 0  # what threads tell the loop now is heard so much later
        self._failed = failed
        self._network = network

    @property
    def now(self) -> int:
        """Microseconds. Ahead of the queue while something in this process takes its time."""
        return max(self.events.now, self.busy_until)

    def stand_still(self, duration_us: int) -> None:
        """Nothing in this process happens for a while; what arrives meanwhile waits. One that
        stands still already does not stand still any longer than the longer of the two.
        """
        self.busy_until = max(self.busy_until, self.events.now + duration_us)

    def spend(self, duration_us: int) -> None:
        """What happens now takes so long, unless a thread does it beside the loop."""
        if not self.beside:
            self.busy_until = self.now + duration_us

    def run_one(self, handle: asyncio.Handle) -> None:
        asyncio_events._set_running_loop(self)  # noqa: SLF001  (the documented way for a loop)
        try:
            handle._run()  # noqa: SLF001
        finally:
            asyncio_events._set_running_loop(None)  # noqa: SLF001

    def run_inside(self, function: Callable[[], T]) -> T:
        """Call something that asks for the running loop, also from within another one."""
        before = asyncio_events._get_running_loop()  # noqa: SLF001
        asyncio_events._set_running_loop(self)  # noqa: SLF001
        try:
            return function()
        finally:
            asyncio_events._set_running_loop(before)  # noqa: SLF001

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a coroutine as a task; what it raises ends the run."""
        task = self.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self.now / MICROS

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self.alive

    def is_closed(self) -> bool:
        return not self.alive

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        of_the_dead = not self.alive and "never retrieved" in str(context.get("message"))
        if error is not None and not of_the_dead:
            self._failed(error)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.events.add(self.now, self, handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.events.add(self.now + self.post_late_us, self, handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # Whoever goes on to wait for the rest of a microsecond would do so for ever without the 1.
        duration_us = max(round(delay * MICROS), 1) if delay > 0 else 0
        return self.call_at_us(self.now + duration_us, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at_us(round(when * MICROS), callback, *args, context=context)

    def call_at_us(
        self, when: int, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As `call_at`, in microseconds."""
        handle = asyncio.TimerHandle(when / MICROS, callback, args, self, context)
        self.events.add(when, self, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to do: a cancelled handle is passed over when its time comes."""

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], **more: Any
    ) -> "asyncio.Task[T]":
        return asyncio.Task(coro, loop=self, **more)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """The work is done at once: nobody asks for it but a broker that stops."""
        assert executor is None
        future = self.create_future()
        future.set_result(func(*args))
        return future

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **_: Any
    ) -> Any:
        assert self._network is not None
        return self._network.listen(self, protocol_factory, host, port)
