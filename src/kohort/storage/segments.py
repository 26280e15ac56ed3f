# SPDX-License-Identifier: Apache-2.0
"""A log in Kafka's own on-disk format: `<topic>-<partition>/00000000000000000000.log` and so on.

Segments are closed by size and age and synced when they are, so only the last one can have a torn
tail after a crash. Opening walks that one with every crc; `recovery.py` says what may be cut. The
others are checked when they are first read: each batch by its crc, and each segment must begin
where the one before it ends, but for holes that are known.

What stands beside the segments: `checkpoints.py`. What compaction may have left half done:
`<offset>.log.cleaned` was not finished and is removed; `<offset>.log.swap` was, and takes the
place of the segments it covers.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct

from kohort.errors import Broken, StorageError, UnsettledError
from kohort.storage import checkpoints
from kohort.storage.epochs import UNKNOWN_EPOCH, LeaderEpochs
from kohort.storage.files import Files, UnsyncedError, set_aside, sync_change
from kohort.storage.log import EVERY_BATCH, NO_TIMESTAMP, LogConfig
from kohort.storage.open_files import OpenFiles
from kohort.storage.recovery import NOTHING, Bounds, RecoveryPoint, check_ends, never_begun, recover
from kohort.storage.segment import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    Segment,
    file_stem,
    index_some,
    segment_bases,
)
from kohort.storage.swaps import SWAP_SUFFIX, look_at_swap
from kohort.terms import Millis, Offset
from kohort.wire import batch as batches
from kohort.wire.batch import PREFIX_SIZE, BatchHeader

CLEANED_SUFFIX = ".log.cleaned"
_DELETED_SUFFIX = ".deleted"
_OURS = re.compile(r"[0-9]{20}\.")
_READ_BYTES = 1 << 20
_ROOM_BYTES = 4096  # a block of most disks
_MAX_OFFSETS = (1 << 31) - 1  # what a segment may span: Kafka's index files hold 32 bits
_LENGTH = Struct(">i")
_MAX_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_AT = 35


class SegmentLog:
    """Keeps the contract of `Log` in the files of one folder, which it makes when it is missing."""

    def __init__(
        self,
        directory: str,
        files: Files,
        config: LogConfig | None = None,
        *,
        known_start: Offset = Offset(0),  # noqa: B008
        recovery_point: RecoveryPoint = NOTHING,
        check_all: bool = False,
        open_files: OpenFiles | None = None,
    ) -> None:
        """Open and recover. Raises Broken for damage and StorageError when the disk refuses.

        `known_start` is what Kafka's own checkpoint of start offsets says, `recovery_point` what
        must be there. `check_all` computes every crc of every segment, not only of the last.
        `open_files` bounds how many files are open; they all are without it. What was cut or
        skipped is in `notices`, a line each.
        """
        self.directory = directory
        self.config = config or LogConfig()
        self._files = files
        self._open_files = open_files or OpenFiles(files)
        self._segments: list[Segment] = []
        self._bases: list[Offset] = []
        self._torn = False
        # A segment that was made and is not used: nothing may be written beyond it.
        self._stray = ""
        self._unknown = ""  # why nobody knows what is on the disk, once a sync has failed
        self.cleaned_end = Offset(0)  # compaction has seen what is before
        self._noted_start = Offset(0)  # in the folder: what is before may be removed
        self.notices: list[str] = []
        try:
            files.make_directory(directory)
            self._finish_cleaning()
            self._holes = checkpoints.holes(files, directory)
            self._load(recovery_point, check_all=check_all)
            self._load_start(known_start, recovery_point)
            self._load_epoch()
            self.synced = self.end
            if self.config.stays_open:
                self.active.file.pin()
        except OSError as error:
            raise StorageError(f"{directory} cannot be opened: {error}") from error

    def _finish_cleaning(self) -> None:
        names = self._files.names(self.directory)
        ours = [name for name in names if _OURS.match(name)]
        for name in ours:
            if name.endswith(SWAP_SUFFIX):
                self._finish_swap(name)
        for name in ours:
            if name.endswith((CLEANED_SUFFIX, _DELETED_SUFFIX)):
                self._files.unlink(f"{self.directory}/{name}")

    def _finish_swap(self, name: str) -> None:
        """Put a finished cleaning in the place of the segments that it covers, if it is one."""
        base = Offset(int(name.removesuffix(SWAP_SUFFIX)))
        covered, reason = look_at_swap(self._files, self.directory, base)
        if not reason:
            self.put_in_place(base, covered)
            return
        path = f"{self.directory}/{name}"
        if base not in covered:
            raise Broken(f"{path} cannot be put in place: {reason}; what it replaces is gone")
        aside = set_aside(self._files, self.directory, name)
        self._files.sync_directory(self.directory)
        self.notices.append(f"{path} is set aside as {aside}, the old segments stay: {reason}")

    def put_in_place(self, base: Offset, covered: list[Offset]) -> None:
        """The last steps of a cleaning, in an order that a crash at any point can go on from.

        Older segments go first: a tombstone must not go while a value it hides can come back.
        """
        for offset in covered:
            if offset != base:
                self._files.unlink(f"{self.directory}/{file_stem(offset)}{LOG_SUFFIX}")
            self._unlink_indexes(offset)
        stem = f"{self.directory}/{file_stem(base)}"
        self._files.rename(stem + SWAP_SUFFIX, stem + LOG_SUFFIX)
        sync_change(self._files, self.directory)

    def _load(self, recovery_point: RecoveryPoint, *, check_all: bool) -> None:
        for base in segment_bases(self._files.names(self.directory)):
            self._add(self.opened(base))
        for segment in self._segments[:-1]:
            if check_all:
                bad = segment.scan(check=True)
                if bad is not None:
                    raise Broken(segment.damage)
        self.end = Offset(0)
        if not self._segments:
            return
        if len(self._segments) > 1 and never_begun(*self._segments[-2:]):
            self._unlink_segment(self._segments.pop())
            self._bases.pop()
            self._segments[-1].behind = None
        last = self._segments[-1]
        cut = recover(last, recovery_point, self._holes)
        if cut:
            self._unlink_indexes(last.base_offset)
            self.notices.append(cut)
        elif not recovery_point.clean and last.size and last.end != recovery_point.synced:
            last.file.sync()  # a crash may have left it to the system to write what it has
        if not recovery_point.clean:
            # Nor may the disk know of a name, or of a removal: a segment that a cleaning has
            # replaced would come back beside what replaces it.
            self._files.sync_directory(self.directory)
        self.end = last.end

    def _load_start(self, known_start: Offset, recovery_point: RecoveryPoint) -> None:
        folder = checkpoints.split_name(self.directory.rpartition("/")[2])
        starts = checkpoints.start_offsets(self._files, self.directory)
        own = starts.get(folder, Offset(0)) if folder else Offset(0)
        start = max(known_start, own)
        self._noted_start = own
        noted = self.directory if own == start else self.directory.rpartition("/")[0]
        bounds = Bounds(start, self.end, self._bases[0] if self._bases else start)
        name = f"{noted}/{checkpoints.START_OFFSETS}"
        check_ends(self.directory, bounds, name, recovery_point, self._holes)
        if not self._segments:
            self._start_over(start)
        self.start = max(start, self._segments[0].base_offset)
        if self.start > self.end:
            # What stood before the start was lost unsynced; offsets must not be given out twice.
            self._set_aside(len(self._segments))
            self._start_over(self.start)
        self._set_aside(self._count_before(self.start))

    def _set_aside(self, count: int) -> None:
        """Take the first segments out of the log while it is opened, for it begins behind them.

        A crash may have interrupted their removal, or the noted start is wrong: so they are kept.
        """
        going, behind = self._segments[:count], [*self._bases[1:], self.end]
        size = sum(segment.size for segment in going)
        for segment in going:
            segment.file.close()
            if segment.size:
                set_aside(self._files, self.directory, segment.path.rpartition("/")[2])
                self._unlink_indexes(segment.base_offset)
            else:
                self._unlink_segment(segment)
        if size:
            self.notices.append(
                f"{self.directory} begins at offset {self.start}: {count} files of {size} bytes, "
                f"offsets {going[0].base_offset} to {behind[count - 1] - 1}, are set aside"
            )
        del self._segments[:count]
        del self._bases[:count]

    def _start_over(self, base: Offset) -> None:
        self._add(self.opened(base))
        self._files.sync_directory(self.directory)
        self.end = base

    def _load_epoch(self) -> None:
        known = LeaderEpochs([])
        try:
            known = LeaderEpochs(checkpoints.leader_epochs(self._files, self.directory))
        except Broken as error:
            self.notices.append(f"{error}; what the batches say is taken")
        self.leader_epoch = max(known.latest, self._last_batch_epoch(), 0)
        self.epochs = known
        if known.latest < self.leader_epoch:
            self.epochs = self._epochs_of_batches()
            self._write_epochs()

    def _epochs_of_batches(self) -> LeaderEpochs:
        try:
            found = LeaderEpochs.of_batches(self.headers(self.start))
        except Broken as error:  # found again by whoever reads there
            self.notices.append(f"{error}; leader epochs before are unknown")
            found = LeaderEpochs([])
        if found.latest < self.leader_epoch:
            found.begin(self.leader_epoch, self.end)
        return found

    def _last_batch_epoch(self) -> int:
        for segment in reversed(self._segments):
            if segment.size:
                segment.use()
                return segment.last_epoch
        return UNKNOWN_EPOCH

    def _write_epochs(self) -> None:
        entries = list(self.epochs.entries)
        checkpoints.write_leader_epochs(self._files, self.directory, entries)

    def next_leader(self) -> None:
        self.leader_epoch += 1
        self.epochs.begin(self.leader_epoch, self.end)
        try:
            self._write_epochs()
        except OSError as error:
            raise StorageError(f"{self.directory}: {error}") from error

    def opened(self, base: Offset, suffix: str = LOG_SUFFIX) -> Segment:
        """A segment, made when there is none. May raise OSError."""
        below, interval = self.config.producer_ids_below, self.config.index_interval_bytes
        return Segment(self._open_files, self.directory, base, interval, suffix, below)

    def _add(self, segment: Segment) -> None:
        if self._segments:
            self._segments[-1].behind = segment.base_offset
        self._segments.append(segment)
        self._bases.append(segment.base_offset)

    def append(self, batch: bytes, count: int) -> Offset:
        base = self.end
        end = Offset(base + count)
        (latest,) = _MAX_TIMESTAMP.unpack_from(batch, _MAX_TIMESTAMP_AT)
        data = batches.stamp(batch, base, self.leader_epoch)
        self._write(data, ((end, base, 0, latest),), end, latest)
        return end

    def append_all(self, parts: Sequence[tuple[bytes, int]]) -> Offset:
        """One write into one segment, so that a refusal leaves nothing; the segment may become
        larger than `segment_bytes` by what is written here.
        """
        if len(parts) == 1:
            return self.append(*parts[0])
        if not parts:
            return self.end
        stamped: list[bytes] = []
        placed: list[tuple[Offset, Offset, int, int]] = []
        end, size, latest = self.end, 0, NO_TIMESTAMP
        for batch, count in parts:
            base, end = end, Offset(end + count)
            (max_timestamp,) = _MAX_TIMESTAMP.unpack_from(batch, _MAX_TIMESTAMP_AT)
            stamped.append(batches.stamp(batch, base, self.leader_epoch))
            placed.append((end, base, size, max_timestamp))
            size += len(batch)
            latest = max(latest, max_timestamp)
        self._write(b"".join(stamped), placed, end, latest)
        return end

    def _write(
        self,
        data: bytes,
        placed: Sequence[tuple[Offset, Offset, int, int]],
        end: Offset,
        latest: int,
    ) -> None:
        """Write stamped batches behind the last one. `placed` tells of each its end, its base, its
        position in `data` and its newest time; `end` and `latest` are those of all.
        """
        if self._unknown:
            raise Broken(self._unknown)
        if self._torn or self._stray:
            self.mend()
        segment = self._segments[-1]
        position = segment.size
        if position and (
            position + len(data) > self.config.segment_bytes
            or end - segment.base_offset > _MAX_OFFSETS
            or (
                segment.first_timestamp >= 0
                and latest - segment.first_timestamp > self.config.segment_ms
            )
        ):
            segment = self.roll()
            position = 0
        try:
            segment.file.write(position, data)
        except OSError as error:
            raise self._not_written(segment, error) from error
        segment.grown(position + len(data))
        for following, base, at, max_timestamp in placed:
            segment.note(following, base, position + at, max_timestamp)
        self.end = end

    def try_room(self) -> None:
        """Zeros behind the last batch are a torn tail to whoever opens the log after a crash."""
        self.mend()
        segment = self._segments[-1]
        try:
            segment.file.write(segment.size, bytes(_ROOM_BYTES))
        except OSError as error:
            raise self._not_written(segment, error) from error
        self._torn = True
        self.mend()

    def _not_written(self, segment: Segment, error: OSError) -> Broken | StorageError:
        """Take back a write that failed half way; if even that fails, before the next one."""
        if isinstance(error, UnsyncedError):  # of what was written before
            self._unknown = f"{segment.path} cannot be synced: {error}"
            return Broken(self._unknown)
        try:
            segment.file.truncate(segment.size)
        except OSError:
            self._torn = True
        return StorageError(f"{segment.path} cannot be written: {error}")

    def mend(self) -> None:
        """What a write or a roll has left half done: a file without a use, too."""
        segment = self._segments[-1]
        try:
            if self._torn:
                segment.file.truncate(segment.size)
            self._torn = False
        except OSError as error:
            raise StorageError(f"{segment.path} has a torn tail: {error}") from error
        try:
            if self._stray:
                self._files.unlink(self._stray)
            self._stray = ""
        except OSError as error:
            raise StorageError(f"{self._stray} is in the way: {error}") from error

    def roll(self) -> Segment:
        """Close the last segment and begin a new one, so that retention and cleaning may have it.

        The closed one is synced first: recovery relies on it. Raises StorageError, and then goes on
        with the old one; or Broken, and then it does not.
        """
        last = self._segments[-1]
        if not last.size:
            return last
        self.mend()
        self._sync_segment(last)
        self.synced = self.end
        try:
            segment = self.opened(self.end)
        except OSError as error:
            raise StorageError(f"{self.directory} has no room for a segment: {error}") from error
        try:
            self._files.sync_directory(self.directory)
            if self.config.stays_open:
                segment.file.pin()
                last.file.unpin()
        except OSError as error:
            segment.file.close()
            self._stray = segment.path
            with suppress(StorageError):
                self.mend()
            raise StorageError(f"{self.directory} has no room for a segment: {error}") from error
        self._add(segment)
        return segment

    def sync(self) -> Offset:
        end = self.end
        if self._unknown:
            raise Broken(self._unknown)
        # Behind the end, for those before were synced when they were closed.
        self._sync_segment(self._segments[-1])
        self.synced = max(self.synced, end)
        return end

    def _sync_segment(self, segment: Segment) -> None:
        """Raises Broken, from then on for good.

        The system tells of a failed write once and then forgets it with the pages: a second sync
        would succeed, and promise what is not there.
        """
        try:
            if segment.file.written:
                segment.file.sync()
        except OSError as error:
            self._unknown = f"{segment.path} cannot be synced: {error}"
        if self._unknown:
            raise Broken(self._unknown)

    @property
    def max_timestamp(self) -> int:
        for segment in self._segments:
            segment.use()
        return max((segment.max_timestamp for segment in self._segments), default=NO_TIMESTAMP)

    @property
    def highest_producer_id(self) -> int:
        return max((segment.highest_producer_id for segment in self._segments), default=-1)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def closed(self) -> list[Segment]:
        """The segments that are not written to any more, first to last."""
        return self._segments[:-1]

    @property
    def active(self) -> Segment:
        """The segment that is written to."""
        return self._segments[-1]

    def fetch(self, start: Offset, limit_bytes: int) -> bytes:
        if start >= self.end:
            return b""
        index = max(0, bisect_right(self._bases, start) - 1)
        for at in range(index, len(self._segments)):
            data = self._segments[at].fetch(start, limit_bytes)
            if data:
                return data
            self._check_next(at)
        return b""

    def expect_no_gap(self) -> None:
        """Raises Broken when a closed segment is damaged, or one is missing between two."""
        for at, segment in enumerate(self.closed):
            segment.use()
            self._check_next(at)

    def _check_next(self, at: int) -> None:
        """Raises Broken unless the next segment begins where this one ends."""
        if at + 1 == len(self._segments):
            return
        end, following = self._segments[at].end, self._bases[at + 1]
        if end != following and (end, following) not in self._holes:
            raise Broken(
                f"{self.directory}: {self._segments[at].path} ends at offset {end}, "
                f"the next segment begins at {following}, expected {end}"
            )

    def read(self, start: Offset, limit_bytes: int) -> Iterator[bytes]:
        left = limit_bytes
        while left > 0 and (data := self.fetch(start, min(left, _READ_BYTES))):
            left -= len(data)
            at = 0
            while at < len(data):
                length = _LENGTH.unpack_from(data, at + 8)[0] + PREFIX_SIZE
                last = at
                batch = data[at : at + length] if length < len(data) else data
                at += length
                yield batch
            start = Offset(batches.peek(data, last).last_offset + 1)

    def headers(self, start: Offset) -> Iterator[BatchHeader]:
        at = max(start, self.start)
        while at < self.end:
            # A segment that is dropped or cleaned meanwhile can still be read to its end.
            segment = self._segments[max(0, bisect_right(self._bases, at) - 1)]
            for header in segment.headers_from(at):
                at = Offset(header.last_offset + 1)
                yield header
            at = max(at, self.start, self.end if segment.behind is None else segment.behind)

    def first_since(self, since: Millis, most: int = EVERY_BATCH) -> Offset | None:
        first = self.end
        for segment in reversed(self._segments):
            if segment.size and not (most := segment.index_some(most)):
                return None
            if segment.size and segment.max_timestamp < since:
                break
            first = segment.base_offset
        return max(first, self.start)

    def find_timestamp(self, timestamp: int) -> tuple[int, Offset] | None:
        for segment in self._segments:
            found = segment.find_timestamp(timestamp, self.start)
            if found is not None:
                return found
        return None

    def retention_start(
        self, now: Millis, retention_ms: int, retention_bytes: int, most: int = EVERY_BATCH
    ) -> Offset | None:
        size = self.size_bytes
        start = self.start
        for segment in list(self._segments):
            if not segment.size:
                break
            most = segment.index_some(most)
            if not most:
                return None
            old = retention_ms >= 0 and segment.max_timestamp < now - retention_ms
            if not old and not (0 <= retention_bytes <= size - segment.size):
                break
            if segment is self._segments[-1]:
                if not old:
                    break
                self.roll()
            size -= segment.size
            start = max(start, self._bases[self._segments.index(segment) + 1])
        return start

    def lacks_index(self, start: Offset) -> bool:
        return not self._segments[self._count_before(start)].indexed

    def index_some(self, start: Offset | None, most: int) -> bool:
        of = self._segments if start is None else [self._segments[self._count_before(start)]]
        return index_some(of, most)

    def replace(self, cleaned: list[Segment], fresh: Segment) -> None:
        """Let the finished `.swap` file, which is `fresh`, take the place of segments that were
        cleaned into it. Their files are pinned.
        """
        base = fresh.base_offset
        try:
            self.put_in_place(base, [segment.base_offset for segment in cleaned])
            fresh.rename(f"{self.directory}/{file_stem(base)}{LOG_SUFFIX}")
        except OSError as error:
            raise Broken(f"{self.directory}: a cleaned segment is not in place: {error}") from error
        self._open_files.nameless += [segment.file for segment in cleaned]
        at = self._segments.index(cleaned[0])
        fresh.behind = cleaned[-1].behind
        self._segments[at : at + len(cleaned)] = [fresh]
        self._bases[at : at + len(cleaned)] = [base]

    def note_start(self, start: Offset) -> None:
        folder = self.directory.rpartition("/")[2]
        place = checkpoints.split_name(folder) or (folder, 0)
        before, after = {place: self.start}, {place: max(start, self.start)}
        try:
            checkpoints.move_start_offsets(self._files, self.directory, before, after)
        except UnsettledError as error:
            self._unknown = str(error)
            raise
        self._noted_start = after[place]

    def move_start(self, start: Offset) -> None:
        self.start = max(self.start, min(start, self.end))

    @property
    def has_old_files(self) -> bool:
        return self._count_before(self.start) > 0

    def remove_oldest(self) -> bool:
        if not self._count_before(min(self.start, self._noted_start)):
            return False
        try:
            self._unlink_segment(self._segments[0])
        except OSError as error:
            raise StorageError(f"{self.directory}: old segments not removed: {error}") from error
        # Not closed: a sync on another thread may be using it.
        del self._segments[0]
        del self._bases[0]
        return True

    def _count_before(self, start: Offset) -> int:
        return max(0, bisect_right(self._bases, start) - 1)

    def _unlink_segment(self, segment: Segment) -> None:
        segment.file.pin()  # somebody may be reading it
        self._files.unlink(segment.path)
        self._open_files.nameless.append(segment.file)
        self._unlink_indexes(segment.base_offset)

    def _unlink_indexes(self, base: Offset) -> None:
        """Kafka's index files beside a segment that is no longer what they describe."""
        stem = f"{self.directory}/{file_stem(base)}"
        for suffix in INDEX_SUFFIXES:
            self._files.unlink(stem + suffix)

    def close(self) -> None:
        for segment in self._segments:
            segment.file.close()
