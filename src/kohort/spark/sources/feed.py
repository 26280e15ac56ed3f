# SPDX-License-Identifier: Apache-2.0
"""What a data source needs of a log, wherever the log is: a folder of segments, or a live cluster.

The driver asks for bounds and fingerprints and cuts ranges into tasks; a task is read by a worker,
which has nothing but the pickled feed. What a worker does with a log that is not as planned: it
goes on from the next offset that is there (see `source`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from pyspark.sql.datasource import InputPartition

from kohort.pipeline.columns.record_positions import Rows
from kohort.pipeline.sources.log_position import Mark, Note

_TASKS = 32
_MOST = 8


class Span(NamedTuple):
    """Offsets of one partition, the end not included."""

    partition: int
    start: int
    end: int


class WeightedSpan(NamedTuple):
    """A span that is read in one go, and how much there is to read, in the feed's unit."""

    span: Span
    weight: int


class Task(InputPartition):
    """Spans that one worker reads, one after the other."""

    def __init__(self, spans: Sequence[Span]) -> None:
        super().__init__(tuple(spans))


class Bounds(NamedTuple):
    """Where a partition's log begins and ends now."""

    start: int
    end: int
    generation: int = 0
    """Changes whenever a tail may have been cut: a new leader, a file that is shorter than it
    was."""


class Survey(Protocol):
    """What planning asks of a log. Methods raise SourceError when it cannot be read."""

    def bounds(self) -> dict[int, Bounds]:
        """The partitions, and where they begin and end now."""

    def marks(self, following: Mapping[int, int]) -> dict[int, Mark | None]:
        """Partition -> the last batch that begins before an offset; None where there is none."""

    def offset_after_mark(self, marks: Mapping[int, Mark]) -> dict[int, int | None]:
        """Partition -> the offset after this batch if it is still there, or None if another stands
        in its place. What compaction may have changed or removed counts as still there.
        """

    def at_time(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        """Partition -> first offset that is not older, the end where there is none."""

    def observed_changes(self) -> tuple[Note, ...]:
        """Notes on what this feed has seen change since it was made, such as leaders."""


class Feed(Survey, Protocol):
    """A log of one topic, to be read."""

    def weigh(self, ranges: Mapping[int, tuple[int, int]]) -> list[WeightedSpan]:
        """The ranges as spans that are best read in one go, in order."""

    def read(self, spans: Sequence[Span]) -> Iterator[Rows]:
        """The raw rows of spans, those of a partition in order. Called in a worker."""


def tasks(weighted_spans: Sequence[WeightedSpan], wanted: int | None, least: int) -> list[Task]:
    """Tasks of about the same weight, about as many as wanted. If no number is wanted, the log
    decides: a small log shall keep some cores busy, no task shall be too small to be worth its
    start (`least`), and none far larger than that.
    """
    whole = sum(piece.weight for piece in weighted_spans)
    target = whole // wanted if wanted else min(max(least, whole // _TASKS), _MOST * least)
    found: list[Task] = []
    spans: list[Span] = []
    weight = 0
    for piece in weighted_spans:
        if spans and weight + piece.weight // 2 > target:
            found.append(Task(spans))
            spans, weight = [], 0
        if spans and (spans[-1].partition, spans[-1].end) == piece.span[:2]:
            spans[-1] = spans[-1]._replace(end=piece.span.end)
        else:
            spans.append(piece.span)
        weight += piece.weight
    if spans:
        found.append(Task(spans))
    return found
