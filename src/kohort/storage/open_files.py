# SPDX-License-Identifier: Apache-2.0
"""The files of logs, of which at most a share is open: they are opened on use, and the one that
nobody has used for longest is closed.

A file that was written to is synced before it is closed, because the system tells of a lost write
only those who had the file open. Where that sync fails, the file says so to whoever syncs it or
writes to it next, and its log is broken as after any other sync that has failed.
"""

import errno
from collections.abc import Callable, Iterator
from threading import Lock
from weakref import WeakSet, ref

from kohort.storage.files import File, Files, UnsyncedError

NO_LIMIT = 1 << 62
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)
_TRIES = 16  # to close a file; one that is used just then stays open
_LOOKED_AT = 64  # files that are not synced are looked at, before one of them is synced

_OPENED, _WRITTEN, _SYNCED = range(3)  # what is known of a file's content


class OpenFiles:
    """Opens the files of logs. `share` may be changed at any time; it counts from the next file on.

    `opened` is how often a file was opened. Any thread may use any of the files.
    """

    def __init__(self, files: Files, share: int = NO_LIMIT) -> None:
        self.files = files
        self.share = share
        self.opened = 0
        self.uses = 0  # the clock by which files are old: each use is a tick
        self._lock = Lock()
        self._open: WeakSet[LogFile] = WeakSet()  # those that may be closed
        self._pinned: WeakSet[LogFile] = WeakSet()
        self._opening = 0
        self._oldest: list[tuple[int, ref[LogFile]]] = []  # the oldest comes last
        self.nameless: list[LogFile] = []  # open, and nobody needs them any more

    @property
    def count(self) -> int:
        """The number of files that are open and count against the share."""
        return len(self._open)

    @property
    def pinned(self) -> int:
        """The number of files that stay open."""
        return len(self._pinned)

    def open(self, path: str) -> "LogFile":
        """An open file; an empty one when there is none. Raises OSError."""
        file = LogFile(self, path)
        with file.lock:
            file.adopt(self.bring(file, self.files.open))
        return file

    def bring(self, file: "LogFile", opening: Callable[[str], File]) -> File:
        """Open the file on the disk and count it. Raises OSError. `file.lock` is held."""
        with self._lock:
            self._opening += 1
        try:
            self._make_room()
            try:
                found = opening(file.path)
            except OSError as error:
                # Somebody else in this process has taken what the share was made of.
                if error.errno not in TOO_MANY_FILES or not self._close_one():
                    raise
                found = opening(file.path)
        finally:
            with self._lock:
                self._opening -= 1
        with self._lock:
            self.opened += 1
            self._open.add(file)
        return found

    def forget(self, file: "LogFile") -> None:
        """The file is closed for good."""
        with self._lock:
            self._open.discard(file)
            self._pinned.discard(file)

    def take_nameless(self) -> "list[LogFile]":
        """The files whose names have been removed. To close one frees its blocks, which takes half
        a second for a gigabyte: so drop this list beside the loop. One that is being read or synced
        is closed with its last user.
        """
        files, self.nameless = self.nameless, []
        return files

    def set_pinned(self, file: "LogFile", *, pinned: bool) -> None:
        """A file that is open stays so, or counts against the share."""
        with self._lock:
            source, target = (self._open, self._pinned) if pinned else (self._pinned, self._open)
            source.discard(file)
            target.add(file)

    def _make_room(self) -> None:
        for _ in range(_TRIES):
            if len(self._open) + self._opening <= self.share or not self._close_one():
                return

    def _close_one(self) -> bool:
        """Close the file that nobody has used for longest; false when there is none to close."""
        with self._lock:
            file = self._next_to_close()
            if file is None:
                return False
            self._open.discard(file)
        try:
            if not file.put_away():
                with self._lock:
                    self._open.add(file)
        finally:
            file.lock.release()
        return True

    def _next_to_close(self) -> "LogFile | None":
        """A file, and its lock is held. It is the oldest that is synced, or else the oldest."""
        unsynced: LogFile | None = None
        passed: list[LogFile] = []
        chosen: LogFile | None = None
        for file in self._by_age():
            if not file.lock.acquire(blocking=False):
                passed.append(file)  # it is being synced, or opened
            elif not file.unsynced:
                chosen = file
                break
            elif unsynced is None:
                unsynced = file
            else:
                file.lock.release()
                passed.append(file)
            if len(passed) >= _LOOKED_AT:
                break
        if unsynced is not None and chosen is not None:
            unsynced.lock.release()
            passed.insert(0, unsynced)
        self._oldest += [(file.used, ref(file)) for file in reversed(passed)]
        return chosen or unsynced

    def _by_age(self) -> "Iterator[LogFile]":
        """The open files, the oldest first. Sorting all of them serves many calls: a file that was
        not used since is older than each that is not among the oldest.
        """
        seen: set[int] = set()
        for fresh in (False, True):
            if fresh:
                order = sorted(((file.used, id(file), file) for file in self._open), reverse=True)
                oldest = order[-(len(order) // 8 + 2) :]
                self._oldest = [(used, ref(file)) for used, _, file in oldest]
                del order, oldest
            while self._oldest:
                used, where = self._oldest.pop()
                file = where()
                if file is None or file.used != used or file not in self._open:
                    continue
                if id(file) not in seen:
                    seen.add(id(file))
                    yield file


class LogFile:
    """A file of a log, addressed by position, as `File` is. Whether it is open is nobody's matter:
    each call opens it if need be, and may raise OSError for that. One thread writes to it; any may
    read and sync it.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_error",
        "_file",
        "_pinned",
        "_pool",
        "_state",
        "_writing",
        "lock",
        "path",
        "used",
    )

    def __init__(self, pool: OpenFiles, path: str) -> None:
        self.path = path
        self.lock = Lock()  # held by whoever opens, syncs or closes it
        self.used = 0
        self._pool = pool
        self._file: File | None = None
        self._state = _OPENED
        self._writing = False
        self._error: OSError | None = None  # of a sync
        self._pinned = False
        self._closed = False

    @property
    def written(self) -> bool:
        """Whether it was ever written to by us."""
        return self._state != _OPENED

    @property
    def unsynced(self) -> bool:
        """Whether it was written to since the last sync."""
        return self._writing or self._state == _WRITTEN

    def adopt(self, file: File) -> None:
        """This is the file on the disk. The lock is held."""
        self._file = file
        self.used = self._pool.uses = self._pool.uses + 1

    def read(self, position: int, count: int) -> bytes:
        pool = self._pool
        self.used = pool.uses = pool.uses + 1
        return (self._file or self._reopened()).read(position, count)

    def size(self) -> int:
        return (self._file or self._reopened()).size()

    def write(self, position: int, data: bytes) -> None:
        """Raises UnsyncedError where what was written before may be lost."""
        pool = self._pool
        self.used = pool.uses = pool.uses + 1
        self._writing = True
        try:
            (self._file or self._reopened(to_change=True)).write(position, data)
        finally:
            self._state = _WRITTEN  # also behind a sync that has begun meanwhile
            self._writing = False

    def truncate(self, size: int) -> None:
        """Raises UnsyncedError as `write` does."""
        self._writing = True
        try:
            (self._file or self._reopened(to_change=True)).truncate(size)
        finally:
            self._state = _WRITTEN
            self._writing = False

    def sync(self) -> None:
        """Make durable what was written before the call. After an error each later call raises it
        too, whichever thread it comes from.
        """
        with self.lock:
            if self._error is not None:
                raise OSError(self._error.errno, self._error.strerror)
            if self._state == _SYNCED:
                return  # by another thread, or when it was closed
            file = self._file or self._reopen()
            self._state = _SYNCED  # what is written from here on is the next sync's
            try:
                file.sync()
            except OSError as error:
                self._error = error
                raise

    def pin(self) -> None:
        """Keep it open until it is closed or nobody has it any more: its name may go to another
        file then. Raises OSError.
        """
        with self.lock:
            if self._file is None:
                self._reopen()
            self._pinned = True
            self._pool.set_pinned(self, pinned=True)

    def unpin(self) -> None:
        """It may be closed when it is not used."""
        with self.lock:
            if self._pinned:
                self._pinned = False
                self._pool.set_pinned(self, pinned=False)

    def close(self) -> None:
        """For good."""
        with self.lock:
            file, self._file = self._file, None
            self._closed = True
            self._pool.forget(self)
            if file is not None:
                file.close()

    def put_away(self) -> bool:
        """Close it until it is used again, synced; false when somebody writes to it at this moment.
        The lock is held. Another thread that reads it has a reference of its own, and with the last
        of these the system's file is closed.
        """
        file = self._file
        if file is None or self._pinned:
            return True
        if self._state == _WRITTEN:
            self._state = _SYNCED
            try:
                file.sync()
            except OSError as error:
                self._error = error
        self._file = None
        # In this order, the opposite of that in which `write` goes: it may have the file already.
        if (self._writing or self._state == _WRITTEN) and self._error is None:
            self._file = file
            return False
        return True

    def _reopened(self, *, to_change: bool = False) -> File:
        with self.lock:
            if to_change and self._error is not None:
                raise UnsyncedError(self._error.errno, self._error.strerror, self.path)
            return self._file or self._reopen()

    def _reopen(self) -> File:
        if self._closed:
            raise OSError(errno.EBADF, "it is closed", self.path)
        file = self._pool.bring(self, self._pool.files.reopen)
        self.adopt(file)
        return file
