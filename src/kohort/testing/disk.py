# SPDX-License-Identifier: Apache-2.0
"""The disks of brokers under test: the real one, and one in memory. Both may be full a while."""

import errno
from typing import Protocol

from kohort.storage.files import DiskFile, DiskFiles, File, Files, status_or_none, system
from kohort.storage.memory_files import MemoryFiles, refusal
from kohort.testing.fork_safety import close_after_fork


class Disk(Files, Protocol):
    """A disk on which, while `full` is set, nothing can be written or made."""

    full: bool


def check_room(disk: Disk, path: str) -> None:
    """Raises OSError while the disk is full."""
    if disk.full:
        raise refusal(errno.ENOSPC, path)


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
            raise refusal(errno.ENOENT, path)
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
            system.chmod(path, 0o700)

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


class MemoryDisk(MemoryFiles):
    """Files in memory, for as long as this object lives: over the restarts of a broker."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    def before(self, operation: str, path: str) -> None:
        if operation == "write":
            check_room(self, path)

    def change(self, operation: str, path: str) -> None:
        if operation in ("open", "make_directory", "lock"):
            check_room(self, path)
