# SPDX-License-Identifier: Apache-2.0
"""Where the folders of a topic's partitions are, in a broker's directory or a copy of one."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import scandir
from pathlib import Path
from typing import NamedTuple

from kohort.config import read_properties
from kohort.errors import Broken
from kohort.pipeline.sources.files import ReadOnlyFiles, segment_files
from kohort.pipeline.sources.log_position import Identity, SourceError
from kohort.storage import checkpoints
from kohort.storage.directory import META_PROPERTIES
from kohort.storage.files import read_whole
from kohort.terms import uuid_text

_FILES = ReadOnlyFiles()


class Folders(NamedTuple):
    """The folders of one topic, by partition, and the directories that they were found in."""

    topic: str
    by_partition: dict[int, str]
    directories: tuple[str, ...]

    def identity(self) -> Identity:
        """Whose log it is, as far as the small files beside it tell."""
        return Identity(self._cluster_id(), self._topic_id())

    def log_start(self, partition: int) -> int:
        """Where retention or a user has let the log begin; 0 where no file says so."""
        folder = self.by_partition[partition]
        place = (self.topic, partition)
        starts = [0]
        for directory in (folder, *self.directories):
            with suppress(Broken, OSError, UnicodeDecodeError):
                starts.append(checkpoints.start_offsets(_FILES, directory).get(place, 0))
        return max(starts)

    def _cluster_id(self) -> str | None:
        for directory in self.directories:
            with suppress(OSError):
                content = read_whole(_FILES, directory, META_PROPERTIES)
                fields = read_properties(content.decode("latin-1")) if content else {}
                if fields.get("cluster.id"):
                    return fields["cluster.id"]
        return None

    def _topic_id(self) -> str | None:
        for folder in self.by_partition.values():
            with suppress(Broken, OSError, UnicodeDecodeError):
                found = checkpoints.topic_id(_FILES, folder)
                if found is not None:
                    return uuid_text(found)
        return None


def find(path: str, topic: str) -> Folders:
    """The folders of a topic: in a directory of logs, in several beside each other (a directory
    for each broker), or one that is given itself. Raises SourceError.

    Of a partition that is there several times, the copy that reaches furthest is read.
    """
    path = path.removeprefix("file:").rstrip("/") or "/"
    if "://" in path or ":" in path.partition("/")[0]:
        raise SourceError(f"{path} is no local path: copy or mount the log, and name its directory")
    try:
        return _find(str(Path(path).absolute()), topic)  # a worker runs elsewhere
    except (FileNotFoundError, NotADirectoryError):
        raise SourceError(
            f"there is no directory {path}: name the broker's log.dirs, or a copy of it"
        ) from None
    except PermissionError as error:
        raise SourceError(
            f"{error.filename} may not be read: run as the broker's user, or read a copy"
        ) from None


def _find(path: str, topic: str) -> Folders:
    parent, _, name = path.rpartition("/")
    place = checkpoints.split_name(name)
    if place is not None and place[0] == topic and Path(path).is_dir():
        return Folders(topic, {place[1]: path}, (parent or ".",))
    found = _copies([path], topic) or _copies(list(folders_in(path)), topic)
    if not found:
        raise SourceError(
            f"{path} has no folder {topic}-0, {topic}-1, ...: name the directory that holds the "
            "folders of partitions, the broker's log.dirs"
        )
    chosen = {
        partition: max(copies, key=copy_extent) for partition, copies in sorted(found.items())
    }
    holders = {folder.rpartition("/")[0]: None for copies in found.values() for folder in copies}
    return Folders(topic, chosen, tuple(holders))


def _copies(directories: Sequence[str], topic: str) -> dict[int, list[str]]:
    """Partition -> its folders in these directories; in one that may not be read there are none,
    unless it is the only one.
    """
    found: dict[int, list[str]] = {}
    for directory in directories:
        try:
            inside = list(folders_in(directory))
        except PermissionError:
            if len(directories) == 1:
                raise
            continue
        for folder in inside:
            split = checkpoints.split_name(folder.rpartition("/")[2])
            if split is not None and split[0] == topic:
                found.setdefault(split[1], []).append(folder)
    return found


def folders_in(directory: str) -> Iterator[str]:
    """The folders in a directory, sorted. Raises OSError."""
    with scandir(directory) as entries:
        yield from sorted(entry.path for entry in entries if entry.is_dir())


def is_partition(path: str) -> bool:
    """Whether a folder is named as a partition's."""
    return checkpoints.split_name(path.rpartition("/")[2]) is not None


def copy_extent(folder: str) -> tuple[int, int]:
    """How far a copy of a partition goes: by the name of its last segment, and its size."""
    with suppress(OSError):
        files = segment_files(folder)
        if files:
            file = _FILES.open(files[-1].path)
            try:
                return files[-1].base, file.size()
            finally:
                file.close()
    return -1, 0
