"""Logs that must be read to their end before somebody can be answered: a slice at a time, between
the turns of the loop, so that everybody else is served meanwhile.
"""

from collections.abc import Callable, Sequence

from kohort.errors import ApiError
from kohort.server.partitions import Partition

AT_ONCE_BATCHES = 1000  # of a log; most have fewer, and then nobody waits
_SLICE_BATCHES = 20_000


class Readings:
    """Who waits for which logs. They take turns: a long one does not keep short ones waiting."""

    def __init__(self) -> None:
        self._waiting: dict[Partition, list[Callable[[], None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def when_read(self, partitions: Sequence[Partition], go_on: Callable[[], None]) -> None:
        """Call `go_on`, which must not raise, once all of them are read. A log that cannot be read
        is done, too: whoever asks it again is told why.
        """
        left = len(partitions)

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                go_on()

        for partition in partitions:
            self._waiting.setdefault(partition, []).append(done)

    def step(self) -> bool:
        """Read a slice of the next log; true while there is more to read."""
        partition = next(iter(self._waiting), None)
        if partition is None:
            return False
        waiting = self._waiting.pop(partition)
        try:
            more = partition.read_on(_SLICE_BATCHES)
        except ApiError:
            more = False
        if more:
            self._waiting[partition] = waiting
        else:
            _go_on(waiting)
        return bool(self._waiting)

    def forget(self, partition: Partition) -> None:
        """It is gone, with its topic, and so is its log."""
        _go_on(self._waiting.pop(partition, []))


def _go_on(waiting: list[Callable[[], None]]) -> None:
    for read in waiting:
        read()
