"""Foreign code on a thread of its own, which is given up when it takes too long.

All threads share one lock with the loop. If there were one for each group that waits, none would
end in its time, and nobody would be served: a few run at once, and the others stand in a `Line`.

Python cannot end a thread. An exception is thrown into it, which ends any loop of Python; one in C
goes on, without anybody waiting for it. So that such threads do not pile up, `Strays` says how many
may do so.
"""

import ctypes
from collections import deque
from collections.abc import Callable
from threading import Thread

from kohort.coordinator.effects import Errand
from kohort.errors import KohortError
from kohort.server.errands import Outing

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
