# SPDX-License-Identifier: Apache-2.0
"""What a partition's log promises; `tests/storage/contract.py` holds every log to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kohort.storage.epochs import LeaderEpochs
from kohort.terms import Millis, Offset
from kohort.wire.batch import BatchHeader

NO_TIMESTAMP = -1
EVERY_BATCH = 1 << 62


@dataclass(frozen=True, slots=True)
class LogConfig:
    """How a log is cut into files. The names are those of the topic settings."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    index_interval_bytes: int = 4096
    stays_open: bool = False
    """No setting: the file that is written to is always open, as it is for a coordinator's log."""
    producer_ids_below: int = 1 << 63
    """No setting: producer ids from here on were not given by this broker."""


class Log(Protocol):
    """What a machine needs of its log: batches in order, with one writer.

    append_all() may be lost by a crash; what sync() has returned may not. read() yields whole
    batches, first to last, and never one that append_all() has not finished. Compaction leaves
    holes: the batch that follows offset n may begin later than n + 1.

    Everything is called by one thread, but for sync(), which another may run meanwhile.
    """

    @property
    def start(self) -> Offset:
        """The first offset that may be read; a batch that straddles it is still read whole."""

    @property
    def end(self) -> Offset:
        """The offset that the next record will have."""

    def append_all(self, parts: Sequence[tuple[bytes, int]]) -> Offset:
        """Write batches, each with the count of offsets that it takes: all of them, or none and
        StorageError. Returns the new end. Base offset and leader epoch are stamped into each.
        """

    def try_room(self) -> None:
        """Write something behind the end and take it back. Raises StorageError where the disk
        refuses, as it would refuse a small batch.
        """

    def sync(self) -> Offset:
        """Make durable what was appended before the call: the end up to which that is true.

        Raises Broken when the disk refuses: nobody knows then what is on it. From then on append()
        and sync() raise it too, until the log is opened anew.
        """

    def read(self, start: Offset, limit_bytes: int) -> Iterator[bytes]:
        """One batch at a time from the one that holds `start`, until the limit is used up.

        The batch that crosses the limit is still given. Raises Broken for a file that is damaged
        or cannot be read; so do the other ways to read.
        """


class StoredLog(Log, Protocol):
    """The log of a partition in files, or in memory: what its readers, its retention and its
    housekeeping ask for besides. fetch() promises what read() does.

    Everything is called by one thread, but for sync() and note_start(), which others may run while
    the first appends and reads. Meanwhile it does not call move_start() or remove_oldest().
    """

    @property
    def leader_epoch(self) -> int:
        """What append() stamps into each batch."""

    @property
    def epochs(self) -> LeaderEpochs:
        """All leader epochs, the one of append() included."""

    @property
    def max_timestamp(self) -> int:
        """The latest time of any batch, or -1."""

    @property
    def synced(self) -> Offset:
        """Everything before is durable: by the opening, by sync() or by the log itself."""

    @property
    def highest_producer_id(self) -> int:
        """Of the batches that were looked at when the log was opened, and below
        `producer_ids_below`; or -1.
        """

    @property
    def size_bytes(self) -> int:
        """What the batches take, those that straddle the start included."""

    def append(self, batch: bytes, count: int) -> Offset:
        """Write one batch that takes `count` offsets; the new end.

        Base offset and leader epoch are stamped into it. After StorageError (disk full) the log is
        as it was before, and the next append may succeed.
        """

    def mend(self) -> None:
        """Take back what a refused write may have left behind the end. Raises StorageError."""

    def next_leader(self) -> None:
        """Raise the leader epoch, durably: another node leads the partition from here on. Raises
        StorageError when that could not be written; it counts all the same until a restart.
        """

    def fetch(self, start: Offset, limit_bytes: int) -> bytes:
        """Contiguous batches from the one that holds `start`: at least one, b"" at the end.

        May be fewer than the limit allows: a fetch stays within a segment.
        """

    def headers(self, start: Offset) -> Iterator[BatchHeader]:
        """The header of every batch from the one that holds `start`, first to last.

        Records are not read where that can be helped. The log may change while this is gone
        through in slices: what is appended comes too, and of what is dropped some may still come.
        """

    def first_since(self, since: Millis, most: int = EVERY_BATCH) -> Offset | None:
        """Every batch before this offset is older than `since`, if files are in the order of their
        times. Some behind it may be older, too. None where the headers of `most` batches had to be
        read, and perhaps more: ask again. Raises Broken.
        """

    def find_timestamp(self, timestamp: int) -> tuple[int, Offset] | None:
        """Time and offset of the first record that is not older than `timestamp`."""

    def retention_start(
        self, now: Millis, retention_ms: int, retention_bytes: int, most: int = EVERY_BATCH
    ) -> Offset | None:
        """Where the log would begin without what is too old or too much (-1: no limit): files go
        as a whole. None where the headers of `most` batches had to be read, and perhaps more: ask
        again. May begin a new file. Raises StorageError, or Broken.
        """

    def lacks_index(self, start: Offset) -> bool:
        """Whether a fetch from there would have to read a whole file's headers first."""

    def index_some(self, start: Offset | None, most: int) -> bool:
        """Read on in the headers of the file that holds `start`, or of all files, which are read
        once after the log was opened; true where there may be more than those of `most` batches.
        """

    def note_start(self, start: Offset) -> None:
        """Write down, durably, that the log begins at `start` or behind: only then files before it
        are removed. Everything before `start` must be synced, since a start beyond the end of what
        a crash leaves is taken for damage. Raises StorageError, and then a restart finds the former
        start; or UnsettledError where that is not known: then append() and sync() raise Broken.
        """

    def move_start(self, start: Offset) -> None:
        """Let the log begin at `start`, or where it begins already if that is behind it. It must be
        durable that it does.
        """

    @property
    def has_old_files(self) -> bool:
        """Whether everything in the first file is before the start."""

    def remove_oldest(self) -> bool:
        """Remove the first file if everything in it is before the start, and that is noted; false
        where it is not. Raises StorageError, and the file stays.
        """

    def close(self) -> None:
        """Release the files. Nothing else may be called afterwards."""
