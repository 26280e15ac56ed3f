# SPDX-License-Identifier: Apache-2.0
"""Segment files of somebody else: listed, walked by their headers, never opened for writing.

The broker that owns them may go on meanwhile. A listing is taken twice until it is the same, since
a file that is renamed while a directory is listed may not be seen at all. A finished cleaning
(`.log.swap`) stands for the segments that it covers, which are removed before it gets its name.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from struct import Struct
from typing import NamedTuple

import google_crc32c

from kohort.storage.files import DiskFile, DiskFiles
from kohort.storage.segment import LOG_SUFFIX
from kohort.storage.swaps import SWAP_SUFFIX
from kohort.wire.batch import DELETE_HORIZON, HEADER_SIZE, PREFIX_SIZE

_LOG = logging.getLogger("kohort.spark")
INDEX_SUFFIX = ".index"
WINDOW_BYTES = 1 << 20
_PEEK_BYTES = 1 << 13
LARGEST_BATCH = 1 << 28
_HEADER = Struct(">qiibIhiqqqhii")
_PLACE = Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_MAGIC = 2
NO_OFFSET = 1 << 63
_CRC_FROM = 21
_LISTINGS = 8
_INDEX_ENTRY = Struct(">II")
_INDEX_TRIES = 4


def _open_or_pass(path: str, flags: int) -> int:
    """A pipe that has taken the place of a file must not hold up who opens it."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)


class ReadOnlyFile(DiskFile):
    """A file that is read and nothing else."""

    def __init__(self, path: str) -> None:
        self._descriptor = _open_or_pass(path, os.O_RDONLY)

    def inode(self) -> int:
        """Which file it is, whatever it is called by now."""
        return os.fstat(self._descriptor).st_ino


class ReadOnlyFiles(DiskFiles):
    """Files of somebody else: nothing is made, locked or repaired."""

    def open(self, path: str) -> ReadOnlyFile:
        return ReadOnlyFile(path)

    def reopen(self, path: str) -> ReadOnlyFile:
        return self.open(path)


class Head(NamedTuple):
    """Where a batch stands in its file, and what its header says."""

    position: int
    length: int
    base: int
    following: int
    crc: int
    max_timestamp: int
    records: int
    is_cleaned: bool
    """Cleaning may have rewritten it: records are missing, or it has a horizon for tombstones."""


class SkippedBatch(NamedTuple):
    """A batch that was passed over: where it stands, and the offset behind it."""

    position: int
    following: int


class SegmentFile(NamedTuple):
    """A file of a partition, by the offset that its name says."""

    base: int
    path: str


def segment_files(folder: str) -> list[SegmentFile]:
    """The segments in a folder, first to last. Raises OSError."""
    names = _names(folder)
    for _ in range(_LISTINGS):
        again = _names(folder)
        if again == names:
            break
        names = again
    found: dict[int, SegmentFile] = {}
    for suffix in (LOG_SUFFIX, SWAP_SUFFIX):
        for name in names:
            stem = name.removesuffix(suffix)
            if stem != name and stem.isascii() and stem.isdigit():
                found[int(stem)] = SegmentFile(int(stem), f"{folder}/{name}")
    return [found[base] for base in sorted(found)]


def _names(folder: str) -> list[str]:
    """Of regular files: what else is named like a segment is left out, with a warning. A pipe would
    be read for ever, and a link may lead anywhere.
    """
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                names.append(entry.name)
            elif entry.name.endswith((LOG_SUFFIX, SWAP_SUFFIX)):
                _warn_once(entry.path)
    return sorted(names)


@cache
def _warn_once(path: str) -> None:
    _LOG.warning("%s is no regular file, so it is no segment: it is skipped", path)


class Walk:
    """The headers of one file, and a sparse index of what was walked: a later walk begins near."""

    def __init__(self, path: str) -> None:
        self.file = ReadOnlyFile(path)
        self.path = path
        self.inode = self.file.inode()
        self._following = [0]  # the offset behind everything before the position beside it
        self._positions = [0]

    def close(self) -> None:
        """Release the file."""
        self.file.close()

    def size(self) -> int:
        """How many bytes it has by now."""
        return self.file.size()

    def near(self, offset: int) -> tuple[int, int]:
        """A position that is not behind the batch that holds `offset`, and the offset behind those
        before it.
        """
        at = max(0, bisect_right(self._following, offset) - 1)
        walked = self._positions[at], self._following[at]
        return max(walked, self._indexed(offset))

    def _indexed(self, offset: int) -> tuple[int, int]:
        """The same by Kafka's index file, where there is one, and as far as it is right."""
        entries = index_entries(self.path)
        size = self.size()
        at = bisect_right(entries, (offset, 0))
        for last, position in reversed(entries[max(0, at - _INDEX_TRIES) : at]):
            head = next(self.heads(position, size), None)
            if head is not None and head.following - 1 <= last and self.is_right(head):
                return position, head.base
        return 0, 0

    def skim(
        self, position: int, stop: int, offset: int = NO_OFFSET
    ) -> tuple[int, SkippedBatch | None]:
        """Pass over batches that end before `offset` and before the position `stop`, and look at
        their places only: where that ends, and the last one passed.
        """
        last = None
        while position + HEADER_SIZE <= stop:
            data = self.file.read(position, min(WINDOW_BYTES, stop - position))
            at, passed = skim(data, offset)
            self._index(position + at, passed)
            if passed is None:  # a batch that is larger than the window, or what ends the walk
                head = next(self.heads(position, stop), None)
                if head is None or head.following > offset:
                    break
                at, passed = head.length, SkippedBatch(0, head.following)
            last = SkippedBatch(position + passed.position, passed.following)
            position += at
        return position, last

    def heads(self, position: int, size: int) -> Iterator[Head]:
        """Batches that are whole, from a position up to `size`. Ends at what is none. Of large
        batches nothing but the header is read.
        """
        data, begin = b"", position
        stride = _PEEK_BYTES
        while position + HEADER_SIZE <= size:
            at = position - begin
            if at + HEADER_SIZE > len(data):
                data = self.file.read(position, min(stride, size - position))
                begin, at = position, 0
                if len(data) < HEADER_SIZE:
                    return
            head = head_at(data, at, position)
            if head is None or position + head.length > size:
                return
            stride = HEADER_SIZE if head.length > _PEEK_BYTES else WINDOW_BYTES
            position += head.length
            yield head

    def good_after(self, position: int, size: int, offset: int) -> int | None:
        """Where a batch that is whole and right stands behind a bad one, not below an offset."""
        begin = position + 1
        while begin + HEADER_SIZE <= size:
            data = self.file.read(begin, min(WINDOW_BYTES, size - begin))
            at = data.find(_MAGIC, 16)
            while 0 <= at <= len(data) - (HEADER_SIZE - 16):
                head = head_at(data, at - 16, begin + at - 16)
                fits = head is not None and head.base >= offset and _end(head) <= size
                if head is not None and fits and self.is_right(head):
                    return head.position
                at = data.find(_MAGIC, at + 1)
            begin += max(1, len(data) - HEADER_SIZE + 1)
        return None

    def is_right(self, head: Head) -> bool:
        """Whether the crc is that of the bytes."""
        crc = 0
        position, end = head.position + _CRC_FROM, _end(head)
        while position < end:
            data = self.file.read(position, min(WINDOW_BYTES, end - position))
            if not data:
                return False
            crc = google_crc32c.extend(crc, data)
            position += len(data)
        return bool(crc == head.crc)

    def _index(self, position: int, passed: SkippedBatch | None) -> None:
        if passed is not None and position >= self._positions[-1] + WINDOW_BYTES // 2:
            self._following.append(passed.following)
            self._positions.append(position)


def index_entries(path: str) -> list[tuple[int, int]]:
    """Of a segment: an offset, and where the batch stands that holds it or comes before it; both
    rising. What follows is room for more, or no longer true.

    See `OffsetIndex` of Apache Kafka: four bytes each, the offset counted from the segment's own.
    """
    stem = path.removesuffix(LOG_SUFFIX)
    base = int(os.path.basename(stem)) if stem != path else 0  # noqa: PTH119  (text, not a path)
    found: list[tuple[int, int]] = []
    path = f"{stem}{INDEX_SUFFIX}"
    with suppress(OSError), open(path, "rb", opener=_open_or_pass) as file:
        while data := file.read(_PEEK_BYTES):
            for relative, position in _INDEX_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
                if found and not (base + relative > found[-1][0] and position > found[-1][1]):
                    return found
                found.append((base + relative, position))
    return found


def skim(data: bytes, offset: int = NO_OFFSET) -> tuple[int, SkippedBatch | None]:
    """Pass over the whole batches at the beginning that end before `offset`: where that ends, and
    the last of them.
    """
    at = 0
    size = len(data) - HEADER_SIZE
    last, following = -1, 0
    while at <= size:
        base, length, magic, delta = _PLACE.unpack_from(data, at)
        length += PREFIX_SIZE
        if magic != _MAGIC or length < HEADER_SIZE or at + length > size + HEADER_SIZE:
            break
        if base + delta >= offset:
            break
        last, following = at, base + delta + 1
        at += length
    return at, (SkippedBatch(last, following) if last >= 0 else None)


def _end(head: Head) -> int:
    return head.position + head.length


def heads_in(data: bytes) -> Iterator[Head]:
    """The whole batches at the beginning."""
    at = 0
    while at + HEADER_SIZE <= len(data):
        head = head_at(data, at, at)
        if head is None or at + head.length > len(data):
            return
        yield head
        at += head.length


def head_at(data: bytes, at: int, position: int) -> Head | None:
    """The batch whose header begins `at`; None where there is no header."""
    base, size, _, magic, crc, attributes, delta, _, max_timestamp, *_, count = _HEADER.unpack_from(
        data, at
    )
    length = size + PREFIX_SIZE
    if magic != _MAGIC or not HEADER_SIZE <= length <= LARGEST_BATCH or base < 0 or delta < 0:
        return None
    cleaned = count <= delta or bool(attributes & DELETE_HORIZON)
    return Head(position, length, base, base + delta + 1, crc, max_timestamp, count, cleaned)
