# SPDX-License-Identifier: Apache-2.0
"""Finds the folders of user topics that lie beside a group log."""

from contextlib import suppress
from typing import NamedTuple

from kohort.errors import Broken
from kohort.pipeline.sources.files import ReadOnlyFiles, SegmentFile, segment_files
from kohort.pipeline.sources.folders import copy_extent, folders_in, is_partition
from kohort.storage import checkpoints

INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
_FILES = ReadOnlyFiles()


class Folder(NamedTuple):
    """The folder of one partition of a user topic, and the directory that it is in."""

    path: str
    topic: str
    partition: int
    directory: str


def folders(directory: str) -> list[Folder]:
    """The partitions of user topics beside a group log, by the rules by which that log is found.

    So `directory` is a broker's directory of logs, a directory of such, or the folder of a
    partition in one. Of a partition that is there several times, the copy that reaches furthest
    counts.
    """
    path = directory.removeprefix("file:").rstrip("/") or "/"
    if is_partition(path) and segments_of(path):
        path = path.rpartition("/")[0] or "."
    copies: dict[tuple[str, int], list[Folder]] = {}
    for holder in (path, *(inner for inner in folders_in(path) if not is_partition(inner))):
        with suppress(PermissionError):
            for folder in folders_in(holder):
                place = checkpoints.split_name(folder.rpartition("/")[2])
                if place is not None and place[0] not in INTERNAL_TOPICS and segments_of(folder):
                    copies.setdefault(place, []).append(Folder(folder, *place, holder))
    return [max(copies[place], key=lambda copy: copy_extent(copy.path)) for place in sorted(copies)]


def segments_of(folder: str) -> list[SegmentFile]:
    """Its segments, first to last; none when it may not be read, or has gone: topics are deleted at
    any moment.
    """
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return segment_files(folder)
    return []


def log_start(folder: Folder) -> int:
    """The start of the log as the checkpoints tell it, Kafka's beside the folder and Kohort's in
    it; 0 where none does.
    """
    starts = [0]
    for directory in (folder.directory, folder.path):
        with suppress(OSError, Broken, ValueError):
            starts_by_partition = checkpoints.start_offsets(_FILES, directory)
            starts.append(starts_by_partition.get((folder.topic, folder.partition), 0))
    return max(starts)
