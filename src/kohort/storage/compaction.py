# SPDX-License-Identifier: Apache-2.0
"""Cleaning: of each key only the last value stays, and a tombstone until its horizon has passed.

Closed segments are read, and rewritten where something is superseded. Offsets never change: what
is dropped leaves a hole. Replaying the cleaned log ends where replaying the original does.

Three things hold records back. An open transaction: nothing from its first record on is cleaned.
A tombstone: the first cleaning that finds it writes a horizon into its batch (KIP-534), and only a
cleaning after that time drops it, so that a reader who is behind still learns of the deletion. And
the last batch of a producer stays, empty if need be, because it holds the producer's sequence.

Everything is read and checked before anything is written: a new file would have a right checksum
over damaged records.

The new file is written as `.cleaned`, becomes `.swap` when it is whole and durable, and then takes
the place of the old ones; `segments.py` finishes or discards what a crash has left.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from kohort.errors import Broken, StorageError
from kohort.storage.files import File, Files, sync_change
from kohort.storage.segment import Segment, file_stem
from kohort.storage.segments import CLEANED_SUFFIX, SegmentLog
from kohort.storage.swaps import SWAP_SUFFIX
from kohort.terms import Millis, Offset
from kohort.wire import batch as batches
from kohort.wire.batch import DELETE_HORIZON, BatchHeader, Record

_SLICE_BYTES = 128 * 1024
_MAX_OFFSETS = (1 << 31) - 1
_MOST_SEGMENTS = 16  # in one file: those that it replaces are open at the same time


@dataclass(frozen=True, slots=True)
class CleaningRules:
    """When cleaning drops what is kept for a while."""

    now: Millis
    delete_retention_ms: int = 24 * 60 * 60 * 1000
    producer_expiration_ms: int = 24 * 60 * 60 * 1000


@dataclass(slots=True)
class _Transaction:
    committed: bool = False
    has_data: bool = False  # something of it is left, after this cleaning


@dataclass(slots=True)
class _Survey:
    """What the headers of a whole log say about its producers."""

    transaction_of: dict[int, _Transaction] = field(default_factory=dict)  # by base offset of batch
    open_since: dict[int, Offset] = field(default_factory=dict)  # producer -> first offset
    last_data: dict[int, int] = field(default_factory=dict)  # producer -> base offset
    last_batch: dict[int, int] = field(default_factory=dict)

    def see(self, data: bytes, at: int, header: BatchHeader) -> None:
        producer = header.producer_id
        if producer < 0:
            return
        self.last_batch[producer] = header.base_offset
        if not header.is_control:
            self.last_data[producer] = header.base_offset
            if header.is_transactional:
                begun = self.open_since.setdefault(producer, Offset(header.base_offset))
                transaction = self.transaction_of.setdefault(begun, _Transaction())
                self.transaction_of[header.base_offset] = transaction
            return
        first = self.open_since.pop(producer, Offset(header.base_offset))
        transaction = self.transaction_of.setdefault(first, _Transaction())
        self.transaction_of[header.base_offset] = transaction
        for _, _, key, _ in batches.entries(data, at):
            transaction.committed = batches.marker_commits(key)


def dirty_ratio(log: SegmentLog) -> float:
    """How much of what cleaning may look at has not been cleaned since the log was opened."""
    total = sum(segment.size for segment in log.closed)
    dirty = sum(segment.size for segment in log.closed if segment.base_offset >= log.cleaned_end)
    return dirty / total if total else 0.0


def compact(log: SegmentLog, files: Files, rules: CleaningRules) -> Generator[int, None, None]:
    """Clean the closed segments, a slice at each step; each yields the bytes it has looked at.

    The log may be appended to, read and cut from the front between two steps. Raises StorageError
    when there is no room for the cleaned file, and Broken when the log is damaged: then it is as it
    was.
    """
    # What is closed from here on is the next cleaning's.
    closed, active = log.closed, log.active
    if not closed:
        return
    survey = _Survey()
    for data in _slices([*closed, active]):
        for at, header in batches.walk(data):
            survey.see(data, at, header)
        yield len(data)
    log.expect_no_gap()
    limit = min(survey.open_since.values(), default=active.base_offset)
    following = [*closed[1:], active]
    ends = [segment.base_offset for segment in following]
    cleanable = [segment for segment, end in zip(closed, ends, strict=True) if end <= limit]
    latest: dict[bytes, int] = {}
    for data in _slices(cleanable):
        _note_latest(latest, survey, data)
        yield len(data)
    groups = list(_groups(cleanable, log.config.segment_bytes))
    cleaned_end = ends[len(cleanable) - 1] if cleanable else log.cleaned_end
    del closed, following, cleanable  # what was replaced is open until nobody has it any more
    while groups:
        group = groups.pop(0)
        if not all(segment in log.closed for segment in group):
            return  # retention was quicker
        yield from _Rewrite(log, files, rules, survey=survey, latest=latest, group=group).run()
    log.cleaned_end = cleaned_end


def _slices(segments: list[Segment]) -> Iterator[bytes]:
    for segment in segments:
        for _, data in segment.chunks(_SLICE_BYTES):
            yield data


def _is_aborted(survey: _Survey, header: BatchHeader) -> bool:
    if not header.is_transactional:
        return False
    return not survey.transaction_of[header.base_offset].committed


def _note_latest(latest: dict[bytes, int], survey: _Survey, data: bytes) -> None:
    for at, header in batches.walk(data):
        if header.is_control or _is_aborted(survey, header):
            continue
        records = batches.entries(data, at)
        latest.update((key, offset) for offset, _, key, _ in records if key is not None)


def _groups(segments: list[Segment], size_limit: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one file together, so that small leftovers do not pile up."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        segment.use()
        full = group and (
            size + segment.size > size_limit
            or len(group) == _MOST_SEGMENTS
            or segment.end - group[0].base_offset > _MAX_OFFSETS
        )
        if full:
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


class _Rewrite:
    """One group of segments on its way into one file."""

    def __init__(
        self,
        log: SegmentLog,
        files: Files,
        rules: CleaningRules,
        *,
        survey: _Survey,
        latest: dict[bytes, int],
        group: list[Segment],
    ) -> None:
        self._log = log
        self._files = files
        self._rules = rules
        self._survey = survey
        self._latest = latest
        self._group = group
        self._last_offset = group[-1].end - 1
        self._changed = len(group) > 1
        self._size = 0

    def run(self) -> Iterator[int]:
        base = self._group[0].base_offset
        stem = f"{self._log.directory}/{file_stem(base)}"
        try:
            file = self._files.create(stem + CLEANED_SUFFIX)
            try:
                for data in _slices(self._group):
                    self._write(file, data)
                    yield len(data)
                if self._changed:
                    file.sync()
            finally:
                file.close()
            still_there = all(segment in self._log.closed for segment in self._group)
            if self._changed and still_there:
                self._replace(stem, base)
        except OSError as error:
            raise StorageError(f"{stem} cannot be cleaned: {error}") from error
        finally:
            self._discard(stem + CLEANED_SUFFIX)

    def _replace(self, stem: str, base: Offset) -> None:
        """Put the file in the place of its group. Somebody may be reading there: those files stay
        open, as their names are another file's then.
        """
        try:
            for segment in self._group:
                segment.file.pin()
            fresh = self._log.opened(base, CLEANED_SUFFIX)
            self._files.rename(stem + CLEANED_SUFFIX, stem + SWAP_SUFFIX)
            self._make_count(stem + SWAP_SUFFIX)
        except OSError:
            for segment in self._group:
                segment.file.unpin()
            raise
        self._log.replace(self._group, fresh)

    def _make_count(self, path: str) -> None:
        """Make it durable that this file is there, or take it away again: once its segments have
        changed, a start must not put it in their place.
        """
        try:
            sync_change(self._files, self._log.directory)
        except OSError as error:
            try:
                self._files.unlink(path)
            except OSError:
                raise Broken(f"{path} is in the way: {error}") from error
            raise

    def _discard(self, path: str) -> None:
        try:
            self._files.unlink(path)
        except OSError:
            return  # it is in nobody's way: the next opening removes it

    def _write(self, file: File, data: bytes) -> None:
        kept = []
        for at, header in batches.walk(data):
            whole = data[at : at + header.length]
            cleaned = self._cleaned(whole, header)
            if cleaned is not whole:
                self._changed = True
            kept.append(cleaned)
        output = b"".join(kept)
        file.write(self._size, output)
        self._size += len(output)

    def _cleaned(self, data: bytes, header: BatchHeader) -> bytes:
        """What is left of a batch; the very same object when all of it is."""
        if header.is_control:
            return self._cleaned_marker(data, header)
        aborted = _is_aborted(self._survey, header)
        kept = [] if aborted else self._kept_entries(data, header)
        if len(kept) == header.count and kept:
            tombstones = any(value is None for _, value in kept)
            if not tombstones or header.delete_horizon is not None:
                self._mark_data(header)
                return data
        if not kept and not self._must_stay(header, self._survey.last_data):
            return b""
        self._mark_data(header)
        if not kept and header.count == 0:
            return data
        offsets = {offset: None for offset, _ in kept}
        return self._rebuilt(
            header,
            [record for record in batches.records(data) if record.offset in offsets],
            needs_horizon=any(value is None for _, value in kept),
        )

    def _kept_entries(self, data: bytes, header: BatchHeader) -> list[tuple[int, bytes | None]]:
        horizon = header.delete_horizon
        drop_tombstones = horizon is not None and horizon <= self._rules.now
        latest = self._latest
        return [
            (offset, value)
            for offset, _, key, value in batches.entries(data)
            if key is not None
            and latest.get(key, -1) <= offset
            and not (drop_tombstones and value is None)
        ]

    def _cleaned_marker(self, data: bytes, header: BatchHeader) -> bytes:
        """A marker stays while records of its transaction do, then until its horizon."""
        transaction = self._survey.transaction_of.get(header.base_offset)
        if transaction is None or transaction.has_data or header.count == 0:
            return data
        horizon = header.delete_horizon
        if horizon is None:
            return self._rebuilt(header, list(batches.records(data)), needs_horizon=True)
        if horizon > self._rules.now or self._must_stay(header, self._survey.last_batch):
            return data
        return b""

    def _must_stay(self, header: BatchHeader, last: dict[int, int]) -> bool:
        """The end of the group says up to where it was cleaned; a producer's last, its sequence."""
        if header.last_offset == self._last_offset:
            return True
        if last.get(header.producer_id) != header.base_offset:
            return False
        return header.max_timestamp > self._rules.now - self._rules.producer_expiration_ms

    def _mark_data(self, header: BatchHeader) -> None:
        if header.is_transactional:
            self._survey.transaction_of[header.base_offset].has_data = True

    def _rebuilt(self, header: BatchHeader, kept: list[Record], *, needs_horizon: bool) -> bytes:
        attributes = header.attributes
        base_timestamp = kept[0].timestamp if kept else -1
        max_timestamp = header.max_timestamp
        if kept and not header.is_append_time:
            max_timestamp = max(record.timestamp for record in kept)
        if header.delete_horizon is not None:
            base_timestamp = header.base_timestamp
        elif needs_horizon:
            attributes |= DELETE_HORIZON
            base_timestamp = self._rules.now + self._rules.delete_retention_ms
        return batches.build_records(
            kept,
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            leader_epoch=header.partition_leader_epoch,
        )
