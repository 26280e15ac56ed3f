"""The disk of a broker under test: the real one, which may be full for a while."""

import errno
import os

from kohort.storage.files import DiskFile, DiskFiles, File


class _File(DiskFile):
    """A file on it."""

    def __init__(self, disk: "TestDisk", path: str) -> None:
        self._disk = disk
        self._path = path
        super().__init__(path)

    def write(self, position: int, data: bytes) -> None:
        self._disk.check_room(self._path)
        super().write(position, data)

    def sync(self) -> None:
        if self._disk.synced:
            super().sync()


class TestDisk(DiskFiles):
    """While `full` is set, nothing can be written or made. Without `synced` no sync waits for the
    disk: in the process of the test nothing can be lost that the test itself would survive.
    """

    __test__ = False  # pytest takes it for tests otherwise

    def __init__(self, *, synced: bool) -> None:
        self.full = False
        self.synced = synced

    def check_room(self, path: str) -> None:
        """Raises OSError while the disk is full."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def open(self, path: str) -> File:
        return _File(self, path)

    def make_directory(self, path: str) -> list[str]:
        self.check_room(path)
        return super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        if self.synced:
            super().sync_directory(path)
