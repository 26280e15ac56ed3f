"""What a directory of logs looks like: enough to tell that a run would find nothing new in it.

No record is read. A file that was written a moment ago may be written again within the same tick of
its clock, so such a directory has no fingerprint yet.
"""

import time
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from kohort.spark.sources import beside
from kohort.spark.sources.files import segment_files
from kohort.spark.sources.folders import find
from kohort.spark.sources.options import GROUP_LOG
from kohort.storage.checkpoints import PARTITION_METADATA, START_OFFSETS
from kohort.storage.directory import META_PROPERTIES

SETTLED_NS = 2_000_000_000
"""How old the last write of a file must be for its times to tell it from a later one."""
_TOLD = (META_PROPERTIES, PARTITION_METADATA, START_OFFSETS)
"""Small files that say something of a log. Others are rewritten all the time and say nothing."""


def fingerprint(path: str) -> str | None:
    """A fingerprint of the group log in a directory, and of the user topics beside it: their
    segments with sizes and times, and the small files beside them. None where a file is too young
    to tell, or goes meanwhile. Raises SourceError like `find`.
    """
    found = find(path, GROUP_LOG)
    try:
        topics = beside.folders(str(Path(path.removeprefix("file:")).absolute()))
    except OSError:  # it changes while it is looked at
        return None
    folders = [*found.by_partition.values(), *(folder.path for folder in topics)]
    holders = dict.fromkeys([*found.directories, *(folder.directory for folder in topics)])
    return _digest([path, GROUP_LOG], folders, [*holders, *folders])


def _digest(words: Iterable[str], folders: Iterable[str], told: Iterable[str]) -> str | None:
    before = time.time_ns() - SETTLED_NS
    digest = blake2b(digest_size=16)
    for word in words:
        digest.update(f"{word}\n".encode())
    try:
        for folder in folders:
            digest.update(f"{folder}\n".encode())
            for segment in segment_files(folder):
                stat = Path(segment.path).stat()
                if max(stat.st_mtime_ns, stat.st_ctime_ns) > before:
                    return None
                facts = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
                digest.update(f"{segment.path} {facts}\n".encode())
        for directory in told:
            for name in _TOLD:
                digest.update(f"{directory}/{name} {_content(directory, name)!r}\n".encode())
    except OSError:  # it changes while it is looked at
        return None
    return digest.hexdigest()


def _content(directory: str, name: str) -> bytes | None:
    try:
        return (Path(directory) / name).read_bytes()
    except (FileNotFoundError, PermissionError):
        return None
