# SPDX-License-Identifier: Apache-2.0
"""One `.log` file: batches one after the other, and a sparse index of them in memory.

Every 4 KiB or so the index notes where a batch begins, so a read looks at a few headers at its two
ends and never at the batches between. Kafka's index files are not read: ours is rebuilt from the
headers when a file is first used.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator
from struct import Struct

from kohort.errors import Broken, WireError
from kohort.storage.log import NO_TIMESTAMP
from kohort.storage.open_files import LogFile, OpenFiles
from kohort.terms import Offset
from kohort.wire import batch as batches
from kohort.wire.batch import HEADER_SIZE, PREFIX_SIZE, BatchHeader

LOG_SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
_SCAN_BYTES = 1 << 20
_PEEK_BYTES = 8192
_OFFSET_MAX = (1 << 63) - 1  # a file that is named beyond is not ours
Holes = Container[tuple[Offset, Offset]]
"""Offsets that are missing and may be: the first, and the one behind."""

_PLACE = Struct(">qi11xi")  # base offset, length, last offset delta


def file_stem(base_offset: int) -> str:
    """Files of a segment are named by its first offset, 20 digits."""
    return f"{base_offset:020d}"


def segment_bases(names: Iterable[str]) -> list[Offset]:
    """The first offsets of the segments among the files of a folder, in order."""
    stems = [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]
    numbers = [int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit()]
    return sorted(Offset(number) for number in numbers if number <= _OFFSET_MAX)


class Segment:
    """The file, what is known of it, and how to read from it. Made by `scan` or by appending."""

    def __init__(
        self,
        open_files: OpenFiles,
        directory: str,
        base_offset: Offset,
        interval: int,
        suffix: str = LOG_SUFFIX,
        producer_ids_below: int = 1 << 63,
    ) -> None:
        self.base_offset = base_offset
        self.path = f"{directory}/{file_stem(base_offset)}{suffix}"
        self.file: LogFile = open_files.open(self.path)
        self.size = self.file.size()
        self.end = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.first_timestamp = NO_TIMESTAMP
        self.last_epoch = -1
        self.highest_producer_id = -1  # of what was scanned
        self.indexed = self.size == 0
        self._indexing: Iterator[None] | None = None  # by `index_some`, which is not done yet
        self._bad: tuple[int, str] | None = None  # where and why, of the last scan
        self.damage = ""  # why nothing behind `_whole` can be read
        self._holes: Holes | None = None
        self._whole = self.size  # bytes: up to the first that is damaged
        self.behind: Offset | None = None  # where the next segment begins
        self._last_jumps = False
        self._last = (0, base_offset)  # position and end before the batch that was scanned last
        self._checked = range(0)  # bytes whose crc was seen to be right since the file was opened
        self._interval = interval
        self._producer_ids_below = producer_ids_below
        # Of each indexed batch, in 24 bytes: a gigabyte of log has 262,144 of them.
        self._offsets = array("q")
        self._positions = array("q")
        self._times = array("q")  # the latest time of everything before the batch
        self._next_entry = 0  # the position from which the next batch is indexed

    def rename(self, path: str) -> None:
        """The file has got another name."""
        self.path = self.file.path = path

    def note(self, header_end: Offset, base_offset: int, position: int, max_timestamp: int) -> None:
        """Index a batch that begins at `position`; batches come in order."""
        if position >= self._next_entry:
            self._offsets.append(base_offset)
            self._positions.append(position)
            self._times.append(self.max_timestamp)
            self._next_entry = position + self._interval
        self.max_timestamp = max(self.max_timestamp, max_timestamp)
        if position == 0:
            self.first_timestamp = max_timestamp
        self.end = header_end

    def scan(self, *, check: bool, holes: Holes | None = None) -> tuple[int, str] | None:
        """Build the index from the headers. Where and why a batch is bad, or None.

        With `check` everything is read and every crc computed. With `holes` each batch must begin
        where the one before it ends, but for these: no crc covers the offset of a batch. What
        stands before a bad batch is indexed. May raise OSError: a file that cannot be read while a
        log is opened is not yet a broken log.
        """
        self._begin_scan(holes)
        if check:
            self._end_scan(self._scan_whole())
            self._checked = range(self._whole)
        else:
            for _ in self._scan_headers():
                pass
        return self._bad

    def _begin_scan(self, holes: Holes | None) -> None:
        self._offsets, self._positions, self._times = array("q"), array("q"), array("q")
        self._next_entry = 0
        self.highest_producer_id = -1
        self.max_timestamp = self.first_timestamp = NO_TIMESTAMP
        self.end = self.base_offset
        self._holes = holes
        self._last = (0, self.base_offset)
        self._whole = self.size
        self._indexing = None

    def _end_scan(self, bad: tuple[int, str] | None) -> None:
        self._bad = bad
        if bad is not None:
            self._whole = bad[0]
            self.damage = f"{self.path} is damaged at byte {bad[0]}, offset {self.end}: {bad[1]}"
        self.indexed = True

    def _scan_headers(self) -> Iterator[None]:
        """A step for each batch that is right."""
        bad = None
        following = 0
        try:
            for position, header in self.headers():
                bad = self._take(position, header)
                if bad is not None:
                    break
                following = position + header.length
                yield
        except WireError as error:
            bad = following, str(error)
        self._end_scan(bad)

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from the one that begins at `position`; of large
        batches nothing else is read.

        Raises WireError for what is no batch, OSError for what cannot be read.
        """
        data, begin = b"", position
        stride = _PEEK_BYTES
        while position < self.size:
            left = self.size - position
            at = position - begin
            if at + HEADER_SIZE > len(data):
                data, begin, at = self.file.read(position, min(stride, left)), position, 0
            header = batches.peek(data, at)
            if header.length > left:
                raise WireError(f"batch of {header.length} bytes, {left} are left")
            yield position, header
            stride = HEADER_SIZE if header.length > _PEEK_BYTES else _SCAN_BYTES
            position += header.length

    def _take(self, position: int, header: BatchHeader) -> tuple[int, str] | None:
        """Index a batch that was found in the file; or where and why offsets are wrong."""
        base, end = header.base_offset, Offset(header.last_offset + 1)
        expected = self.end
        if base != expected:
            if self._holes is not None and (expected, base) not in self._holes:
                return position, f"base offset {base} comes after {expected - 1}"
            if base < expected:
                # One of the two is wrong: that one which does not follow the one before it.
                if self._last_jumps:
                    position = self._forget_last()
                return position, f"base offset {base} comes after {expected - 1}"
        if self.behind is not None and end > self.behind:
            return position, f"last offset {end - 1} comes before the next segment, {self.behind}"
        self._last = position, expected
        self._last_jumps = base != expected
        self.note(end, header.base_offset, position, header.max_timestamp)
        self.last_epoch = header.partition_leader_epoch
        if self.highest_producer_id < header.producer_id < self._producer_ids_below:
            self.highest_producer_id = header.producer_id
        return None

    def _forget_last(self) -> int:
        position, self.end = self._last
        while self._positions and self._positions[-1] >= position:
            self._positions.pop()
            self._offsets.pop()
            self._times.pop()
        return position

    def _scan_whole(self) -> tuple[int, str] | None:
        position = 0
        while position < self.size:
            data = self.file.read(position, min(_SCAN_BYTES, self.size - position))
            taken, bad = self._scan_chunk(data, position)
            if taken == 0 and bad is None:
                length = _PLACE.unpack_from(data)[1] + PREFIX_SIZE
                if length > self.size - position:
                    return position, f"batch of {length} bytes, {self.size - position} are left"
                data = self.file.read(position, length)
                taken, bad = self._scan_chunk(data, position)
            position += taken
            if bad is not None:
                return bad
        return None

    def _scan_chunk(self, data: bytes, start: int) -> tuple[int, tuple[int, str] | None]:
        """Check and index what is whole in `data`: how many bytes that takes, and where and why
        something is bad.
        """
        position = 0
        left = len(data)
        while left >= HEADER_SIZE:
            try:
                header = batches.peek(data, position)
                if header.length > left:
                    return position, None
                batches.check(data, position, header)
            except WireError as error:
                return position, (start + position, str(error))
            bad = self._take(start + position, header)
            if bad is not None:
                return position, bad
            position += header.length
            left -= header.length
        if left and start + len(data) == self.size:
            text = f"{left} bytes are left, a batch has at least {HEADER_SIZE}"
            return position, (start + position, text)
        return position, None

    def use(self) -> None:
        """Build the index if nobody has needed it yet.

        Raises Broken for a file that is damaged or cannot be read.
        """
        self._index()
        if self.damage:
            raise Broken(self.damage)

    def _index(self) -> None:
        if not self.indexed:
            try:
                self.scan(check=False)
            except OSError as error:
                raise Broken(f"{self.path} cannot be read: {error}") from error

    def index_some(self, most: int) -> int:
        """Read on for the index if nobody has needed it yet: `most` batches, less what was read. 0
        where there may be more. Raises Broken as `use` does.
        """
        if not self.indexed:
            if self._indexing is None:
                self._begin_scan(None)
                self._indexing = self._scan_headers()
            try:
                for _ in self._indexing:
                    most -= 1
                    if not most:
                        return 0
            except OSError as error:
                self._indexing = None
                raise Broken(f"{self.path} cannot be read: {error}") from error
        self.use()
        return most

    def headers_from(self, start: int) -> Iterator[BatchHeader]:
        """Those of the batches that hold `start` or follow it. Raises Broken as `use` does."""
        before = bisect_right(self._offsets, start) - 1  # whatever is indexed by now
        position = self._positions[before] if before > 0 else 0
        try:
            for _, header in self.headers(position):
                if header.last_offset >= start:
                    yield header
        except (OSError, WireError) as error:
            raise Broken(f"{self.path} cannot be read: {error}") from error

    def cut(self, size: int) -> None:
        """Forget and remove what stands behind `size`. May raise OSError."""
        self.file.truncate(size)
        self.size = self._whole = size
        self.damage = ""

    def grown(self, size: int) -> None:
        """Batches have been written up to `size`, by whoever has noted them."""
        if self._checked.stop == self.size:
            self._checked = range(self._checked.start, size)
        self.size = self._whole = size

    def fetch(self, start: int, limit_bytes: int) -> bytes:
        """Whole batches from the one that holds `start` or follows it; b"" when all are before.

        Raises Broken where that one is damaged; what stands before it is given all the same. Each
        byte is checked when it is first read after the file was opened.
        """
        self._index()
        if start >= self.end or not self._positions:
            if self.damage:
                raise Broken(self.damage)
            return b""
        position, data = self._found(start, limit_bytes)
        return self._checked_run(position, data)

    def _found(self, start: int, limit_bytes: int) -> tuple[int, bytes]:
        index = max(0, bisect_right(self._offsets, start) - 1)
        position = self._positions[index]
        while True:
            want = min(self._whole - position, max(limit_bytes, 0) + _PEEK_BYTES)
            data = self._read(position, want)
            at = 0
            left = len(data)
            while left >= HEADER_SIZE:
                base, length, delta = _PLACE.unpack_from(data, at)
                length += PREFIX_SIZE
                if base + delta >= start:
                    return position + at, self._run(data, at, position, length, limit_bytes)
                at += length
                left -= length
            position += at
            if position >= self._whole or not data:
                raise Broken(f"{self.path} has no batch with offset {start}, it ends at {self.end}")

    def _checked_run(self, position: int, data: bytes) -> bytes:
        """What of a run of batches is right, at least the first. Raises Broken when that is not."""
        end = position + len(data)
        known = self._checked
        if known.start <= position and end <= known.stop:
            return data
        good = 0
        try:
            for at, header in batches.walk(data):
                good = at
                batches.check(data, at, header)
        except WireError as error:
            self._check_more(position, position + good)
            if good:
                return data[:good]
            raise Broken(f"{self.path} is damaged at byte {position}: {error}") from error
        self._check_more(position, end)
        return data

    def _check_more(self, start: int, stop: int) -> None:
        """Remember what was found right: one stretch, since files are read from front to back."""
        known = self._checked
        if known.start <= stop and start <= known.stop:
            self._checked = range(min(known.start, start), max(known.stop, stop))
        elif stop - start > len(known):
            self._checked = range(start, stop)

    def _run(self, data: bytes, at: int, position: int, length: int, limit_bytes: int) -> bytes:
        """The batches from `at` in `data` (which begins at `position`) up to the limit."""
        have = len(data) - at
        if length > have:
            return self._exactly(position + at, length)
        room = min(have, limit_bytes)
        if length >= room:
            return data[at : at + length]
        # The last indexed batch within the room saves looking at those before it.
        begin = position + at
        mark = self._positions[bisect_right(self._positions, begin + room) - 1]
        stop = max(mark - begin, length)
        while stop + HEADER_SIZE <= room:
            _, size, _ = _PLACE.unpack_from(data, at + stop)
            if stop + size + PREFIX_SIZE > room:
                break
            stop += size + PREFIX_SIZE
        return data[at : at + stop]

    def _exactly(self, position: int, length: int) -> bytes:
        data = self._read(position, length)
        if len(data) != length:
            raise Broken(
                f"{self.path} has {len(data)} bytes at {position}, its index says {length}"
            )
        return data

    def _read(self, position: int, count: int) -> bytes:
        try:
            return self.file.read(position, count)
        except OSError as error:
            raise Broken(f"{self.path} cannot be read at byte {position}: {error}") from error

    def chunks(self, size_bytes: int = _SCAN_BYTES) -> Iterator[tuple[int, bytes]]:
        """The whole segment in runs of whole batches, with the position of each run."""
        self.use()
        position = 0
        size = self.size
        offset = self.base_offset - 1
        while position < size:
            data = self.fetch(offset + 1, size_bytes)
            if not data:
                return
            last = 0
            at = 0
            while at < len(data):
                base, length, delta = _PLACE.unpack_from(data, at)
                last = base + delta
                at += length + PREFIX_SIZE
            yield position, data
            offset = Offset(last)
            position += len(data)

    def find_timestamp(self, timestamp: int, start: Offset) -> tuple[int, Offset] | None:
        """Time and offset of the first record at or after a time and not before `start`."""
        self.use()
        if self.max_timestamp < timestamp:
            return None
        index = max(0, bisect_left(self._times, timestamp) - 1)
        offset = max(self._offsets[index], start) if self._offsets else start
        while data := self.fetch(offset, _SCAN_BYTES):
            for at, header in batches.walk(data):
                offset = Offset(header.last_offset + 1)
                if header.max_timestamp < timestamp:
                    continue
                for found, time in batches.times(data, at):
                    if time >= timestamp and found >= start:
                        return time, Offset(found)
        return None


def index_some(segments: Iterable[Segment], most: int) -> bool:
    """Read on for the indexes that nobody has needed yet; true where there may be more than `most`
    batches. What cannot be read is passed over, since whoever reads there is told why.
    """
    for segment in segments:
        try:
            most = segment.index_some(most)
        except Broken:
            continue
        if not most:
            return True
    return False
