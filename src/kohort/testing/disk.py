"""The disks of brokers under test: the real one, and one in memory. Both may be full a while."""

import errno
import os
from typing import Protocol

from kohort.storage.files import DiskFile, DiskFiles, File, Files, status_or_none, system
from kohort.testing.fork_safety import close_after_fork


class Disk(Files, Protocol):
    """A disk on which, while `full` is set, nothing can be written or made."""

    full: bool


def check_room(disk: Disk, path: str) -> None:
    """Raises OSError while the disk is full."""
    if disk.full:
        raise _error(errno.ENOSPC, path)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class _DiskFile(DiskFile):
    """A file on the real disk."""

    def __init__(self, disk: "RealDisk", path: str, *, private: bool = False) -> None:
        self._disk = disk
        self._path = path
        super().__init__(path, private=private)
        status = system.fstat(self._descriptor)
        if status.st_mode & 0o600 != 0o600:  # the test has set an umask
            system.fchmod(self._descriptor, 0o600 if private else 0o644)
        close_after_fork(self)

    def write(self, position: int, data: bytes) -> None:
        check_room(self._disk, self._path)
        super().write(position, data)

    def sync(self) -> None:
        if self._disk.synced:
            super().sync()


class RealDisk(DiskFiles):
    """The real file system. Without `synced` no sync waits for it: in the process of the test
    nothing can be lost that the test itself would survive.
    """

    def __init__(self, *, synced: bool) -> None:
        self.full = False
        self.synced = synced

    def open(self, path: str) -> File:
        self._check_room_for(path)
        return _DiskFile(self, path)

    def reopen(self, path: str) -> File:
        if status_or_none(path) is None:
            raise _error(errno.ENOENT, path)
        return _DiskFile(self, path)

    def create(self, path: str, *, private: bool = False) -> File:
        self.unlink(path)
        self._check_room_for(path)
        return _DiskFile(self, path, private=private)

    def make_directory(self, path: str) -> list[str]:
        self._check_room_for(path)
        return super().make_directory(path)

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        if system.stat(path).st_mode & 0o700 != 0o700:  # the test has set an umask
            system.chmod(path, 0o755)

    def lock(self, path: str) -> File:
        self._check_room_for(path)
        return close_after_fork(super().lock(path))

    def sync_directory(self, path: str) -> None:
        if self.synced:
            super().sync_directory(path)

    def _check_room_for(self, path: str) -> None:
        """What is there already needs no room."""
        if status_or_none(path) is None:
            check_room(self, path)


class _Content:
    """What a file holds, whatever its name."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.locked = False


_Folder = dict[str, "_Content | _Folder"]


class _MemoryFile:
    """An open file in memory."""

    def __init__(self, disk: "MemoryDisk", path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._locks = False

    def lock(self) -> None:
        if self._content.locked:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), self._path)
        self._content.locked = self._locks = True

    def read(self, position: int, count: int) -> bytes:
        return bytes(self._content.data[position : position + count])

    def write(self, position: int, data: bytes) -> None:
        check_room(self._disk, self._path)
        held = self._content.data
        held.extend(bytes(max(position - len(held), 0)))
        held[position : position + len(data)] = data

    def size(self) -> int:
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        held = self._content.data
        held.extend(bytes(max(size - len(held), 0)))
        del held[size:]

    def sync(self) -> None:
        """What is in memory is as durable as it gets."""

    def close(self) -> None:
        if self._locks:
            self._content.locked = self._locks = False


class MemoryDisk:
    """Files in memory, for as long as this object lives: over the restarts of a broker."""

    def __init__(self) -> None:
        self.full = False
        self._root: _Folder = {}

    def open(self, path: str) -> File:
        folder, name = self._place(path)
        content = folder.get(name)
        if isinstance(content, dict):
            raise _error(errno.EISDIR, path)
        if content is None:
            check_room(self, path)
            content = folder[name] = _Content()
        return _MemoryFile(self, path, content)

    def reopen(self, path: str) -> File:
        folder, name = self._place(path)
        if name not in folder:
            raise _error(errno.ENOENT, path)
        return self.open(path)

    def create(self, path: str, *, private: bool = False) -> File:
        del private
        self.unlink(path)
        return self.open(path)

    def make_private(self, path: str) -> None:
        """Nobody else looks at it."""

    def is_link(self, path: str) -> bool:
        """There are none."""
        del path
        return False

    def names(self, directory: str) -> list[str]:
        found = self._found(_parts(directory))
        return sorted(found) if isinstance(found, dict) else []

    def make_directory(self, path: str) -> list[str]:
        parts, made = _parts(path), []
        for count in range(1, len(parts) + 1):
            found = self._found(parts[:count])
            if isinstance(found, _Content):
                raise _error(errno.EEXIST if count == len(parts) else errno.ENOTDIR, path)
            if found is None:
                check_room(self, path)
                folder, name = self._place("/".join(parts[:count]))
                folder[name] = {}
                made.append("/" + "/".join(parts[:count]))
        return made

    def remove_directory(self, path: str) -> None:
        if self.names(path):
            raise _error(errno.ENOTEMPTY, path)
        folder, name = self._place(path)
        if folder.pop(name, None) is None:
            raise _error(errno.ENOENT, path)

    def rename(self, old: str, new: str) -> None:
        folder, name = self._place(old)
        target, target_name = self._place(new)
        if name not in folder:
            raise _error(errno.ENOENT, old)
        if self.names(new):
            raise _error(errno.ENOTEMPTY, new)
        target[target_name] = folder.pop(name)

    def unlink(self, path: str) -> None:
        folder, name = self._place(path)
        if isinstance(folder.get(name), dict):
            raise _error(errno.EISDIR, path)
        folder.pop(name, None)

    def sync_directory(self, path: str) -> None:
        """What is in memory is as durable as it gets."""

    def lock(self, path: str) -> File:
        file = self.open(path)
        assert isinstance(file, _MemoryFile)
        file.lock()
        return file

    def _place(self, path: str) -> tuple[_Folder, str]:
        """The folder of a path, and its name there. Raises FileNotFoundError without the folder."""
        *above, name = _parts(path)
        folder = self._found(above)
        if not isinstance(folder, dict):
            raise _error(errno.ENOENT, path)
        return folder, name

    def _found(self, parts: list[str]) -> _Content | _Folder | None:
        found: _Content | _Folder | None = self._root
        for part in parts:
            found = found.get(part) if isinstance(found, dict) else None
        return found


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
