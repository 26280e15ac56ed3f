"""Short cuts for few rows: the driver reads, replays and writes them itself, and starts no task.

A driver that may not, because it has no memory to spare or no access to the log, shuts them for as
long as its run lasts. A run asks `is_few` wherever it decides; the rows are the same either way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

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
