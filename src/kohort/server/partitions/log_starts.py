# SPDX-License-Identifier: Apache-2.0
"""Where logs begin: starts that are on their way to later offsets, and wait for the disk.

A start moves in two ways, and both are made durable beside the loop before the log begins later in
memory. DeleteRecords notes the starts of all logs that wait, in one file of the data directory. The
files of a log are removed from the front only after its own folder says where it begins: so nothing
but that folder is needed to know that they are not missing.
"""

from collections.abc import Callable, Iterator
from functools import partial

from kohort.errors import ApiError, Broken, ErrorCode, KohortError, StorageError, UnsettledError
from kohort.server.partitions.logs import Logs
from kohort.server.partitions.partition import Partition
from kohort.terms import Offset, PartitionIndex

SYNC_SLICE_LOGS = 64  # logs that are synced in one piece of work: others wait for the next one


class StartMove:
    """The start of one log on its way. `error` says why it has not moved, or is None; `finish` is
    called once, in the loop, when that is known. It must not raise.
    """

    __slots__ = ("error", "finish", "offset", "partition", "removes")

    def __init__(
        self,
        partition: Partition,
        offset: Offset,
        finish: Callable[["StartMove"], None],
        *,
        removes: bool = False,
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.finish = finish
        self.removes = removes  # the files before it
        self.error: KohortError | None = StorageError(f"the start of {partition} has not moved")


class LogStarts:
    """The starts that wait. `take` hands them out, `move_starts` makes them durable on any thread,
    and `end` takes them back; in between nobody touches them. `start_moved` hears of each log that
    begins later for good.
    """

    def __init__(self, start_moved: Callable[[Partition], None]) -> None:
        self.waiting: list[StartMove] = []
        self._start_moved = start_moved

    def move(self, move: StartMove) -> None:
        """Have a log begin later."""
        self.waiting.append(move)

    def take(self) -> list[StartMove]:
        """Those of one piece of work: as many as it takes to sync so many logs."""
        room = SYNC_SLICE_LOGS
        for count, move in enumerate(self.waiting):
            if move.removes or move.offset > move.partition.log.synced:
                room -= 1
                if room < 0:
                    taken, self.waiting = self.waiting[:count], self.waiting[count:]
                    return taken
        taken, self.waiting = self.waiting, []
        return taken

    def forget(self, partition: Partition) -> None:
        """It is gone, with its topic, and so is its log."""
        gone = [move for move in self.waiting if move.partition is partition]
        if gone:
            self.waiting = [move for move in self.waiting if move.partition is not partition]
        for move in gone:
            move.error = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            move.finish(move)

    def end(self, moves: list[StartMove]) -> None:
        """Let logs begin where that is durable, and tell those who wait."""
        for move in moves:
            if move.error is None:
                move.partition.log.move_start(move.offset)
            elif isinstance(move.error, Broken | UnsettledError):
                move.partition.out_of_service(move.error)
        for move in moves:
            move.finish(move)
        moved = [move for move in moves if move.error is None and not move.removes]
        for partition in dict.fromkeys(move.partition for move in moved):
            self._start_moved(partition)


def move_starts(logs: Logs, moves: list[StartMove]) -> None:
    """Make it durable where logs begin. It may take long, and what comes of it is in `error`."""
    durable = list(_with_synced_logs(moves))
    deleted = [move for move in durable if not move.removes]
    if deleted:
        starts: dict[tuple[str, PartitionIndex], Offset] = {}
        for move in deleted:
            place = move.partition.topic.name, move.partition.index
            starts[place] = max(move.offset, starts.get(place, move.offset))
        _note(deleted, partial(logs.note_starts, starts))
    for move in durable:
        if move.removes:
            _note([move], partial(move.partition.log.note_start, move.offset))


def _with_synced_logs(moves: list[StartMove]) -> Iterator[StartMove]:
    """Those whose logs are durable up to the new start. One beyond the end of what a crash leaves
    would be taken for damage.
    """
    for move in moves:
        log = move.partition.log
        try:
            if move.offset > log.synced:
                log.sync()
        except Broken as error:
            move.error = error
        else:
            yield move


def _note(moves: list[StartMove], note: Callable[[], None]) -> None:
    outcome: KohortError | None = None
    try:
        note()
    except KohortError as error:
        outcome = error
    for move in moves:
        move.error = outcome
