"""What must be read of a log before somebody can be answered, and is too much for one turn."""

from typing import Any, Protocol

AT_ONCE_BATCHES = 16
"""So many headers of a log are read at once, and then nobody waits: a request may name a thousand
logs. Whoever needs more of them waits for `log_reads.py`.
"""


class PendingRead(Protocol):
    """A part of a log. Two that are equal are the same part: it is read once for all who wait."""

    @property
    def partition(self) -> object: ...
    def read_on(self, most: int) -> bool:
        """Read at most so many batches; true while there may be more. Raises ApiError where the log
        cannot be read.
        """

    def __hash__(self) -> int: ...


class PendingReadError(Exception):
    """Nothing has been done: something must be read first, or nothing but that others wait to write
    there already. Try again when it is your turn (`Readings.wait_to_write`).
    """

    def __init__(self, partition: Any, unread: PendingRead | None = None) -> None:
        super().__init__(f"{partition} must be read first")
        self.partition = partition
        self.unread = unread
