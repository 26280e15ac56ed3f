"""What must be read of logs before somebody can be answered: a slice at a time, between the turns
of the loop, so that everybody else is served meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kohort.errors import ApiError
from kohort.server.partitions import Partition
from kohort.server.scheduler import BACKGROUND, NEW, Over, Scheduler
from kohort.server.tokens import Token
from kohort.server.unread import Unread, UnreadError
from kohort.terms import Offset

STEP_BATCHES = 200


class FileHeaders(NamedTuple):
    """The headers of the file that holds an offset, or of all files of a partition."""

    partition: Partition
    start: Offset | None

    def read_on(self, most: int) -> bool:
        """Read at most so many; true while there may be more."""
        return self.partition.log.index_some(self.start, most)


class Readings:
    """Who waits for what. They take turns: a long one does not keep short ones waiting."""

    line = BACKGROUND

    def __init__(self, scheduler: Scheduler) -> None:
        self.had_ns = NEW
        self._scheduler = scheduler
        self._waiting: dict[Unread, list[Callable[[], None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def when_read(self, unread: Sequence[Unread], go_on: Callable[[], None]) -> None:
        """Call `go_on`, which must not raise, once all of it is read. A log that cannot be read
        is done, too: whoever asks it again is told why.
        """
        left = len(unread)

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                go_on()

        for one in unread:
            self._waiting.setdefault(one, []).append(done)
        if self._waiting:
            self._scheduler.enter(self)

    def attempt(self, act: Callable[[], None], token: Token) -> None:
        """Call `act`, which may raise UnreadError: then again once that is read. Those who wait for
        the same go on in the order in which they came. What else it raises, its token is told.
        """
        try:
            act()
        except UnreadError as error:
            self.when_read([error.unread], lambda: self.attempt(act, token))
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            token.fail(error)

    def run(self, over: Over) -> bool:
        """Read on, in steps."""
        while self.step():
            if over():
                return True
        return False

    def step(self) -> bool:
        """Read a part of the next log; true while there is more to read."""
        unread = next(iter(self._waiting), None)
        if unread is None:
            return False
        waiting = self._waiting.pop(unread)
        try:
            more = unread.read_on(STEP_BATCHES)
        except ApiError:
            more = False
        if more:
            self._waiting[unread] = waiting
        else:
            _go_on(waiting)
        return bool(self._waiting)

    def forget(self, partition: Partition) -> None:
        """It is gone, with its topic, and so is its log."""
        for one in [one for one in self._waiting if one.partition is partition]:
            _go_on(self._waiting.pop(one, []))


def _go_on(waiting: list[Callable[[], None]]) -> None:
    for read in waiting:
        read()
