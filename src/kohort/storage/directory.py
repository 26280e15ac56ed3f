"""A data directory: one broker at a time, who it belongs to, and a folder per partition.

`meta.properties` is Kafka's (version 1). `.lock` is held while the directory is open, by the kind
of lock that Kafka uses, so the two keep each other out as well.
"""

import re
from collections.abc import Callable

from kohort.config import read_properties
from kohort.errors import Broken, StorageError
from kohort.storage import checkpoints
from kohort.storage.files import Files, make_durable_directory, read_whole, replace_whole
from kohort.storage.log import LogConfig
from kohort.storage.segment import Segment, segment_bases
from kohort.storage.segments import SegmentLog, delete_partition, remove_folder
from kohort.terms import Offset, TopicId, uuid_text

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
_KAFKA_METADATA = "__cluster_metadata"  # the log of a KRaft controller is nobody's topic


class LogDirectory:
    """Opens and deletes partitions; closes with `close`, which releases the lock."""

    def __init__(
        self, path: str, files: Files, *, node_id: int, new_uuid: Callable[[], bytes]
    ) -> None:
        """Make the directory if need be, lock it, and read or write whose it is.

        Raises StorageError: another broker has it, it belongs to another node, or it cannot be
        written. `new_uuid` gives 16 bytes: for the ids of cluster and directory.
        """
        self.path = path.rstrip("/") or "/"
        self._files = files
        self._new_uuid = new_uuid
        self._names_changed = False  # since they were last made durable
        self.notices: list[str] = []  # what was skipped when the directory was opened
        try:
            make_durable_directory(files, self.path)
            self._lock = files.lock(f"{self.path}/{LOCK}")
        except BlockingIOError as error:
            raise StorageError(f"{self.path} is in use by another broker") from error
        except OSError as error:
            raise StorageError(f"{self.path} cannot be used as data directory: {error}") from error
        try:
            self._read_meta(node_id)
            self._tidy()
            self._starts = checkpoints.start_offsets(files, self.path)  # Kafka's, never ours
        except OSError as error:
            self.close()
            raise StorageError(f"{self.path} cannot be used as data directory: {error}") from error
        except StorageError:
            self.close()
            raise

    def _read_meta(self, node_id: int) -> None:
        content = read_whole(self._files, self.path, META_PROPERTIES)
        if content is None:
            self.cluster_id = uuid_text(self._new_uuid())
            self.directory_id = uuid_text(self._new_uuid())
            self.node_id = node_id
            self._write_meta()
            return
        fields = read_properties(content.decode("latin-1"))
        where = f"{self.path}/{META_PROPERTIES}"
        if fields.get("version") != "1":
            raise StorageError(f"{where}: version is {fields.get('version')}, expected 1")
        if fields.get("node.id") != str(node_id):
            raise StorageError(
                f"{where}: node.id is {fields.get('node.id')}, this broker's is {node_id}"
            )
        if not fields.get("cluster.id"):
            raise StorageError(f"{where}: cluster.id is missing")
        self.node_id = node_id
        self.cluster_id = fields["cluster.id"]
        self.directory_id = fields.get("directory.id", "")
        if not self.directory_id:  # as Kafka before 3.7 left it
            self.directory_id = uuid_text(self._new_uuid())
            self._write_meta()

    def _write_meta(self) -> None:
        lines = [
            f"cluster.id={self.cluster_id}",
            f"directory.id={self.directory_id}",
            f"node.id={self.node_id}",
            "version=1",
            "",
        ]
        replace_whole(self._files, self.path, META_PROPERTIES, "\n".join(lines).encode("latin-1"))

    def _tidy(self) -> None:
        """Finish deletions, and take Kafka's word of a clean stop away: we are about to write."""
        self._files.unlink(f"{self.path}/{CLEAN_SHUTDOWN}")
        for name in self._files.names(self.path):
            if _DELETED.fullmatch(name):
                try:
                    remove_folder(self._files, f"{self.path}/{name}")
                except OSError as error:
                    self.notices.append(f"{self.path}/{name} is not removed: {error}")

    def partitions(self) -> dict[str, list[int]]:
        """The topics that have folders, and the partitions of each. What only has the name of a
        partition is somebody else's.
        """
        found: dict[str, list[int]] = {}
        for name in self._files.names(self.path):
            place = checkpoints.split_name(name)
            if place is not None and place[0] != _KAFKA_METADATA and self._is_partition(name):
                found.setdefault(place[0], []).append(place[1])
        return {topic: sorted(found[topic]) for topic in sorted(found)}

    def _is_partition(self, name: str) -> bool:
        try:
            inside = self._files.names(f"{self.path}/{name}")
        except NotADirectoryError:
            return False
        except OSError as error:
            self.notices.append(f"{self.path}/{name} is left alone: {error}")
            return False
        return checkpoints.PARTITION_METADATA in inside or bool(segment_bases(inside))

    def highest_producer_id(self, topic: str, index: int) -> int:
        """The highest producer id in all the batches of a partition, or -1. Raises StorageError.

        What stands behind damage is not seen; the partition is not served then either.
        """
        folder = f"{self.path}/{topic}-{index}"
        highest = -1
        try:
            for base in segment_bases(self._files.names(folder)):
                segment = Segment(self._files, folder, base, interval=1 << 30)
                segment.scan(check=False)
                segment.file.close()
                highest = max(highest, segment.highest_producer_id)
        except OSError as error:
            raise StorageError(f"{folder} cannot be read: {error}") from error
        return highest

    def topic_id(self, topic: str, index: int) -> TopicId | None:
        """The topic id that a partition's folder names, if it names one. Raises StorageError for a
        file that cannot be read, Broken for one that is damaged.
        """
        folder = f"{self.path}/{topic}-{index}"
        try:
            return checkpoints.topic_id(self._files, folder)
        except OSError as error:
            raise StorageError(f"{folder} cannot be read: {error}") from error

    def open_log(
        self, topic: str, index: int, topic_id: TopicId, config: LogConfig | None = None
    ) -> SegmentLog:
        """The log of a partition, made when it is missing: for good only after `sync_names`.

        Raises StorageError when the folder belongs to another topic of that name, or cannot be
        read or written, and Broken when it is damaged.
        """
        folder = f"{self.path}/{topic}-{index}"
        try:
            if self._files.make_directory(folder):
                self._names_changed = True
            found = checkpoints.topic_id(self._files, folder)
            if found is None:
                checkpoints.write_topic_id(self._files, folder, topic_id)
            elif found != topic_id:
                raise StorageError(
                    f"{folder} belongs to topic id {uuid_text(found)}, "
                    f"{topic} has {uuid_text(topic_id)}"
                )
        except OSError as error:
            raise StorageError(f"{folder} cannot be opened: {error}") from error
        known_start = self._starts.get((topic, index), Offset(0))
        return SegmentLog(folder, self._files, config, known_start=known_start)

    def delete(self, topic: str, index: int, topic_id: TopicId) -> None:
        """Remove a partition whose log is closed; fine when there is none. Raises StorageError.

        A folder of another topic of that name is left alone: it was made anew meanwhile. A loss
        of power may bring the folder back until `sync_names`.
        """
        folder = f"{self.path}/{topic}-{index}"
        try:
            found = self.topic_id(topic, index)
        except Broken as error:
            raise StorageError(f"{folder} may belong to another topic: {error}") from error
        # A folder without an id holds nothing of another topic: the id is written first.
        if found is None or found == topic_id:
            self._forget_start(topic, index)
            self._names_changed = True
            delete_partition(self._files, folder, self._new_uuid().hex())

    def sync_names(self) -> None:
        """Make it durable which folders there are, where that has changed. Raises StorageError."""
        if not self._names_changed:
            return
        try:
            self._files.sync_directory(self.path)
            self._names_changed = False
        except OSError as error:
            raise StorageError(f"{self.path} cannot be synced: {error}") from error

    def _forget_start(self, topic: str, index: int) -> None:
        """The next topic of that name begins at 0, also after a restart."""
        if self._starts.pop((topic, index), None) is not None:
            try:
                checkpoints.write_start_offsets(self._files, self.path, self._starts)
            except OSError as error:
                raise StorageError(
                    f"{self.path}: the start of {topic}-{index} is not forgotten: {error}"
                ) from error

    def close(self) -> None:
        """Release the lock. Logs are closed by whoever opened them."""
        self._lock.close()
