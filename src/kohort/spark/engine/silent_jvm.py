# SPDX-License-Identifier: Apache-2.0
"""A JVM that starts without a word: what it says of itself at every start is kept from stderr, and
what we say better at its end.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JNetworkError

NOISE = (
    b"WARNING: Using incubator modules",
    b"Using Spark's default log4j profile",
    b"Setting default log level",
    b"To adjust logging level",
    b"WARN NativeCodeLoader",
    b"Terminating due to java.lang.OutOfMemoryError",
)
_STDERR = 2
_PY4J = "java_gateway"


@contextmanager
def quiet_start() -> Iterator[None]:
    """Whatever process starts in the block has a pipe for stderr, and all that comes through it
    goes to ours, but NOISE. The process may outlive the block.
    """
    ours = os.dup(_STDERR)
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_copy, args=(reading, ours), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, _STDERR)


def quiet_end(accumulators: Any) -> None:
    """What PySpark and Py4J show when their JVM is gone is kept from stderr: traces of whoever was
    waiting for it, who is told so, and of threads in which nobody waits.
    """
    show = accumulators.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            show(request, client_address)

    accumulators.handle_error = handle_error
    logging.getLogger().addFilter(_is_no_lost_answer)


def _is_no_lost_answer(record: logging.LogRecord) -> bool:
    """Py4J writes into the root logger that a connection broke, whoever it tells besides. A thread
    of its own asks the JVM to forget objects, up to the end of the process.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not (record.module == _PY4J and isinstance(error, Py4JNetworkError))


def _copy(reading: int, writing: int) -> None:
    with open(reading, "rb") as lines, open(writing, "wb", buffering=0) as stderr:
        for line in lines:
            if not any(noise in line for noise in NOISE):
                stderr.write(line)
