"""Samples of where the partitions of user topics end: from their folders, or from the cluster.

A folder tells its own history. In the header of every batch stand the newest timestamp in it and
the offset behind it, so a walk over the headers gives the end of the log at all times since its
start, and no record is read. Any part of the samples is as true as all of them, only coarser; that
is what bounds their number.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest

import pyarrow as pa

from kohort.client.admin import AdminClient, TopicPartition
from kohort.client.admin.views import FoundOffset, Outcomes
from kohort.errors import Broken
from kohort.spark.schemas import END_OFFSETS
from kohort.spark.sources.asking import ask
from kohort.spark.sources.beside import INTERNAL_TOPICS, Folder, folders, log_start, segments_of
from kohort.spark.sources.columns import of_columns
from kohort.spark.sources.files import Head, ReadOnlyFiles, SegmentFile, Walk
from kohort.spark.sources.samples import NOTHING, Sample, Since
from kohort.storage import checkpoints
from kohort.terms import uuid_text

_LOG = logging.getLogger("kohort.spark")

MOST_SAMPLES = 10_000
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999; beyond it is no time


_FILES = ReadOnlyFiles()


def sample_folders(
    directory: str, since: Since = NOTHING, *, most: int = MOST_SAMPLES
) -> pa.Table | None:
    """END_OFFSETS rows of all user topics that lie beside the group log, None where none do.

    See `sample` for what is in them. What lies before `since` is not walked again.
    """
    found = folders(directory)
    if not found:
        return None
    batches = [sample(folder, since, most=most) for folder in found]
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


def sample(folder: Folder, since: Since = NOTHING, *, most: int = MOST_SAMPLES) -> pa.RecordBatch:
    """END_OFFSETS rows of one partition, in order of time and of offset.

    Times are the newest timestamp so far, so they never go back; where the topic has CreateTime
    they are the producers' clocks, and one that runs ahead hides the later ones until they catch
    up. The first and the last are always there, and of the rest at most `most`, evenly in time. A
    partition without any timestamp (it is empty) has one sample, at the time at which its newest
    file was last written.
    """
    topic_id = _topic_id(folder.path)
    segments = segments_of(folder.path)
    last = since.get((folder.topic, folder.partition, topic_id))
    samples = thinned(_ends(segments, last), most)
    if not samples and last is None:
        samples = _end_by_file_time(segments)
    start = max(log_start(folder), min((segment.base for segment in segments), default=0))
    return _rows(
        [(folder.topic, topic_id, folder.partition, start, taken) for taken in samples], "log"
    )


def thinned(samples: Iterable[Sample], most: int) -> list[Sample]:
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


def _ends(segments: Sequence[SegmentFile], last: Sample | None) -> Iterator[Sample]:
    """The newest timestamp so far and the offset behind each batch: from `last` on, or all of them
    where that cannot be of this log.
    """
    place = _behind(segments, last) if last is not None else None
    first, position = place or (0, 0)
    newest, end = last if last is not None and place is not None else (-1, 0)
    for segment in segments[first:]:
        for head in _heads(segment, position):
            if head.following <= end:
                continue
            end = head.following
            if head.max_timestamp <= _LATEST_MS:
                newest = max(newest, head.max_timestamp)
            if newest >= 0:
                yield Sample(newest, end)
        position = 0


def _behind(segments: Sequence[SegmentFile], last: Sample) -> tuple[int, int] | None:
    """Where a walk goes on that ended with `last`: the number of a segment, and a position in it.

    None when no walk of this log can have ended so. A topic without an id may be another of the
    same name: then its log is shorter, has no batch that ends there, or has later times before it.
    """
    holding = [index for index, segment in enumerate(segments) if segment.base < last.end_offset]
    if not holding:
        return 0, 0
    position = 0
    for head in _heads(segments[holding[-1]]):
        if head.base >= last.end_offset:  # cleaning has removed what stood before
            return holding[-1], position
        if head.following > last.end_offset or last.at_ms < head.max_timestamp <= _LATEST_MS:
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


def _end_by_file_time(segments: Sequence[SegmentFile]) -> list[Sample]:
    for file in reversed(segments):
        with suppress(FileNotFoundError):
            at_ms = int(os.stat(file.path).st_mtime * 1000)  # noqa: PTH116
            end = max((head.following for head in _heads(file)), default=file.base)
            return [Sample(at_ms, end)]
    return []


def _topic_id(path: str) -> str | None:
    """As `partition.metadata` tells it; None without one, or when it cannot be read."""
    with suppress(OSError, Broken, ValueError):
        topic_id = checkpoints.topic_id(_FILES, path)
        return None if topic_id is None else uuid_text(topic_id)
    return None


def sample_cluster(bootstrap: str) -> pa.Table:
    """Where the partitions of all user topics end now: two questions to each broker.

    `sampled_at` is the middle between question and answer, so it is wrong by half of that time at
    most, by the clock of this machine. A partition that has no leader gives no sample, which is a
    warning. Raises SourceError when nobody can be asked.
    """
    return ask(bootstrap, _sample)


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
    for place, error in ends.failed.items():
        text = "%d of %d partitions give no sample, such as %s: %s"
        _LOG.warning(text, len(ends.failed), len(partitions), place, error)
        break
    rows = []
    for place, end in ends.succeeded.items():
        if end.offset is not None:
            start = starts.succeeded.get(place)
            rows.append(
                (
                    place.topic,
                    ids[place.topic],
                    place.partition,
                    start.offset if start is not None else None,
                    Sample(at_ms, end.offset),
                )
            )
    return pa.Table.from_batches([_rows(rows, "cluster")], END_OFFSETS.arrow)


def _rows(
    rows: Sequence[tuple[str, str | None, int, int | None, Sample]], origin: str
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
        "samples": [1] * len(rows),
    }
    return of_columns(END_OFFSETS, columns)
