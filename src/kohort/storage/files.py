# SPDX-License-Identifier: Apache-2.0
"""The only way to the disk. Tests stand one behind it that fills up, tears writes and crashes."""

import errno
import os
import stat
from contextlib import suppress
from threading import Lock
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

try:
    import fcntl
except ImportError:  # Windows: a broker in memory needs no lock
    fcntl = None  # type: ignore[assignment]

DAMAGED_SUFFIX = ".damaged"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_TO_REWRITE = os.O_RDWR | _NO_LINK
_TO_WRITE = _TO_REWRITE | os.O_CREAT
_PRIVATE = 0o600
_PRIVATE_FOLDER = 0o700
_OF_OTHERS = 0o077
system: Any = SimpleNamespace(**vars(os))
"""The calls of the system, as they were when this module was loaded: a test in whose process a
broker runs may patch those of `os`, or stand another file system in their place.
"""
_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class File(Protocol):
    """An open file, addressed by position. Errors are OSError."""

    def read(self, position: int, count: int) -> bytes: ...
    def write(self, position: int, data: bytes) -> None:
        """All of it or OSError; then some of it may be there."""

    def size(self) -> int: ...
    def truncate(self, size: int) -> None: ...
    def sync(self) -> None:
        """Make durable what was written before the call. After an error each later call raises it
        too, whichever thread it comes from.
        """

    def close(self) -> None: ...


class UnsyncedError(OSError):
    """A change is made, and everybody sees it; a loss of power may take it back."""


class Files(Protocol):
    """What a log asks of a file system. Errors are OSError."""

    def open(self, path: str) -> File:
        """For reading and writing; an empty file when there is none. A link is refused."""

    def reopen(self, path: str) -> File:
        """As `open`, of a file that is there. FileNotFoundError: there is none."""

    def create(self, path: str, *, private: bool = False) -> File:
        """A new file in the place of whatever has the name: nothing is written through a link.
        Nobody but the owner may read a `private` one.
        """

    def make_private(self, path: str) -> None:
        """Let nobody but the owner read a file, where that can be: it may be another user's."""

    def is_open_to_others(self, path: str) -> bool:
        """Whether others than its owner may look into a directory, or change it."""

    def is_link(self, path: str) -> bool:
        """Whether a name stands for something elsewhere."""

    def names(self, directory: str) -> list[str]:
        """Sorted; empty when there is no such directory."""

    def make_directory(self, path: str) -> list[str]:
        """With its parents; fine when it is there. Those that were made, the outermost first: they
        are their owner's alone.
        """

    def remove_directory(self, path: str) -> None:
        """Of an empty one. FileNotFoundError: there is none."""

    def rename(self, old: str, new: str) -> None:
        """Of a file or a directory. FileNotFoundError: there is none."""

    def unlink(self, path: str) -> None:
        """Fine when it is gone already."""

    def sync_directory(self, path: str) -> None:
        """Make names durable: those created, renamed and removed in it."""

    def lock(self, path: str) -> File:
        """Hold a file until it is closed or the process ends. BlockingIOError: somebody has it."""


class DiskFile:
    """A file descriptor that closes itself with its last user: a sync may outlive its segment."""

    def __init__(self, path: str, flags: int = _TO_WRITE, *, private: bool = False) -> None:
        self._syncing = Lock()
        self._sync_error: OSError | None = None
        # Without O_NONBLOCK the opening of a fifo would wait for a writer.
        flags |= os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self._descriptor = system.open(path, flags, _PRIVATE if private else 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "it is a link, expected a file", path) from error
            raise
        if not stat.S_ISREG(system.fstat(self._descriptor).st_mode):
            self.close()
            raise OSError(errno.EINVAL, "it is no regular file", path)

    def read(self, position: int, count: int) -> bytes:
        data: bytes = system.pread(self._descriptor, count, position)
        if len(data) == count or not data:
            return data
        parts = [data]
        left = count - len(data)
        while left > 0:  # a read is cut at 2 GiB, or by the end of the file
            data = system.pread(self._descriptor, left, position + count - left)
            if not data:
                break
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def write(self, position: int, data: bytes) -> None:
        written = system.pwrite(self._descriptor, data, position)
        while written < len(data):
            written += system.pwrite(self._descriptor, data[written:], position + written)

    def size(self) -> int:
        size: int = system.fstat(self._descriptor).st_size
        return size

    def truncate(self, size: int) -> None:
        system.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        # The system tells one caller of a descriptor that a write was lost, and only once. Of two
        # syncs at a time the other one would succeed, and what it has promised would not be there.
        with self._syncing:
            if self._sync_error is not None:
                raise OSError(self._sync_error.errno, self._sync_error.strerror)
            try:
                _sync_data(self._descriptor)
            except OSError as error:
                self._sync_error = error
                raise

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            system.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()


class _LockedFile(DiskFile):
    """A file that this process holds until it is closed."""

    held: ClassVar[dict[tuple[int, int], None]] = {}

    def __init__(self, path: str) -> None:
        _check_locks(path)
        # POSIX locks do not keep a process from itself, and closing a second descriptor of the file
        # would drop the lock: so our own are looked up before the file is opened.
        known = status_or_none(path)
        if known is not None and _identity(known) in self.held:
            raise BlockingIOError(f"{path} is locked by this process")
        super().__init__(path)
        # Java's FileLock is the same kind of lock, so a Kafka broker is kept out too.
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._directory = _locked_directory(os.path.dirname(path) or ".")  # noqa: PTH120
        self._identity = _identity(system.fstat(self._descriptor))
        self.held[self._identity] = None

    def close(self) -> None:
        self.held.pop(getattr(self, "_identity", (-1, -1)), None)
        directory, self._directory = getattr(self, "_directory", -1), -1
        if directory >= 0:
            system.close(directory)
        super().close()


def _check_locks(path: str) -> None:
    """Raises OSError where the system has no locks by which Kafka and we keep each other out."""
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "file locks need a POSIX system; keep it in memory here", path)


def _locked_directory(path: str) -> int:
    """A descriptor of a directory that is locked too: a lock file can be removed, and another one
    of that name would be free. BlockingIOError: somebody has it.
    """
    descriptor: int = system.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        system.close(descriptor)
        raise
    except OSError:  # a network file system may not lock directories: the file has to do
        pass
    return descriptor


def status_or_none(path: str) -> os.stat_result | None:
    """Of what a path leads to; None where that is nothing. May raise OSError."""
    try:
        status: os.stat_result = system.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class DiskFiles:
    """The real file system."""

    def open(self, path: str) -> File:
        return DiskFile(path)

    def reopen(self, path: str) -> File:
        return DiskFile(path, _TO_REWRITE)

    def create(self, path: str, *, private: bool = False) -> File:
        self.unlink(path)
        return DiskFile(path, _TO_WRITE | os.O_EXCL, private=private)

    def make_private(self, path: str) -> None:
        with suppress(OSError):  # the next one who opens it is told
            descriptor = system.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | _NO_LINK)
            try:
                system.fchmod(descriptor, _PRIVATE)
            finally:
                system.close(descriptor)

    def is_open_to_others(self, path: str) -> bool:
        there = status_or_none(path)
        return there is not None and bool(there.st_mode & _OF_OTHERS)

    def is_link(self, path: str) -> bool:
        with suppress(FileNotFoundError, NotADirectoryError):
            return stat.S_ISLNK(system.lstat(path).st_mode)
        return False

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(system.listdir(directory))
        except FileNotFoundError:
            return []

    def make_directory(self, path: str) -> list[str]:
        missing: list[str] = []
        folder = path
        while folder and status_or_none(folder) is None:
            missing.append(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120  (paths are text here)
        for folder in reversed(missing):
            self.make_folder(folder)
        there = status_or_none(path)
        if there is None or not stat.S_ISDIR(there.st_mode):  # a file, or a link to nothing
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return missing[::-1]

    def make_folder(self, path: str) -> None:
        """One folder; fine where somebody else has made it meanwhile."""
        with suppress(FileExistsError):
            system.mkdir(path, _PRIVATE_FOLDER)  # the records of topics are nobody else's

    def remove_directory(self, path: str) -> None:
        system.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        system.replace(old, new)

    def unlink(self, path: str) -> None:
        with suppress(FileNotFoundError):
            system.unlink(path)

    def sync_directory(self, path: str) -> None:
        descriptor = system.open(path, os.O_RDONLY)
        try:
            system.fsync(descriptor)
        finally:
            system.close(descriptor)

    def lock(self, path: str) -> File:
        return _LockedFile(path)


class ReadOnlyFiles(DiskFiles):
    """The real file system, for looking only: what would change it is refused."""

    def open(self, path: str) -> File:
        return DiskFile(path, os.O_RDONLY)

    def reopen(self, path: str) -> File:
        return self.open(path)

    def create(self, path: str, *, private: bool = False) -> File:
        del private
        raise _read_only(path)

    def make_private(self, path: str) -> None:
        """Whoever only looks changes no rights either."""

    def make_directory(self, path: str) -> list[str]:
        raise _read_only(path)

    def remove_directory(self, path: str) -> None:
        raise _read_only(path)

    def rename(self, old: str, new: str) -> None:
        raise _read_only(f"{old} to {new}")

    def unlink(self, path: str) -> None:
        raise _read_only(path)

    def sync_directory(self, path: str) -> None:
        raise _read_only(path)

    def lock(self, path: str) -> File:
        raise _read_only(path)


def _read_only(what: str) -> OSError:
    return OSError(errno.EROFS, os.strerror(errno.EROFS), what)


def is_in_use(directory: str) -> bool:
    """Whether a broker of ours holds a directory; nothing is left of the question. May raise
    OSError.
    """
    _check_locks(directory)
    descriptor = system.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        system.close(descriptor)
    return False


def make_durable_directory(files: Files, path: str) -> None:
    """Make a directory with its parents; their names are durable on return."""
    for made in files.make_directory(path):
        sync_name(files, made)


def sync_name(files: Files, path: str) -> None:
    """Make it durable that there is something of this name."""
    files.sync_directory(os.path.dirname(path) or ".")  # noqa: PTH120  (paths are text here)


def read_whole(files: Files, directory: str, name: str) -> bytes | None:
    """The content of a small file, or None when there is none."""
    if name not in files.names(directory):
        return None
    file = files.open(f"{directory}/{name}")
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def replace_whole(
    files: Files, directory: str, name: str, content: bytes, *, private: bool = False
) -> None:
    """Write a small file so that a crash leaves the old one or the new one; durable on return.

    Raises UnsyncedError when the new one is there and may go with a loss of power, and another
    OSError when the old one still stands.
    """
    temporary = f"{directory}/{name}.tmp"
    file = files.create(temporary, private=private)
    try:
        file.write(0, content)
        file.sync()
    finally:
        file.close()
    files.rename(temporary, f"{directory}/{name}")
    sync_change(files, directory)


def sync_change(files: Files, directory: str) -> None:
    """Make names durable that have changed already. Raises UnsyncedError.

    It is tried twice: who is refused after a change must undo it, or wait. A file system whose
    journal is lost refuses the second time as well.
    """
    try:
        files.sync_directory(directory)
    except OSError:
        try:
            files.sync_directory(directory)
        except OSError as error:
            raise UnsyncedError(error.errno, error.strerror, directory) from error


def set_aside(files: Files, directory: str, name: str) -> str:
    """Give a damaged file another name beside its own, and return that: nothing is thrown away."""
    aside = free_name(files, directory, name)
    files.rename(f"{directory}/{name}", f"{directory}/{aside}")
    return aside


def free_name(files: Files, directory: str, name: str) -> str:
    """The name for a damaged file that nobody has yet: `<name>.damaged`, `<name>.damaged.2` …"""
    names = files.names(directory)
    aside = name + DAMAGED_SUFFIX
    number = 1
    while aside in names:
        number += 1
        aside = f"{name}{DAMAGED_SUFFIX}.{number}"
    return aside


def remove_folder(files: Files, directory: str) -> None:
    """Remove a folder and the files in it; fine when there is none. Of a link nothing but that."""
    if files.is_link(directory):
        files.unlink(directory)
        return
    for inside in files.names(directory):
        files.unlink(f"{directory}/{inside}")
    with suppress(FileNotFoundError):
        files.remove_directory(directory)
