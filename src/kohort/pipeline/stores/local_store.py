# SPDX-License-Identifier: Apache-2.0
"""Tables in a directory: files are synced, the manifest is renamed into its place, a lock held."""

import errno
import fcntl
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from kohort.pipeline.stores.failures import ConflictError, HeldError
from kohort.pipeline.stores.layout import (
    CHECKPOINTS,
    END,
    GOLD,
    HISTORIES,
    LOCK,
    MANIFEST,
    OBSERVED_HISTORY,
    PROGRESS,
    ROWS,
    SERVER_LOGS,
    is_made,
)
from kohort.pipeline.stores.object_path import Files
from kohort.storage.files import DiskFiles, replace_whole

_FILES = DiskFiles()


class LocalStore:
    """See `store.Store`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock: int | None = None

    def hold(self) -> bool:
        """A process that ends gives its lock back."""
        self._lock = _lock(self._directory / LOCK)
        return False

    def holder(self) -> str | None:
        try:
            return (self._directory / LOCK).read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            return None

    def check_held(self, holder: str) -> None:
        now = self.holder()
        if now != holder:
            raise HeldError(now or "another process")

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def read(self) -> tuple[bytes | None, str | None]:
        try:
            return (self._directory / MANIFEST).read_bytes(), None
        except FileNotFoundError:
            return None, None

    def swap(self, data: bytes, tag: str | None) -> str | None:
        """The lock keeps others from writing meanwhile."""
        replace_whole(_FILES, str(self._directory), MANIFEST, data)
        return tag

    def settle(self, fresh: Iterable[str], paths: Iterable[str]) -> None:
        """Spark does not sync what it writes, and a manifest must not name what a power cut
        takes.
        """
        for path in fresh:
            sync_all(self._directory / path)
            _FILES.sync_directory(str((self._directory / path).parent))
        for name in {path.partition("/")[0] for path in paths}:
            _FILES.sync_directory(str(self._directory / name))

    def files(self, paths: Iterable[str]) -> Files:
        """A folder tells its files itself."""
        del paths
        return {}

    def clean(self, named: Iterable[str]) -> None:
        kept = set(named)
        for path in _candidates(self._directory):
            name = str(path.relative_to(self._directory))
            if name not in kept and is_made(name):
                _remove(path)

    def remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            _remove(self._directory / path)

    def names(self, folder: str) -> list[str]:
        there = self._directory / folder
        return [path.name for path in _inside(there) if path.is_file()]

    def load(self, path: str) -> bytes:
        return (self._directory / path).read_bytes()

    def create(self, path: str, data: bytes) -> None:
        """The lock keeps others from writing meanwhile."""
        if (self._directory / path).exists():
            text = "it was written meanwhile"
            raise ConflictError(text, str(self._directory / path), errno.EEXIST)
        self.replace(path, data)

    def replace(self, path: str, data: bytes) -> None:
        folder, _, name = path.rpartition("/")
        _make_durably(self._directory / folder)
        replace_whole(_FILES, str(self._directory / folder), name, data)

    def drop(self, files: Iterable[str]) -> None:
        self.remove(files)

    def file_digest(self, paths: Iterable[str]) -> str | None:
        digest = blake2b(digest_size=16)
        try:
            for path in sorted(paths):
                for file in sorted((self._directory / path).rglob("*"), key=str):
                    stat = file.stat()
                    name = file.relative_to(self._directory)
                    digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
                if not (self._directory / path).is_dir():
                    return None
        except OSError:
            return None
        return digest.hexdigest()


def _candidates(directory: Path) -> Iterator[Path]:
    """Every directory of rows, of those that count and of those that do not."""
    names = (ROWS, END, CHECKPOINTS, HISTORIES, PROGRESS, SERVER_LOGS)
    of_tables = (*_inside(directory / GOLD), *_inside(directory / OBSERVED_HISTORY))
    for parent in (*(directory / name for name in names), *of_tables):
        yield from _inside(parent)


def _make_durably(directory: Path) -> None:
    """Make a directory and those above it, of which a power cut takes none."""
    if not directory.is_dir():
        _make_durably(directory.parent)
        directory.mkdir(exist_ok=True)
        _FILES.sync_directory(str(directory.parent))


def _inside(directory: Path) -> Iterable[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else ()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync_all(path: Path) -> None:
    """Sync the files and directories in and below one."""
    for parent, _, names in os.walk(path):
        for found in (Path(parent), *(Path(parent) / name for name in names)):
            sync(found)


def sync(path: Path) -> None:
    """Bring a file to the disk, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(path: Path) -> int:
    """Hold a file, and write into it who does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise HeldError(holder or "another process") from None
    since = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()} since {since}".encode(), 0)
    return descriptor
