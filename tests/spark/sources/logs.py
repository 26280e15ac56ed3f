# SPDX-License-Identifier: Apache-2.0
"""A log that a test writes, cleans, rolls and cuts while somebody reads it."""

import os

from kohort.pipeline.columns.record_positions import raw
from kohort.spark.sources.feed import Span
from kohort.spark.sources.registry import source
from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.files import DiskFiles
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog
from kohort.wire import batch

FIRST = 1_790_000_000_000


class Writer:
    """The owner of partition `index` of a group log under a directory."""

    def __init__(self, directory, index=0, segment_bytes=1 << 20):
        self.folder = directory / f"__consumer_offsets-{index}"
        self._config = LogConfig(segment_bytes, index_interval_bytes=100)
        self._open()

    def _open(self):
        self.log = SegmentLog(str(self.folder), DiskFiles(), self._config)

    def append(self, *keys, times=1, value=b"v", **how):
        """Batches of records with these keys, a second after one another."""
        for _ in range(times):
            data = batch.build(
                [(key.encode(), value) for key in keys], FIRST + 1000 * self.log.end, **how
            )
            self.log.append(data, len(keys))

    def roll(self):
        self.log.roll()

    def clean(self):
        self.log.roll()
        for _ in compact(self.log, DiskFiles(), CleaningRules(now=FIRST)):
            pass

    def cut(self, offset):
        """The tail from an offset on is lost, as a crash loses what was not synced."""
        last = self.log.active
        position = next(at for at, head in last.headers() if head.last_offset >= offset)
        path = last.path
        self.log.close()
        os.truncate(path, position)
        self._open()

    def files(self):
        return sorted(self.folder.glob("*.log"))


def read(one, plan=None):
    """(partition, offset, key) of a source's rows, by its feed alone; errors in the key's place."""
    plan = plan or one.plan({})
    spans = [weighed.span for weighed in one._feed.weigh(plan.ranges)]
    return rows_of(one, spans)


def rows_of(one, spans):
    return [
        (row["partition"], row["offset"], row["key"].decode() if row["key"] else row["error"])
        for rows in one._feed.read(spans)
        for row in raw(rows).to_pylist()
    ]


def read_range(one, start, end, partition=0):
    return rows_of(one, [Span(partition, start, end)])


def log_source(directory):
    return source(f"log:{directory}")
