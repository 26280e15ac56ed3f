"""Foreign code on a thread of its own, which is given up when it takes too long.

Python cannot end a thread. An exception is thrown into it, which ends any loop of Python; one in C
goes on, without anybody waiting for it.
"""

import ctypes
from collections.abc import Callable
from threading import Thread

from kohort.server.errands import Outing

LIMIT_SECONDS = 10.0


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

    def end(self) -> None:
        """It has taken too long: nobody waits for it any more."""
        ident = self._thread.ident
        if ident is not None and self._thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(ident), ctypes.py_object(_Overdue)
            )
