# SPDX-License-Identifier: Apache-2.0
"""Samples of where the partitions of user topics end: from their folders, or from the cluster.

A folder tells its own history. In the header of every batch stand the newest timestamp in it and
the offset behind it, so a walk over the headers gives the end of the log at all times since its
start, and no record is read. Any part of the samples is as true as all of them, only coarser; that
is what bounds their number.
"""

import logging
import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest

import pyarrow as pa

from kohort.client.admin import AdminClient, TopicPartition
from kohort.client.admin.topic_views import FoundOffset
from kohort.client.admin.views import Outcomes
from kohort.errors import Broken
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.sources.admin_query import ask
from kohort.pipeline.sources.columns import of_columns
from kohort.pipeline.sources.files import Head, ReadOnlyFiles, SegmentFile, Walk
from kohort.pipeline.sources.samples import NOTHING, Sample, Since
from kohort.pipeline.sources.user_topics import (
    INTERNAL_TOPICS,
    Folder,
    folders,
    log_start,
    segments_of,
)
from kohort.security.settings import NO_SECURITY, Security
from kohort.storage import checkpoints
from kohort.terms import uuid_text

_LOG = logging.getLogger("kohort.spark")

MOST_SAMPLES = 10_000
SKEW_MS = 1_000
"""By so much the times of two batches may contradict their order, as those of two producers do
whose clocks are right.
"""


_FILES = ReadOnlyFiles()


def sample_folders(
    directory: str,
    since: Since = NOTHING,
    planned_ms: int | None = None,
    *,
    most: int = MOST_SAMPLES,
) -> pa.Table | None:
    """END_OFFSETS rows of all user topics that lie beside the group log, None where none do.

    See `sample` for what is in them. What lies before `since` is not walked again.
    """
    found = folders(directory)
    if not found:
        return None
    batches = [sample(folder, since, planned_ms, most=most) for folder in found]
    return pa.Table.from_batches(batches, END_OFFSETS.arrow)


def is_short(found: Sequence[Folder], since: Since, most_bytes: int, most_folders: int) -> bool:
    """Whether walks over these folders pass at most this many bytes altogether."""
    left = most_bytes
    for folder in found if len(found) <= most_folders else ():
        last = since.get((folder.topic, folder.partition, _topic_id(folder.path)))
        segments = segments_of(folder.path)
        following = [later.base for later in segments[1:]]
        for segment, end in zip_longest(segments, following):
            if last is None or end is None or end >= last.end_offset:
                with suppress(FileNotFoundError):
                    left -= os.stat(segment.path).st_size  # noqa: PTH116
        if left < 0:
            return False
    return len(found) <= most_folders


def sample(
    folder: Folder,
    since: Since = NOTHING,
    planned_ms: int | None = None,
    *,
    most: int = MOST_SAMPLES,
) -> pa.RecordBatch:
    """END_OFFSETS rows of one partition, in order of time and of offset.

    Times are the newest timestamp so far, so they never go back. Where the topic has CreateTime
    they are the producers' clocks. A time that is yet to come when the batch is read is none: it
    would hide all later batches until then. The first and the last are always there, and of the
    rest at most `most`, evenly in time. So that the end is known now, batches at the end without a
    time of their own have that at which their file was last written, or at which reading was
    planned if that is earlier, as has a partition without any record.
    """
    now_ms = int(time.time() * 1000)
    topic_id = _topic_id(folder.path)
    segments = segments_of(folder.path)
    last = since.get((folder.topic, folder.partition, topic_id))
    walk = _Walk(segments, last, is_same=topic_id is not None)
    samples = downsample(walk.ends(now_ms), most)
    stands_for = [2 if walk.is_doubtful(taken.at_ms) else 1 for taken in samples]
    if walk.untimed or (not samples and last is None):
        samples += _end_by_file_time(segments, now_ms if planned_ms is None else planned_ms, walk)
        # It stands for batches without a time, so it does not tell when each was written.
        stands_for += [2 if walk.untimed else 1]
    start = max(log_start(folder), min((segment.base for segment in segments), default=0))
    rows = [(folder.topic, topic_id, folder.partition, start, taken) for taken in samples]
    return _rows(rows, "log", stands_for[: len(rows)])


def downsample(samples: Iterable[Sample], most: int) -> list[Sample]:
    """The first, the last, and of the rest the last in each time step, which grows as needed.

    Of several at one time only the last counts.
    The samples come in order, and no more than `most` are kept at any time.
    """
    kept: dict[int, Sample] = {}
    first = None
    step = 1
    for taken in samples:
        first = first or taken
        kept[taken.at_ms // step] = taken
        while len(kept) > max(most, 1):
            step *= 2
            kept = {each.at_ms // step: each for each in kept.values()}
    rest = list(kept.values())
    return rest if first is None or first.at_ms == rest[0].at_ms else [first, *rest]


class _Walk:
    """A walk over the batches of a partition: from `last` on, or over all of them where that cannot
    be of this log.
    """

    def __init__(
        self, segments: Sequence[SegmentFile], last: Sample | None, *, is_same: bool
    ) -> None:
        self._segments = segments
        self._last = last
        self._is_same = is_same
        self.end = 0
        """The offset behind the last batch."""
        self.newest = -1
        """The newest timestamp so far."""
        self.untimed = False
        """Whether no batch from the last that told one on has a time."""
        self._doubtful: list[tuple[int, int]] = []
        """Stretches from the time of a batch to a later time of a batch before it, in order."""

    def ends(self, now_ms: int) -> Iterator[Sample]:
        """The newest timestamp so far and the offset behind each batch, up to the last that has a
        time of its own.
        """
        last = self._last
        place = None
        if last is not None:
            latest = 0 if self._is_same else now_ms
            place = _behind(self._segments, last, latest)
        first, position = place or (0, 0)
        if last is not None and place is not None:
            self.end = last.end_offset
            # A walk of an earlier Kohort may have ended with a time that is yet to come.
            self.newest = last.at_ms if last.at_ms <= now_ms else -1
        for segment in self._segments[first:]:
            for head in _heads(segment, position):
                if head.following <= self.end:
                    continue
                before, self.end = self.end, head.following
                has_time = 0 <= head.max_timestamp <= now_ms
                if has_time:
                    if self.untimed and self.newest >= 0:
                        yield Sample(self.newest, before)
                    if head.max_timestamp < self.newest - SKEW_MS:
                        self._doubt(head.max_timestamp)
                    self.newest = max(self.newest, head.max_timestamp)
                    yield Sample(self.newest, self.end)
                self.untimed = not has_time
            position = 0

    def _doubt(self, since: int) -> None:
        """A batch is of an earlier time than one before it."""
        while self._doubtful and self._doubtful[-1][1] >= since:
            since = min(since, self._doubtful.pop()[0])
        self._doubtful.append((since, self.newest))

    def is_doubtful(self, at_ms: int) -> bool:
        """Whether a clock contradicts that the end was reached at this time, once all is walked."""
        index = bisect_left(self._doubtful, at_ms, key=lambda stretch: stretch[1])
        return index < len(self._doubtful) and self._doubtful[index][0] < at_ms


def _behind(
    segments: Sequence[SegmentFile], last: Sample, latest_ms: int
) -> tuple[int, int] | None:
    """Where a walk goes on that ended with `last`: the number of a segment, and a position in it.

    None when no walk of this log can have ended so. A topic without an id may be another of the
    same name: then its log is shorter, has no batch that ends there, or has later times before it.
    Times beyond `latest_ms` are none.
    """
    holding = [index for index, segment in enumerate(segments) if segment.base < last.end_offset]
    if not holding:
        return 0, 0
    position = 0
    for head in _heads(segments[holding[-1]]):
        if head.base >= last.end_offset:  # cleaning has removed what stood before
            return holding[-1], position
        if head.following > last.end_offset or last.at_ms < head.max_timestamp <= latest_ms:
            return None
        position = head.position + head.length
        if head.following == last.end_offset:
            return holding[-1], position
    return (holding[-1], position) if len(holding) < len(segments) else None


def _heads(file: SegmentFile, position: int = 0) -> Iterator[Head]:
    """The batches of a segment from a position on, up to where it is torn or damaged; none when it
    has gone.
    """
    with suppress(FileNotFoundError):
        walk = Walk(file.path)
        try:
            yield from walk.heads(position, walk.size())
        finally:
            walk.close()


def _end_by_file_time(
    segments: Sequence[SegmentFile], planned_ms: int, walk: _Walk
) -> list[Sample]:
    """The end of the log at the time at which its last file was written, as far as that was before
    reading was planned: a file that is written all the time is written after that too.
    """
    for file in reversed(segments):
        with suppress(FileNotFoundError):
            written_ms = int(os.stat(file.path).st_mtime * 1000)  # noqa: PTH116
            at_ms = max(min(written_ms, planned_ms), walk.newest)
            return [Sample(at_ms, max(walk.end, file.base))]
    return []


def _topic_id(path: str) -> str | None:
    """As `partition.metadata` tells it; None without one, or when it cannot be read."""
    with suppress(OSError, Broken, ValueError):
        topic_id = checkpoints.topic_id(_FILES, path)
        return None if topic_id is None else uuid_text(topic_id)
    return None


def sample_cluster(bootstrap: str, security: Security = NO_SECURITY) -> pa.Table:
    """Where the partitions of all user topics end now: two questions to each broker.

    `sampled_at` is the middle between question and answer, so it is wrong by half of that time at
    most, by the clock of this machine. A partition that has no leader gives no sample, which is a
    warning. Raises SourceError when nobody can be asked.
    """
    return ask(bootstrap, _sample, security)


async def _sample(admin: AdminClient) -> pa.Table:
    found = await admin.list_topics()
    topics = [topic for topic in found if topic.name not in INTERNAL_TOPICS]
    ids = {topic.name: uuid_text(topic.topic_id) if topic.topic_id else None for topic in topics}
    partitions = [
        TopicPartition(topic.name, index)
        for topic in topics
        for index in range(topic.partitions or 0)
    ]
    starts: Outcomes[TopicPartition, FoundOffset] = await admin.list_offsets(
        dict.fromkeys(partitions, "earliest")
    )
    asked_at = time.time()
    ends = await admin.end_offsets(partitions)
    at_ms = int((asked_at + time.time()) / 2 * 1000)
    for topic in topics:
        if topic.error is not None:
            _LOG.warning("topic %s gives no samples: %s", topic.name, topic.error)
    errors, first_offsets = ends.failed, starts.succeeded
    for place, error in errors.items():
        text = "%d of %d partitions give no sample, such as %s: %s"
        _LOG.warning(text, len(errors), len(partitions), place, error)
        break
    rows = []
    for place, end in ends.succeeded.items():
        if end.offset is not None:
            start = first_offsets.get(place)
            rows.append(
                (
                    place.topic,
                    ids[place.topic],
                    place.partition,
                    start.offset if start is not None else None,
                    Sample(at_ms, end.offset),
                )
            )
    return pa.Table.from_batches([_rows(rows, "cluster", [1] * len(rows))], END_OFFSETS.arrow)


def _rows(
    rows: Sequence[tuple[str, str | None, int, int | None, Sample]],
    origin: str,
    stands_for: Sequence[int],
) -> pa.RecordBatch:
    topics, ids, partitions, starts, samples = zip(*rows, strict=True) if rows else ([],) * 5
    columns = {
        "sampled_at": [taken.at_ms * 1000 for taken in samples],
        "topic": topics,
        "topic_id": ids,
        "topic_partition": partitions,
        "log_start_offset": starts,
        "end_offset": [taken.end_offset for taken in samples],
        "origin": [origin] * len(rows),
        "samples": stands_for,
    }
    return of_columns(END_OFFSETS, columns)
