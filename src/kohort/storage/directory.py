# SPDX-License-Identifier: Apache-2.0
"""A data directory: one broker at a time, who it belongs to, and a folder per partition.

`meta.properties` is Kafka's (version 1). `.lock` is held while the directory is open, by the kind
of lock that Kafka uses, so the two keep each other out as well.
"""

import errno
import re
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress

from kohort.config import read_properties
from kohort.errors import Broken, StorageError
from kohort.storage import checkpoints
from kohort.storage.checkpoints import CLEAN_SHUTDOWN
from kohort.storage.files import (
    Files,
    make_durable_directory,
    read_whole,
    remove_folder,
    replace_whole,
    set_aside,
    sync_name,
)
from kohort.storage.holes import survey
from kohort.storage.log import LogConfig
from kohort.storage.open_files import OpenFiles
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.segment import segment_bases
from kohort.storage.segments import SegmentLog
from kohort.terms import Offset, PartitionIndex, TopicId, uuid_text

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
_LONGEST_NAME = 255
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
_CLEAN_CONTENT = b'{"version":0,"brokerEpoch":-1}'  # as Kafka writes it; it reads ours
KAFKA_METADATA = "__cluster_metadata"  # the log of a KRaft controller is nobody's topic

Places = Mapping[tuple[str, int], Offset]
"""An offset of partitions: by topic and index."""


def is_partition(files: Files, path: str, name: str) -> bool:
    """Whether a name in a directory stands for the folder of a partition. May raise OSError."""
    place = checkpoints.split_name(name)
    if place is None or place[0] == KAFKA_METADATA:
        return False
    try:
        refuse_link(files, f"{path}/{name}")
        inside = files.names(f"{path}/{name}")
    except NotADirectoryError:
        return False
    return checkpoints.PARTITION_METADATA in inside or bool(segment_bases(inside))


def refuse_link(files: Files, folder: str) -> None:
    """Raises OSError for the folder of a partition that is elsewhere: what is deleted and written
    there would be somebody else's.
    """
    if files.is_link(folder):
        raise OSError(errno.ELOOP, "it is a link, expected a directory", folder)


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
        self.open_files = OpenFiles(files)  # of all logs here
        self._files = files
        self._new_uuid = new_uuid
        self._names_changed = True  # perhaps, since they were last made durable
        self._made: set[str] = set()  # folders that were not there when the directory was opened
        self.notices: list[str] = []  # what was skipped when the directory was opened
        try:
            make_durable_directory(files, self.path)
            self._lock = files.lock(f"{self.path}/{LOCK}")
        except BlockingIOError as error:
            raise StorageError(f"{self.path} is in use by another broker") from error
        except OSError as error:
            raise StorageError(_unusable(self.path, error)) from error
        try:
            if files.is_open_to_others(self.path):
                self.notices.append(
                    f"{self.path} can be read by other users of this machine, expected rights of"
                    f" its owner alone: `chmod 700 {self.path}`"
                )
            self._read_meta(node_id)
            self._tidy()
            self._starts, self._unread_starts = self._read_checkpoint(checkpoints.start_offsets)
            self._points, self._unread = self._read_checkpoint(checkpoints.recovery_points)
        except OSError as error:
            self.close()
            raise StorageError(_unusable(self.path, error)) from error
        except StorageError:
            self.close()
            raise

    def _read_meta(self, node_id: int) -> None:
        content = read_whole(self._files, self.path, META_PROPERTIES)
        if content is None:
            with suppress(PermissionError):  # it was there, in a directory that is not ours to read
                # Whoever has made it may have been killed before its name was durable.
                sync_name(self._files, self.path)
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
        """Finish deletions, and take the word of a clean stop away: we are about to write."""
        names = self._files.names(self.path)
        self._clean = CLEAN_SHUTDOWN in names
        if self._clean:
            try:
                self._files.unlink(f"{self.path}/{CLEAN_SHUTDOWN}")
            except IsADirectoryError as error:  # no broker has made that
                self._clean = False
                self.notices.append(f"{self.path}/{CLEAN_SHUTDOWN} is not used: {error}")
            self._files.sync_directory(self.path)
            self._names_changed = False
        for name in names:
            if _DELETED.fullmatch(name):
                try:
                    remove_folder(self._files, f"{self.path}/{name}")
                except OSError as error:
                    self.notices.append(f"{self.path}/{name} is not removed: {error}")

    def _read_checkpoint(self, read: Callable[[Files, str], Places]) -> tuple[Places, str]:
        """What a checkpoint of the directory says, and what is wrong with it. One that is damaged
        says nothing, and is told: it must not stop partitions that it has nothing to do with.
        """
        try:
            return read(self._files, self.path), ""
        except (Broken, OSError) as error:
            self.notices.append(f"{error}; it is not used")
            return {}, str(error)

    def expect_only(self, topics: Container[str]) -> None:
        """Forget what is noted of other topics: a part of Kafka's directory speaks of more,
        and a topic that is made anew under such a name must begin at 0.
        """
        try:
            self._forget(
                {place for place in (*self._starts, *self._points) if place[0] not in topics}
            )
        except StorageError as error:
            self.notices.append(str(error))

    def partitions(self) -> dict[str, list[int]]:
        """The topics that have folders, and the partitions of each. What only has the name of a
        partition is somebody else's.
        """
        found: dict[str, list[int]] = {}
        for name in self._files.names(self.path):
            place = checkpoints.split_name(name)
            if place is not None and self._is_partition(name):
                found.setdefault(place[0], []).append(place[1])
        return {topic: sorted(found[topic]) for topic in sorted(found)}

    def _is_partition(self, name: str) -> bool:
        try:
            return is_partition(self._files, self.path, name)
        except OSError as error:
            self.notices.append(f"{self.path}/{name} is left alone: {error}")
            return False

    def adopt(self, topic: str, index: int) -> int:
        """Take in the log of a partition that somebody else has written: the highest producer id in
        it, or -1. Raises StorageError.

        Holes between its segments and in the last of them are noted: Kafka's cleaner leaves such.
        What stands behind damage is not seen; the partition is not served then either.
        """
        folder = f"{self.path}/{topic}-{index}"
        start = self._starts.get((topic, index), Offset(0))
        try:
            found = survey(self._files, folder, start)
            if found.holes:
                checkpoints.write_holes(self._files, folder, found.holes)
        except OSError as error:
            raise StorageError(f"{folder} cannot be read: {error}") from error
        return found.highest_producer_id

    def topic_id(self, topic: str, index: int) -> TopicId | None:
        """The topic id that a partition's folder names, if it names one. Raises StorageError for a
        file that cannot be read, Broken for one that is damaged.
        """
        folder = f"{self.path}/{topic}-{index}"
        try:
            refuse_link(self._files, folder)
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
            refuse_link(self._files, folder)
            if self._files.make_directory(folder):
                self._names_changed = True
                self._made.add(folder)
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
        made = folder in self._made  # now, or by an attempt that has failed
        recovery_point = RecoveryPoint(
            self._points.get((topic, index)),
            clean=self._clean and not made,
            unread="" if made else self._unread,
        )
        return SegmentLog(
            folder,
            self._files,
            config,
            known_start=known_start,
            recovery_point=recovery_point,
            open_files=self.open_files,
        )

    def note_synced(self, points: Places) -> None:
        """Write down up to where logs have been synced. Raises StorageError.

        Of logs that are not named, what was noted last stands.
        """
        self._write_points({**self._points, **points})

    def note_starts(self, starts: Places) -> None:
        """Write down where logs begin from now on, all with one write. Everything before must be
        synced. Raises StorageError, and then all begin where they did, also after a restart; or
        UnsettledError where that is not known. A start never moves back.
        """
        moved = dict(self._starts)
        for place, start in starts.items():
            moved[place] = max(start, moved.get(place, start))
        if moved == self._starts:
            return
        if self._unread_starts:
            try:
                with suppress(FileNotFoundError):
                    set_aside(self._files, self.path, checkpoints.START_OFFSETS)
            except OSError as error:
                raise StorageError(f"{self._unread_starts}; nor set aside: {error}") from error
            self._unread_starts = ""
        checkpoints.move_start_offsets(self._files, self.path, self._starts, moved)
        self._starts = moved

    def _write_points(self, points: Places) -> None:
        if points == self._points:
            return
        try:
            if self._unread:
                self._expect_every_line(points)
            checkpoints.write_recovery_points(self._files, self.path, points)
        except OSError as error:
            raise StorageError(
                f"{self.path}: it is not noted what has been synced: {error}"
            ) from error
        self._points = points

    def _expect_every_line(self, points: Places) -> None:
        """A checkpoint that could not be read is replaced only by one with a line for every log. A
        log that is not open would count as one that owes nothing, and be cut at the next start.
        """
        for topic, indexes in self.partitions().items():
            for index in indexes:
                if (topic, index) not in points:
                    raise StorageError(
                        f"{self.path}: it is not noted what has been synced: {topic}-{index} is "
                        f"not open, and what was noted last is not known: {self._unread}"
                    )

    def delete(
        self, topic: str, indexes: Iterable[PartitionIndex], topic_id: TopicId
    ) -> dict[PartitionIndex, str]:
        """Remove partitions of a topic whose logs are closed; fine where there are none. Those that
        are still there, and why; the others are gone for good.

        A folder of another topic of that name is left alone: it was made anew meanwhile.
        """
        left: dict[PartitionIndex, str] = {}
        going: list[PartitionIndex] = []
        for index in indexes:
            try:
                found = self.topic_id(topic, index)
            except (Broken, StorageError) as error:
                left[index] = f"{self.path}/{topic}-{index} may be another topic's: {error}"
            else:
                # One without an id holds nothing of another topic: the id is written first.
                if found is None or found == topic_id:
                    going.append(index)
        try:
            self._forget({(topic, int(index)) for index in going})
        except StorageError as error:
            return left | dict.fromkeys(going, str(error))
        for index in going:
            try:
                self._names_changed = True
                folder = f"{self.path}/{topic}-{index}"
                delete_partition(self._files, folder, self._new_uuid().hex())
                self._made.discard(folder)
            except StorageError as error:
                left[index] = str(error)
        try:
            self.sync_names()
        except StorageError as error:
            return left | dict.fromkeys(going, str(error))
        return left

    def sync_names(self) -> None:
        """Make it durable which folders there are, where that has changed. Raises StorageError."""
        if not self._names_changed:
            return
        try:
            self._files.sync_directory(self.path)
            self._names_changed = False
        except OSError as error:
            raise StorageError(f"{self.path} cannot be synced: {error}") from error

    def _forget(self, going: set[tuple[str, int]]) -> None:
        """The next topics of these names begin at 0 and owe nothing, also after a restart."""
        if going and self._unread and not self._points:
            raise StorageError(f"{self.path}: what is noted is not forgotten: {self._unread}")
        starts = {place: offset for place, offset in self._starts.items() if place not in going}
        if starts != self._starts:
            try:
                checkpoints.write_start_offsets(self._files, self.path, starts)
            except OSError as error:
                text = f"{self.path}: where logs began is not forgotten: {error}"
                raise StorageError(text) from error
            self._starts = starts
        self._write_points(
            {place: offset for place, offset in self._points.items() if place not in going}
        )

    def close(self, *, clean: bool = False) -> None:
        """Release the lock. Logs are closed by whoever opened them.

        `clean`: each log is synced, and `note_synced` has been told; nothing of it may be torn
        when it is opened again. A disk that cannot take that word is no error.
        """
        try:
            if clean:
                with suppress(OSError):
                    replace_whole(self._files, self.path, CLEAN_SHUTDOWN, _CLEAN_CONTENT)
        finally:
            self._lock.close()


def _unusable(path: str, error: OSError) -> str:
    match error:
        case FileExistsError():
            why = "it is a file, expected a directory"
        case NotADirectoryError():
            why = "a part of it is a file, expected directories"
        case _:
            why = error.strerror or str(error)  # the path is named already
            if error.filename not in (None, path):
                why = f"{error.filename}: {why}"
    return f"{path} cannot be used as data directory: {why}"


def delete_partition(files: Files, directory: str, unique: str) -> None:
    """Remove a partition that is not open; fine when there is none. Raises StorageError.

    The folder is renamed first, as Kafka does, so that a crash leaves nothing that looks like a
    partition; `unique` keeps two deletions of one name apart. The parent is neither listed nor
    synced, for a topic may have thousands of partitions.
    """
    parent, _, name = directory.rpartition("/")
    suffix = f".{unique}-delete"
    going = f"{parent}/{name[: _LONGEST_NAME - len(suffix)]}{suffix}"
    try:
        remove_folder(files, going)
        with suppress(FileNotFoundError):
            files.rename(directory, going)
        remove_folder(files, going)
    except OSError as error:
        raise StorageError(f"{directory} cannot be removed: {error}") from error
