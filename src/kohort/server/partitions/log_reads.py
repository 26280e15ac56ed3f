# SPDX-License-Identifier: Apache-2.0
"""What must be read of logs before somebody can be answered: a slice at a time, between the turns
of the loop, so that everybody else is served meanwhile.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kohort.errors import ApiError
from kohort.server.partitions.log_reader import PendingRead, PendingReadError
from kohort.server.partitions.partition import Partition
from kohort.server.requests.reply_tokens import ReplyToken
from kohort.server.scheduler import BACKGROUND, NEW, Over, Scheduler
from kohort.terms import Offset

STEP_BATCHES = 200


class FileHeaders(NamedTuple):
    """The headers of the file that holds an offset, or of all files of a partition."""

    partition: Partition
    start: Offset | None

    def read_on(self, most: int) -> bool:
        """Read at most so many; true while there may be more."""
        return self.partition.log.index_some(self.start, most)


class _Writer(NamedTuple):
    """Who waits to write, and for what to be read; None if only for those in front."""

    act: Callable[[], None]
    token: ReplyToken
    unread: PendingRead | None


class LogReadQueue:
    """Who waits for what. They take turns: a long one does not keep short ones waiting."""

    line = BACKGROUND

    def __init__(self, scheduler: Scheduler) -> None:
        self.had_ns = NEW
        self._scheduler = scheduler
        self._waiting: dict[PendingRead, list[Callable[[], None]]] = {}
        self._writers: dict[Partition, deque[_Writer]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting or self._writers)

    def when_read(self, unread: Sequence[PendingRead], go_on: Callable[[], None]) -> None:
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

    def attempt(self, act: Callable[[], None], token: ReplyToken) -> None:
        """Call `act`, which may raise PendingReadError: then again when it is its turn. What else
        it raises, its token is told.
        """
        try:
            act()
        except PendingReadError as error:
            self.wait_to_write(error, act, token)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            token.fail(error)

    def wait_to_write(
        self, error: PendingReadError, act: Callable[[], None], token: ReplyToken
    ) -> None:
        """Have `act` called when what it needs is read, behind all who wait to write to the same
        partition. Until then nobody else writes there whose order counts: a marker would come
        before a batch of its transaction.
        """
        partition: Partition = error.partition
        partition.writers_wait = True
        self._writers.setdefault(partition, deque()).append(_Writer(act, token, error.unread))
        self._scheduler.enter(self)

    def run(self, over: Over) -> bool:
        """Read on, in steps."""
        while self.step():
            if over():
                return True
        return False

    def step(self) -> bool:
        """Read a part of the next log, or let the next one write; true while there is more."""
        unread = next(iter(self._waiting), None)
        if unread is not None:
            waiting = self._waiting.pop(unread)
            if _is_more(unread):
                self._waiting[unread] = waiting
            else:
                _go_on(waiting)
        partition = next(iter(self._writers), None)
        if partition is not None:
            writers = self._writers[partition] = self._writers.pop(partition)  # the last in turn
            self._let_write(partition, writers)
        return bool(self)

    def _let_write(self, partition: Partition, writers: "deque[_Writer]") -> None:
        """Read on for the first of them, or call it."""
        first = writers[0]
        if first.unread is not None and _is_more(first.unread):
            return
        partition.writers_wait = False
        try:
            first.act()
        except PendingReadError as error:
            writers[0] = first._replace(unread=error.unread)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            first.token.fail(error)
            writers.popleft()
        else:
            writers.popleft()
        partition.writers_wait = bool(writers)
        if not writers:
            self._writers.pop(partition, None)

    def forget(self, partition: Partition) -> None:
        """It is gone, with its topic, and so is its log. Whoever waits to write finds that out."""
        for unread in [unread for unread in self._waiting if unread.partition is partition]:
            _go_on(self._waiting.pop(unread, []))
        writers = self._writers.pop(partition, deque())
        partition.writers_wait = False
        for writer in writers:
            try:
                writer.act()
            except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
                writer.token.fail(error)


def _is_more(unread: PendingRead) -> bool:
    """Read on, and say whether there is more. A log that cannot be read is done."""
    try:
        return unread.read_on(STEP_BATCHES)
    except ApiError:
        return False


def _go_on(waiting: list[Callable[[], None]]) -> None:
    for read in waiting:
        read()
