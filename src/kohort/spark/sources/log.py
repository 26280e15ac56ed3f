# SPDX-License-Identifier: Apache-2.0
"""Log directories: a broker's own, or a copy. `spark.read.format("kohort.log").load(directory)`."""

from collections.abc import Mapping
from datetime import UTC, datetime

from kohort.pipeline.sources.folders import find, is_partition
from kohort.pipeline.sources.log_position import WHOLE_LOG, Identity, Note, Plan, Position, Settings
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.pipeline.sources.samples import NOTHING, Since
from kohort.spark.engine import small_runs
from kohort.spark.sources import end_offsets
from kohort.spark.sources.feed import Feed
from kohort.spark.sources.feed_source import FeedFormat, FeedSource
from kohort.spark.sources.folder_feed import FolderFeed
from kohort.spark.sources.source import Ends

_NAMED = 10
"""So many numbers of partitions are named that are not there."""


class KohortLog(FeedFormat):
    """Rows of the segment files in a directory that every worker can read.

    Options: `path`, and what `options` describes.
    """

    place = "path"
    example = "/var/kafka/data"
    least = 32 << 20  # bytes

    @classmethod
    def name(cls) -> str:
        return "kohort.log"

    @classmethod
    def feed(cls, place: str, topic: str) -> Feed:
        return FolderFeed(place, topic)

    @classmethod
    def driver_limit(cls) -> int:
        return small_runs.DRIVER_LOG_BYTES


class LogSource(FeedSource):
    """Keeps the contract of `Source` for a directory of logs."""

    def __init__(self, path: str, topic: str = GROUP_LOG) -> None:
        super().__init__(KohortLog, path, topic, FolderFeed(path, topic))
        self._path = path
        self._topic = topic

    def identity(self) -> Identity:
        """As `meta.properties` and `partition.metadata` tell."""
        return find(self._path, self._topic).identity()

    def plan(
        self,
        since: Mapping[int, Position],
        *,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
    ) -> Plan:
        """Says too which partitions are not there: another one of `log.dirs` has them."""
        plan = super().plan(since, from_time=from_time, to_time=to_time)
        return plan._replace(notes=(*plan.notes, *self._missing()))

    def _missing(self) -> list[Note]:
        if is_partition(self._path.rstrip("/")):  # a single one was wanted
            return []
        there = find(self._path, self._topic).by_partition
        absent = [index for index in range(max(there, default=-1)) if index not in there]
        if not absent:
            return []
        few = ", ".join(map(str, absent[:_NAMED])) + (", …" if len(absent) > _NAMED else "")
        every = len(absent) + len(there)
        text = (
            f"{len(absent)} of at least {every} partitions of {self._topic} are not in "
            f"{self._path} ({few}), so their groups are not in the tables: name the directory that "
            "holds all of log.dirs, or read the cluster"
        )
        return [Note(WHOLE_LOG, 0, text)]

    def ends(self, since: Since = NOTHING) -> Ends:
        """Of the folders of user topics beside those of the group log, walked by the workers. They
        tell when each batch was written, so it does not matter when they are walked.
        """
        at = datetime.now(UTC)
        planned_ms = int(at.timestamp() * 1000)
        return Ends(
            at, lambda spark: end_offsets.from_folders(spark, self._path, since, planned_ms)
        )

    def settings(self) -> Settings:
        """Unknown: no file of a log directory tells."""
        return Settings()
