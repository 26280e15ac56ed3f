"""Ctrl-C while Spark works: asked for once, it ends the work between two calls of the JVM.

An exception in the middle of a call would leave a broken connection, and pages of traces.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asked_to_end() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets while the block lasts; a second Ctrl-C is a KeyboardInterrupt.

    Nobody is asked in a thread that gets no signals, nor where they are ignored.
    """
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before in {signal.SIG_IGN, None}:
        yield asked
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
