# SPDX-License-Identifier: Apache-2.0
"""An event loop in a thread of its own, for a test that waits for it.

The test may patch what asyncio looks up at each call, freeze time, forbid sockets and change the
policy of event loops: none of it reaches this loop. Its time and its sockets are its own.
"""

import _socket
import asyncio
import os
from asyncio import Task, all_tasks, current_task, gather
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import Context
from queue import SimpleQueue
from selectors import DefaultSelector
from threading import get_ident
from typing import Any, Self, TypeVar

from kohort.errors import KohortError
from kohort.runtime import clocks
from kohort.testing.fork_safety import close_after_fork
from kohort.testing.threads import Threads, join, new_thread

__tracebackhide__ = True
Result = TypeVar("Result")
WORKERS = 2  # for what blocks: the end of a broker waits for its threads there


class OwnSocket(_socket.socket):
    """A socket that does not go by `socket.socket`, which a test may have replaced."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        close_after_fork(self)

    @classmethod
    def of(cls, other: _socket.socket) -> Self:
        """The same socket; the other object has it no longer."""
        return cls(other.family, other.type, other.proto, other.detach())

    def accept(self) -> tuple[Self, Any]:
        """As the class of the standard library has it."""
        descriptor, address = self._accept()  # type: ignore[attr-defined]
        return type(self)(self.family, self.type, self.proto, descriptor), address

    def dup(self) -> Self:
        """As the class of the standard library has it."""
        return type(self)(self.family, self.type, self.proto, _socket.dup(self.fileno()))


class OwnLoop(asyncio.SelectorEventLoop):
    """The loop of the platform's selector, with its own time, sockets and threads."""

    time = staticmethod(clocks.monotonic)

    def __init__(self) -> None:
        super().__init__(close_after_fork(DefaultSelector()))
        self.set_debug(False)  # PYTHONASYNCIODEBUG is about the test's own loops
        self.workers = Threads(WORKERS, "kohort-testing-worker")
        try:
            self.workers.start()  # no signal interrupts this thread
        except RuntimeError:
            self.close()
            raise
        self.set_default_executor(self.workers)

    def _make_self_pipe(self) -> None:
        """The base class does the same, by `socket.socketpair` and `socket.socket`."""
        if not hasattr(_socket, "socketpair"):  # Windows
            super()._make_self_pipe()  # type: ignore[misc]
            return
        mine, others = (OwnSocket.of(end) for end in _socket.socketpair())
        self._ssock, self._csock = mine, others
        for end in (mine, others):
            end.setblocking(False)
        self._internal_fds: int = getattr(self, "_internal_fds", 0) + 1
        self._add_reader(mine.fileno(), self._read_from_self)  # type: ignore[attr-defined]

    def _make_socket_transport(self, *arguments: Any, **named: Any) -> asyncio.Transport:
        """As the base class makes it, and without a word where it ends in a forked process."""
        make: Any = super()._make_socket_transport  # type: ignore[misc]
        transport: asyncio.Transport = close_after_fork(make(*arguments, **named), _forget_socket)
        return transport

    async def create_server(  # type: ignore[override]
        self, factory: Any, host: str, port: int, *, backlog: int = 100, **options: Any
    ) -> asyncio.Server:
        """`host` is an address. A port that was in use a moment ago may be bound again."""
        options.pop("reuse_address", None)
        sock = _new_socket(host)
        try:
            if os.name == "posix":
                sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            create: Any = super().create_server
            server: asyncio.Server = await create(factory, sock=sock, backlog=backlog, **options)
        except BaseException:
            sock.close()
            raise
        return server

    async def create_connection(  # type: ignore[override]
        self, factory: Any, host: str, port: int, **options: Any
    ) -> tuple[asyncio.Transport, Any]:
        """`host` is an address."""
        sock = _new_socket(host)
        try:
            await self.sock_connect(sock, (host, port))  # type: ignore[arg-type]
            create: Any = super().create_connection
            made: tuple[asyncio.Transport, Any] = await create(factory, sock=sock, **options)
        except BaseException:
            sock.close()
            raise
        return made


def _forget_socket(transport: Any) -> None:
    transport._sock = None  # noqa: SLF001  (its `__del__` goes by that; the socket is closed itself)


def _new_socket(host: str) -> OwnSocket:
    sock = OwnSocket(_socket.AF_INET6 if ":" in host else _socket.AF_INET, _socket.SOCK_STREAM, 0)
    sock.setblocking(False)
    return sock


class LoopThread:
    """Runs coroutines one after the other or at once, for any thread but its own.

    The thread makes the loop itself: no signal interrupts it there.
    """

    def __init__(self) -> None:
        self._loop: OwnLoop | None = None
        self._made: SimpleQueue[OwnLoop | BaseException] = SimpleQueue()
        self._closing = False
        self._thread = new_thread(self._run, "kohort-testing")

    def start(self) -> None:
        """Begin the thread. Raises what making the loop has raised, as OSError."""
        self._thread.start()
        made = self._made.get()
        if isinstance(made, BaseException):
            raise made

    def run(self, work: Coroutine[Any, Any, Result], *, cancel: bool = True) -> Result:
        """Wait for the result. Raises what the coroutine raises. Where the wait is interrupted, the
        coroutine is cancelled; without `cancel` it goes on to its end.
        """
        if get_ident() == self._thread.ident:
            work.close()
            raise RuntimeError("called in the thread of the broker, expected the test's")
        loop = self._loop
        if loop is None:
            work.close()
            raise RuntimeError("called before the thread was started")
        # No lock: where the handler of a signal raises behind its `acquire`, a lock is kept for
        # ever, and the loop would wait for it.
        ended: SimpleQueue[Task[Result]] = SimpleQueue()
        tasks: list[Task[Result]] = []

        def begin() -> None:
            tasks.append(loop.create_task(work))
            tasks[0].add_done_callback(ended.put)

        try:
            # What is opened by this work outlives the test: it keeps nothing of its context.
            Context().run(loop.call_soon_threadsafe, begin)
            task = ended.get()
        except BaseException:
            if cancel:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise
        if task.cancelled():
            raise CancelledError
        try:
            return task.result()
        except KohortError as error:  # where it was raised says nothing to a test
            raise error.with_traceback(None) from None

    def close(self) -> None:
        """End the thread; what still runs in it is cancelled. It may be called again where it was
        interrupted, and where `start` was.
        """
        self._closing = True
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(loop.stop)
        join(self._thread)

    def _run(self) -> None:
        try:
            loop = OwnLoop()
        except BaseException as error:  # noqa: BLE001  (whoever waits for the loop has to know)
            self._made.put(error)
            return
        try:
            self._loop = loop
            self._made.put(loop)
            if not self._closing:  # else whoever closes may not have seen the loop
                loop.run_forever()
            loop.run_until_complete(_cancel_others())
            loop.workers.shutdown()
        finally:
            loop.close()


async def _cancel_others() -> None:
    left = all_tasks() - {current_task()}
    for task in left:
        task.cancel()
    await gather(*left, return_exceptions=True)
