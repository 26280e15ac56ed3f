# SPDX-License-Identifier: Apache-2.0
"""What a directory of logs looks like: enough to tell that a run would find nothing new in it.

No record is read. A file that was written a moment ago may be written again within the same tick of
its clock, so such a directory has no fingerprint yet: on a broker's own directory a second look
tells, when the run has ended.
"""

import time
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from kohort.pipeline.sources import user_topics
from kohort.pipeline.sources.files import segment_files
from kohort.pipeline.sources.folders import find
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.storage.checkpoints import PARTITION_METADATA, START_OFFSETS
from kohort.storage.directory import META_PROPERTIES

SETTLED_NS = 2_000_000_000
"""How old the last write of a file must be for its times to tell it from a later one."""
TICK_NS = 100_000_000
"""The tick of a file's clock at most, on a disk: a file that was written longer ago than this, and
looks the same when it has settled, was not written meanwhile.
"""
_SMALL_FILES = (META_PROPERTIES, PARTITION_METADATA, START_OFFSETS)
"""Small files that say something of a log. Others are rewritten all the time and say nothing."""


class DirectoryFingerprint(NamedTuple):
    """What a directory of logs looked like, and how long ago the last write of a file was then."""

    digest: str
    age_ns: int

    @property
    def is_settled(self) -> bool:
        """Whether no file may be written again within the same tick of its clock."""
        return self.age_ns >= SETTLED_NS


def fingerprint(path: str) -> str | None:
    """A fingerprint of the group log in a directory, and of the user topics beside it: their
    segments with sizes and times, and the small files beside them. None where a file is too young
    to tell, or goes meanwhile. Raises SourceError like `find`.
    """
    found = directory_fingerprint(path)
    return found.digest if found is not None and found.is_settled else None


def directory_fingerprint(path: str) -> DirectoryFingerprint | None:
    """The same, also where files are young; None where one goes meanwhile. Raises SourceError."""
    found = find(path, GROUP_LOG)
    try:
        topics = user_topics.folders(str(Path(path.removeprefix("file:")).absolute()))
    except OSError:  # it changes while it is looked at
        return None
    folders = [*found.by_partition.values(), *(folder.path for folder in topics)]
    holders = dict.fromkeys([*found.directories, *(folder.directory for folder in topics)])
    return _look([path, GROUP_LOG], folders, [*holders, *folders])


def settled_or_none(path: str, before: DirectoryFingerprint | None) -> str | None:
    """The fingerprint of an earlier look, where no file has been written since: one that was young
    then has settled meanwhile, as it was. None where nobody can tell. Raises SourceError.
    """
    if before is None:
        return None
    is_same = before.is_settled or (before.age_ns >= TICK_NS and fingerprint(path) == before.digest)
    return before.digest if is_same else None


def _look(
    words: Iterable[str], folders: Iterable[str], directories: Iterable[str]
) -> DirectoryFingerprint | None:
    began = time.time_ns()
    youngest = 0
    digest = blake2b(digest_size=16)
    for word in words:
        digest.update(f"{word}\n".encode())
    try:
        for folder in folders:
            digest.update(f"{folder}\n".encode())
            for segment in segment_files(folder):
                stat = Path(segment.path).stat()
                youngest = max(youngest, stat.st_mtime_ns, stat.st_ctime_ns)
                facts = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
                digest.update(f"{segment.path} {facts}\n".encode())
        for directory in directories:
            for name in _SMALL_FILES:
                digest.update(f"{directory}/{name} {_content(directory, name)!r}\n".encode())
    except OSError:  # it changes while it is looked at
        return None
    return DirectoryFingerprint(digest.hexdigest(), began - youngest)


def _content(directory: str, name: str) -> bytes | None:
    path = Path(directory) / name
    try:
        return path.read_bytes() if path.is_file() else None
    except (FileNotFoundError, PermissionError):
        return None
