"""Foreign code on a thread of its own, which is given up when it takes too long.

All threads share one lock with the loop. If there were one for each group that waits, none would
end in its time, and nobody would be served: a few run at once, and the others stand in a `Line`.

Python cannot end a thread. An exception is thrown into it, which ends any loop of Python; one in C
goes on, without anybody waiting for it. So that such threads do not pile up, `Strays` says how many
may do so.
"""

import asyncio
import ctypes
from collections import deque
from collections.abc import Callable
from threading import Thread

from kohort.coordinator.effects import Errand
from kohort.errors import KohortError
from kohort.runtime.observers import Observer
from kohort.server.background_tasks import Outing

LIMIT_SECONDS = 10.0
END_SECONDS = 1.0  # in which a thread that was given up ends, if it does
AT_ONCE = 2  # threads of one assignor that run at the same time: one may be stuck
STRAYS_MAX = 4  # threads that one assignor may leave behind, one for each group at most


class _Overdue(BaseException):
    """Thrown into a thread; nothing but its first frame is meant to catch it."""


class Foreign:
    """One errand on its thread. `done` is called there when it has ended by itself."""

    def __init__(self, outing: Outing, done: Callable[["Foreign"], None]) -> None:
        self.outing = outing
        self._done = done
        self._thread = Thread(target=self._run, name="kohort-foreign", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            while self.outing.step():
                pass
            self._done(self)
        except _Overdue:
            pass

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """It has taken too long: nobody waits for it any more."""
        ident = self._thread.ident
        if ident is not None and self._thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(ident), ctypes.py_object(_Overdue)
            )


class Line:
    """Outings that wait for others of the same code to come back, the first of them in front."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[Outing]] = {}

    def enter(self, outing: Outing) -> bool:
        """Whether an outing may begin. Else `leave` gives it back when it may."""
        code = outing.errand.foreign
        if self._running.get(code, 0) >= AT_ONCE:
            self._waiting.setdefault(code, deque()).append(outing)
            return False
        self._running[code] = self._running.get(code, 0) + 1
        return True

    def leave(self, outing: Outing) -> Outing | None:
        """An outing that had begun is over. The next one, which begins in its place."""
        code = outing.errand.foreign
        waiting = self._waiting.get(code)
        if waiting:
            return waiting.popleft()
        self._waiting.pop(code, None)
        self._running[code] -= 1
        return None


class Strays:
    """Threads that were given up and have not ended."""

    def __init__(self) -> None:
        self._those: list[Foreign] = []

    def add(self, foreign: Foreign) -> None:
        self._those.append(foreign)

    def check(self, errand: Errand) -> None:
        """Raises KohortError while an errand may not begin: it has a thread that has not ended, or
        other errands have, with the same code of others.
        """
        self._those = [foreign for foreign in self._those if foreign.alive]
        others = [foreign.outing.errand for foreign in self._those]
        of_code = [other for other in others if other.foreign == errand.foreign]
        if any(other.key == errand.key for other in of_code) or len(of_code) >= STRAYS_MAX:
            raise KohortError(
                f"threads of {errand.foreign} that were given up and have not ended:"
                f" {len(of_code)}; it is not called again before they have"
            )


def call_from_thread(
    loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object
) -> None:
    """Have a function called in a loop, unless it has ended meanwhile."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)


class ForeignErrands:
    """The errands of foreign code that are under way, each with its limit.

    `over` is told in the loop of each that has come back, or was given up. `strays` are threads
    that may have begun before.
    """

    def __init__(self, strays: Strays, over: Callable[[Outing], None], observe: Observer) -> None:
        self._strays = strays
        self._over = over
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._line = Line()
        self._running: dict[Foreign, asyncio.TimerHandle] = {}
        self._ended = False

    def begin(self, outing: Outing) -> None:
        """Start a thread for an errand, at once or when it is its turn."""
        if self._line.enter(outing):
            self._start(outing)

    def end(self) -> None:
        """Nobody waits for any of them any more."""
        for running, timer in self._running.items():
            timer.cancel()
            running.end()
        self._running.clear()
        self._ended = True

    def _start(self, outing: Outing) -> None:
        try:
            self._strays.check(outing.errand)
        except KohortError as error:
            outing.outcome = error
            self._loop.call_soon(self._leave, outing)
            return

        def done(running: Foreign) -> None:
            call_from_thread(self._loop, self._after, running)

        running = Foreign(outing, done)
        self._running[running] = self._loop.call_later(
            LIMIT_SECONDS, self._is_late, running, LIMIT_SECONDS
        )
        running.start()

    def _is_late(self, running: Foreign, limit_seconds: float) -> None:
        running.end()
        self._strays.add(running)
        self._loop.call_later(END_SECONDS, self._tell_of_stray, running)
        running.outing.give_up(limit_seconds)
        self._after(running)

    def _tell_of_stray(self, running: Foreign) -> None:
        if running.alive:
            self._observe.warning(
                f"assignor {running.outing.errand.foreign} was given up and has not ended: its"
                " thread runs on, and may cost a core until the broker ends"
            )

    def _after(self, running: Foreign) -> None:
        timer = self._running.pop(running, None)
        if timer is not None:
            timer.cancel()
            self._leave(running.outing)

    def _leave(self, outing: Outing) -> None:
        if self._ended:
            return
        following = self._line.leave(outing)
        if following is not None:
            self._start(following)
        self._over(outing)
