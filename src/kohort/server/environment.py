# SPDX-License-Identifier: Apache-2.0
"""What a broker takes from the machine under it: the time, the disk, ids, and threads.

The defaults are the real ones. A simulator and tests with a clock of their own give others.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from kohort.runtime.clocks import perf_counter_ns
from kohort.runtime.observers import Observer
from kohort.server.clock import Clock
from kohort.server.descriptors import Limit, open_file_limit
from kohort.server.opening import new_uuid
from kohort.storage.files import Files


def _threads(count: int, name: str) -> Executor:
    return ThreadPoolExecutor(count, thread_name_prefix=name)


@dataclass(frozen=True)
class BrokerEnvironment:
    """`clock` makes the clock of one broker, `threads` a pool of so many threads with this name.
    `files` is the disk that a data directory is on; None is the real one. `stopwatch` counts the
    nanoseconds that work on the loop takes. Lines for `observe` are bounded in length and number
    (`log_lines.py`) unless `bounded` is false. `limit` says how many descriptors there are.
    """

    clock: Callable[[], Clock] = Clock
    files: Files | None = None
    limit: Callable[[], Limit] = open_file_limit
    new_id: Callable[[], bytes] = new_uuid
    threads: Callable[[int, str], Executor] = _threads
    stopwatch: Callable[[], int] = perf_counter_ns
    observe: Observer = logging.getLogger("kohort")  # noqa: RUF009  (the same one each time)
    bounded: bool = True
