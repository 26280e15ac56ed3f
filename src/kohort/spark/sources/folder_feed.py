# SPDX-License-Identifier: Apache-2.0
"""A log in the segment files of a directory that its owner may be writing to.

The end of a log is behind the last batch that is whole and right: what follows is a torn tail, or a
batch that is being written. Anywhere else bytes that are no batch are damage, and a row tells so.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import stat
from typing import Any, NamedTuple, TypeVar

from kohort.errors import WireError
from kohort.pipeline.columns.record_positions import Rows, with_offsets
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.sources import folders
from kohort.pipeline.sources.files import (
    NO_OFFSET,
    WINDOW_BYTES,
    Head,
    SegmentFile,
    Walk,
    head_at,
    segment_files,
)
from kohort.pipeline.sources.log_position import Mark, Note, SourceError
from kohort.spark.sources.feed import Bounds, Span, WeightedSpan
from kohort.wire import batch
from kohort.wire.batch import HEADER_SIZE

Answer = TypeVar("Answer")

PIECE_BYTES = 4 << 20
CHECKED_BYTES = 1 << 20
_VANISHED = 100
_Known = tuple[int, int]
"""The first offset of a segment by its name, and its inode."""


class _Tail(NamedTuple):
    """What is known of the last segment: its last right batch, and what was seen so far."""

    walk: Walk
    last: Head | None
    generation: int


class FolderFeed:
    """Keeps the contract of `Feed`. Remembers in the driver how far it has walked."""

    def __init__(self, path: str, topic: str, found: folders.Folders | None = None) -> None:
        self._path = path
        self._topic = topic
        self._folders = found or folders.find(path, topic)
        self._tails: dict[int, _Tail] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker gets the places of the folders, and no open file."""
        return type(self), (self._path, self._topic, self._folders)

    def bounds(self) -> dict[int, Bounds]:
        self._folders = folders.find(self._path, self._topic)
        return {
            partition: _patiently(self._bounds, partition)
            for partition in self._folders.by_partition
        }

    def marks(self, following: Mapping[int, int]) -> dict[int, Mark | None]:
        return {
            partition: _patiently(self._mark_before, partition, offset)
            for partition, offset in following.items()
        }

    def offset_after_mark(self, marks: Mapping[int, Mark]) -> dict[int, int | None]:
        return {
            partition: _patiently(self._offset_after_mark, partition, mark)
            for partition, mark in marks.items()
        }

    def at_time(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        return {
            partition: _patiently(self._at_time, partition, timestamp_ms)
            for partition in partitions
        }

    def weigh(self, ranges: Mapping[int, tuple[int, int]]) -> list[WeightedSpan]:
        """A span for each segment, weighed in bytes."""
        return [
            piece
            for partition, (start, end) in ranges.items()
            for piece in _patiently(self._weighted_spans, partition, start, end)
        ]

    def observed_changes(self) -> tuple[Note, ...]:
        return ()

    def read(self, spans: Sequence[Span]) -> Iterator[Rows]:
        for span in spans:
            yield from self._span(span)

    # In the driver

    def _files(self, partition: int) -> list[SegmentFile]:
        folder = self._folders.by_partition.get(partition)
        if folder is None:
            raise SourceError(f"partition {partition} of {self._topic} is not in {self._path}")
        with _reading(folder):
            return segment_files(folder)

    def _bounds(self, partition: int) -> Bounds:
        files = self._files(partition)
        if not files:
            start = self._folders.log_start(partition)
            return Bounds(start, start)
        tail = self._tail(partition, files[-1])
        end = max(files[-1].base, tail.last.following if tail.last else 0)
        start = max(files[0].base, self._folders.log_start(partition))
        return Bounds(min(start, end), end, tail.generation)

    def _tail(self, partition: int, file: SegmentFile) -> _Tail:
        """The last right batch of the last segment, walked on from what is known of it."""
        with _reading(file.path):
            known = self._tails.get(partition)
            generation = known.generation if known else 0
            same = known is not None and known.walk.inode == stat(file.path).st_ino  # noqa: PTH116
            if known is not None and not (same and _is_there(known)):
                # A segment that was rolled is not cut; one that is not as it was may be.
                generation += bool(same)
                known.walk.close()
                known = None
            walk = known.walk if known else Walk(file.path)
            last = _last_right(walk, known.last if known else None)
        self._tails[partition] = _Tail(walk, last, generation)
        return self._tails[partition]

    def _mark_before(self, partition: int, offset: int) -> Mark | None:
        tail = self._tails.get(partition)
        if tail is not None and tail.last is not None and tail.last.following == offset:
            return tail.last.base, tail.last.crc
        for file in reversed(
            [segment for segment in self._files(partition) if segment.base < offset]
        ):
            found = None
            for head in self._heads(file, offset - 1):
                if head.base >= offset:
                    break
                found = head
            if found is not None:
                return found.base, found.crc
        return None

    def _offset_after_mark(self, partition: int, mark: Mark) -> int | None:
        base, crc = mark
        files = self._files(partition)
        holding = [file for file in files if file.base <= base]
        if not holding:
            return base + 1  # retention has removed it
        is_closed = holding[-1] is not files[-1]
        for head in self._heads(holding[-1], base):
            if head.base == base:
                return head.following if head.crc == crc or head.is_cleaned else None
            if head.base > base:
                break
            if head.following > base:
                return None  # batches keep their first offset when they are cleaned
        return base + 1 if is_closed else None

    def _heads(self, file: SegmentFile, offset: int) -> Iterator[Head]:
        """Batches from the last one before an offset on, damage left out."""
        with _reading(file.path):
            walk = Walk(file.path)
            try:
                position, passed = walk.skim(0, walk.size(), offset)
                if passed is not None:
                    yield from walk.heads(passed.position, position)
                yield from _all_heads(walk, position)
            finally:
                walk.close()

    def _at_time(self, partition: int, timestamp_ms: int) -> int:
        bounds = self._bounds(partition)
        for file in self._files(partition):
            with _reading(file.path):
                walk = Walk(file.path)
                try:
                    for head in _all_heads(walk, 0):
                        if head.max_timestamp < timestamp_ms or head.following <= bounds.start:
                            continue
                        data = walk.file.read(head.position, head.length)
                        offset = _first_at(data, timestamp_ms, head)
                        return min(max(offset, bounds.start), bounds.end)
                finally:
                    walk.close()
        return bounds.end

    def _weighted_spans(self, partition: int, start: int, end: int) -> list[WeightedSpan]:
        found = []
        files = self._files(partition)
        for index, file in enumerate(files):
            after = files[index + 1].base if index + 1 < len(files) else max(end, file.base + 1)
            first, last = max(start, file.base if index else 0), min(end, after)
            if first >= last:
                continue
            with _reading(file.path):
                size = stat(file.path).st_size  # noqa: PTH116
            share = (last - first) / max(1, after - file.base)
            found.append(WeightedSpan(Span(partition, first, last), int(size * min(1.0, share))))
        return found

    # In a worker

    def _span(self, span: Span) -> Iterator[Rows]:
        """Segment after segment, listed again each time: any of them may have been rolled, cleaned
        or removed since.
        """
        following = span.start
        done: set[_Known] = set()
        vanished = 0
        while following < span.end:
            files = self._files(span.partition)
            file = _next_file(files, following, done)
            if file is None:
                return
            walk = _opened_or_none(file.path)
            if walk is None:
                vanished += 1
                if vanished > _VANISHED:
                    raise SourceError(f"{file.path} is listed, and is not there")
                continue
            try:
                with _reading(file.path):
                    reading = _SegmentReader(walk, span, following, is_last=file is files[-1])
                    yield from reading.rows()
            finally:
                walk.close()
            if reading.following > following:
                following = reading.following
                done.clear()
            done.add((file.base, walk.inode))


class _SegmentReader:
    """One file on its way into rows, some MB at a time. `following` is the next offset."""

    def __init__(self, walk: Walk, span: Span, following: int, *, is_last: bool) -> None:
        self._walk = walk
        self._span = span
        self._start = following
        self._is_last = is_last
        self.following = following

    def rows(self) -> Iterator[Rows]:
        span, walk = self._span, self._walk
        size = walk.size()
        position, self.following = _seek(walk, self._start, size)
        want = PIECE_BYTES
        while position < size and self.following < span.end:
            data = walk.file.read(position, min(want, size - position))
            start = max(self.following, self._start)
            parsed = parse(data, span.partition, start=start, end=span.end)
            if parsed.used:
                position += parsed.used
                self.following = max(self.following, parsed.next_offset)
                want = PIECE_BYTES
                yield from parsed.pieces
                continue
            head = head_at(data, 0, position) if len(data) >= HEADER_SIZE else None
            if head is not None and len(data) < head.length <= size - position:
                want = head.length
                continue
            good = walk.good_after(position, size, self.following)
            if good is None and (self._is_last or not any(data)):
                return
            stop = size if good is None else good
            yield from self._damage(position, stop)
            position = stop

    def _damage(self, position: int, stop: int) -> Iterator[Rows]:
        """One row for bytes that are no batch; of many bytes, their beginning."""
        data = self._walk.file.read(position, min(stop - position, WINDOW_BYTES))
        parsed = parse(data, self._span.partition, start=self.following, final=True)
        for piece in parsed.pieces:
            yield with_offsets(piece, self._start, self._span.end)


def _seek(walk: Walk, offset: int, size: int) -> tuple[int, int]:
    """Where the batch stands that holds `offset`, or the next; and the offset behind those before
    it.
    """
    position, before = walk.near(offset)
    while True:
        position, passed = walk.skim(position, size, offset)
        before = max(before, passed.following if passed is not None else 0)
        if position + HEADER_SIZE > size or next(walk.heads(position, size), None) is not None:
            return position, before
        good = walk.good_after(position, size, before)
        if good is None or next(walk.heads(good, size)).base > offset:
            return position, before
        position = good


def _next_file(
    files: list[SegmentFile], following: int, done: Collection[_Known]
) -> SegmentFile | None:
    """The file that holds an offset, or the next one; none of those that were read to their end
    since that offset was reached. There may be several: a cleaner leaves files without a record.
    """
    chosen = max(
        (index for index, segment in enumerate(files) if segment.base <= following), default=0
    )
    return next((file for file in files[chosen:] if not _is_one_of(file, done)), None)


def _is_one_of(file: SegmentFile, done: Collection[_Known]) -> bool:
    try:
        return (file.base, stat(file.path).st_ino) in done  # noqa: PTH116
    except FileNotFoundError:
        return False


def _all_heads(walk: Walk, position: int) -> Iterator[Head]:
    """Batches of a file from a position on, damage left out."""
    size = walk.size()
    following = 0
    at: int | None = position
    while at is not None:
        for head in walk.heads(at, size):
            following = head.following
            position = head.position + head.length
            yield head
        at = walk.good_after(position, size, following) if position < size else None


def _is_there(tail: _Tail) -> bool:
    """Whether the last batch that was seen is still the same."""
    if tail.last is None:
        return True
    return next(tail.walk.heads(tail.last.position, tail.walk.size()), None) == tail.last


def _last_right(walk: Walk, known: Head | None) -> Head | None:
    """The last batch that is whole and right. Crcs are computed near the end of the file only:
    everything earlier was there before the last crash.
    """
    size = walk.size()
    start = known.position + known.length if known else walk.near(NO_OFFSET)[0]
    position, passed = walk.skim(start, max(start, size - CHECKED_BYTES))
    last = next(walk.heads(passed.position, size), known) if passed is not None else known
    unsure = list(_all_heads(walk, position))
    return next((head for head in reversed(unsure) if walk.is_right(head)), last)


def _first_at(data: bytes, timestamp_ms: int, head: Head) -> int:
    """The offset of the first record that is not older; the batch's first if it is damaged."""
    try:
        entries = batch.entries(data)
    except WireError:
        return head.base
    return next((offset for offset, time, _, _ in entries if time >= timestamp_ms), head.following)


def _patiently(look: Callable[..., Answer], *arguments: Any) -> Answer:
    """Look again when a file has disappeared meanwhile: cleaning has put another in its place."""
    for _ in range(_VANISHED):
        with suppress(FileNotFoundError):
            return look(*arguments)
    try:
        return look(*arguments)
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename} cannot be read: it is not there") from error


def _opened_or_none(path: str) -> Walk | None:
    with _reading(path), suppress(FileNotFoundError):
        return Walk(path)
    return None


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise SourceError(
            f"{error.filename or path} may not be read: run as the broker's user, or read a copy"
        ) from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error
