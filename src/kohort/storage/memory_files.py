# SPDX-License-Identifier: Apache-2.0
"""Files in memory, for as long as the object lives: over the restarts of a broker under test.

What fills up, refuses, decays or crashes is a subclass: it hears of each operation before anything
is looked at, and of each change before it is made.
"""

import errno
from dataclasses import dataclass, field

from kohort.storage.files import system


@dataclass
class Content:
    """The bytes of a file: as they are, and as they were when last synced; how often a sync has
    replaced what an earlier one had put on the disk, as after its end was cut off. Only a disk that
    can lose power keeps what was synced.
    """

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    replaced: int = 0


@dataclass
class Directory:
    """Names and what they stand for: as they are, and as of the last sync of the directory."""

    now: "dict[str, Content | Directory]" = field(default_factory=dict)
    synced: "dict[str, Content | Directory]" = field(default_factory=dict)


def refusal(number: int, path: str) -> OSError:
    """The error of the system with this number."""
    return OSError(number, system.strerror(number), path)


class MemoryFile:
    """An open file in memory; `lock` is the path that it holds until it is closed."""

    def __init__(
        self, disk: "MemoryFiles", content: Content, path: str, lock: str | None = None
    ) -> None:
        self._disk = disk
        self._content = content
        self._path = path
        self._lock = lock

    def read(self, position: int, count: int) -> bytes:
        return bytes(self._content.now[position : position + count])

    def write(self, position: int, data: bytes) -> None:
        self._disk.before("write", self._path)
        held = self._content.now
        held.extend(bytes(max(position - len(held), 0)))
        held[position : position + len(data)] = data

    def size(self) -> int:
        return len(self._content.now)

    def truncate(self, size: int) -> None:
        held = self._content.now
        held.extend(bytes(max(size - len(held), 0)))
        del held[size:]

    def sync(self) -> None:
        """What is in memory is as durable as it gets."""

    def close(self) -> None:
        if self._lock is not None:
            self._disk.locked.pop(self._lock, None)


class MemoryFiles:
    """A file system without links. Paths are absolute."""

    def __init__(self) -> None:
        self.root = Directory()
        self.locked: dict[str, None] = {}

    def before(self, operation: str, path: str) -> None:
        """An operation has been asked for; a subclass may raise OSError."""

    def change(self, operation: str, path: str) -> None:
        """A change is about to be made; a subclass may raise OSError, or stop the machine."""

    def opened(self, content: Content, path: str, lock: str | None = None) -> MemoryFile:
        """An open file of this disk."""
        return MemoryFile(self, content, path, lock)

    def open(self, path: str) -> MemoryFile:
        self.before("open", path)
        inside, name = self._place(path)
        if name not in inside:
            self.change("open", path)
            inside[name] = Content()
        found = inside[name]
        if isinstance(found, Directory):
            raise refusal(errno.EISDIR, path)
        return self.opened(found, path)

    def reopen(self, path: str) -> MemoryFile:
        if self._at(path) is None:
            raise refusal(errno.ENOENT, path)
        return self.open(path)

    def create(self, path: str, *, private: bool = False) -> MemoryFile:
        del private
        self.unlink(path)
        return self.open(path)

    def make_private(self, path: str) -> None:
        """Nobody else looks at it."""

    def is_open_to_others(self, _path: str) -> bool:
        return False

    def is_link(self, path: str) -> bool:
        """There are none."""
        del path
        return False

    def names(self, directory: str) -> list[str]:
        self.before("names", directory)
        try:
            return sorted(self._directory(directory).now)
        except FileNotFoundError:
            return []

    def make_directory(self, path: str) -> list[str]:
        made: list[str] = []
        node = self.root
        names = path.split("/")[1:]
        for depth, name in enumerate(names, 1):
            if name not in node.now:
                self.before("make_directory", path)
                self.change("make_directory", path)
                node.now[name] = Directory()
                made.append("/" + "/".join(names[:depth]))
            inside = node.now[name]
            if not isinstance(inside, Directory):
                raise refusal(errno.EEXIST, path)
            node = inside
        return made

    def remove_directory(self, path: str) -> None:
        inside = self._directory(path)
        self.before("remove_directory", path)
        self.change("remove_directory", path)
        if inside.now:
            raise refusal(errno.ENOTEMPTY, path)
        above, name = self._place(path)
        del above[name]

    def rename(self, old: str, new: str) -> None:
        node = self._at(old)
        if node is None:
            raise refusal(errno.ENOENT, old)
        self.before("rename", old)
        there = self._at(new)
        if isinstance(there, Directory) and there.now:
            raise refusal(errno.ENOTEMPTY, new)
        self.change("rename", old)
        inside, name = self._place(old)
        target, target_name = self._place(new)
        del inside[name]
        target[target_name] = node

    def unlink(self, path: str) -> None:
        found = self._at(path)
        if found is None:
            return
        self.before("unlink", path)
        if isinstance(found, Directory):
            raise refusal(errno.EISDIR, path)
        self.change("unlink", path)
        inside, name = self._place(path)
        del inside[name]

    def sync_directory(self, path: str) -> None:
        """What is in memory is as durable as it gets."""

    def lock(self, path: str) -> MemoryFile:
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, system.strerror(errno.EAGAIN), path)
        inside, name = self._place(path)
        if name not in inside:
            self.change("lock", path)
        content = inside.setdefault(name, Content())
        assert isinstance(content, Content)
        self.locked[path] = None
        return self.opened(content, path, path)

    def _at(self, path: str) -> Content | Directory | None:
        """What a path leads to, or None."""
        node: Content | Directory | None = self.root
        for name in filter(None, path.split("/")):
            if not isinstance(node, Directory):
                return None
            node = node.now.get(name)
        return node

    def _directory(self, path: str) -> Directory:
        node = self._at(path)
        if node is None:
            raise refusal(errno.ENOENT, path)
        if not isinstance(node, Directory):
            raise refusal(errno.ENOTDIR, path)
        return node

    def _place(self, path: str) -> tuple[dict[str, Content | Directory], str]:
        """The names in the folder of a path, and the last of the path."""
        parent, _, name = path.rpartition("/")
        return self._directory(parent).now, name
