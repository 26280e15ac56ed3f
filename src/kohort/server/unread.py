"""What must be read of a log before somebody can be answered, and is too much for one turn."""

from typing import Protocol

AT_ONCE_BATCHES = 16
"""So many headers of a log are read at once, and then nobody waits: a request may name a thousand
logs. Whoever needs more of them waits for `reading.py`.
"""


class Unread(Protocol):
    """A part of a log. Two that are equal are the same part: it is read once for all who wait."""

    @property
    def partition(self) -> object: ...
    def read_on(self, most: int) -> bool:
        """Read at most so many batches; true while there may be more. Raises ApiError where the log
        cannot be read.
        """

    def __hash__(self) -> int: ...


class UnreadError(Exception):
    """Nothing has been done, because something must be read first. Try again once it is read."""

    def __init__(self, unread: Unread) -> None:
        super().__init__(f"{unread} must be read first")
        self.unread = unread
