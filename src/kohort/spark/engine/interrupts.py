# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while Spark works: asked for once, it ends the work between two calls of the JVM.

An exception in the middle of a call would leave a broken connection, and pages of traces.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error only covers Ctrl-C up: it ends Spark's jobs, and whoever still waits for one
    is told that this has failed while the interrupt is on its way.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


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
        if signal.getsignal(signal.SIGINT) is ask:  # Spark sets one that ends its jobs
            signal.signal(signal.SIGINT, before)
