# SPDX-License-Identifier: Apache-2.0
"""When a run is small: every limit, and whether the driver may do the work by itself.

The driver reads, replays and writes few rows itself, and starts no task of Spark. A driver that may
not, because it has no memory to spare or no access to the log, leaves all to the workers for as
long as its run lasts. A run asks `is_few` wherever it decides; the rows are the same either way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# What the driver does by itself.
DRIVER_READ_BYTES = 256 << 20
"""Rows of a source, decoded: the most that one process reads into memory."""
DRIVER_LOG_BYTES = 8 << 20
"""New bytes of log directories: reading so many takes less time than starting a task for them."""
DRIVER_TOPIC_RECORDS = 50_000
"""The same for new records of a live cluster, which does not say how many bytes they have."""
DRIVER_SCAN_ROWS = 300_000
"""Some columns of so many rows, to see how complete the log is."""
DRIVER_TABLE_ROWS = 100_000
"""New rows and partitions of groups: any table then has less than a million rows, which the driver
holds. Below it a query is one task.
"""
DRIVER_REPLAY_ROWS = 200_000
"""New rows, of which so many records and bytes may be about members: their files are a tenth of
their size in memory, and a record of a large classic group has all its members.
"""
DRIVER_REPLAY_RECORDS = 20_000
DRIVER_REPLAY_BYTES = 4 << 20
DRIVER_WALK_BYTES = 32 << 20
"""Walking over so many bytes and folders of user topics takes less time than starting a worker."""
DRIVER_WALK_FOLDERS = 1_000

# What is written as one file.
ONE_FILE_ROWS = 200_000
ONE_FILE_REBALANCES = 5_000
"""A rebalance names every partition that has moved: of a large group it takes ten kilobytes."""

# How the JVM is set up.
QUICK_JVM_ROWS = 1_000_000
"""For so many rows the JVM needs no second compiler."""
INTERPRETED_ROWS = 35_000
"""For so many rows plans are interpreted: the cost of compiling them is that of interpreting so
many. A row that an earlier run has kept, with the last commits of a key, counts as KEPT_WEIGHT.
"""
KEPT_WEIGHT = 4

_lock = Lock()
_shut = 0
"""How many runs of this process have shut them. Another run at that time does without them, too."""


def is_few(amount: int, most: int) -> bool:
    """Whether the driver may take so much for itself."""
    return not _shut and amount <= most


def are_open() -> bool:
    """Whether the driver may take anything for itself."""
    return not _shut


@contextmanager
def spark_only(asked: bool = True) -> Iterator[None]:  # noqa: FBT001, FBT002  (named like the option)
    """Leave all rows to Spark's workers while the block lasts, if that is asked for."""
    global _shut  # noqa: PLW0603  (it is the process that has them)
    with _lock:
        _shut += asked
    try:
        yield
    finally:
        with _lock:
            _shut -= asked
