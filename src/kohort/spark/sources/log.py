"""Log directories: a broker's own, or a copy. `spark.read.format("kohort.log").load(directory)`."""

from datetime import UTC, datetime

from kohort.spark.sources import end_offsets
from kohort.spark.sources.fed import FedFormat, FedSource
from kohort.spark.sources.feed import Feed
from kohort.spark.sources.folder_feed import FolderFeed
from kohort.spark.sources.folders import find
from kohort.spark.sources.options import GROUP_LOG
from kohort.spark.sources.samples import NOTHING, Since
from kohort.spark.sources.source import Ends
from kohort.spark.sources.standing import Identity, Settings


class KohortLog(FedFormat):
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


class LogSource(FedSource):
    """Keeps the contract of `Source` for a directory of logs."""

    def __init__(self, path: str, topic: str = GROUP_LOG) -> None:
        super().__init__(KohortLog, path, topic, FolderFeed(path, topic))
        self._path = path
        self._topic = topic

    def identity(self) -> Identity:
        """As `meta.properties` and `partition.metadata` tell."""
        return find(self._path, self._topic).identity()

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
