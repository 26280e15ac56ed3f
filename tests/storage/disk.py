"""A disk in memory that fills up, refuses, and crashes at any of its steps.

After a crash of the process everything written is still there; after a loss of power only what was
synced, and any part of the rest. A step is whatever changes the disk.
"""

import errno
import os
from dataclasses import dataclass, field


class Crashed(BaseException):
    """The machine has stopped: nobody may catch it and go on."""


@dataclass
class Content:
    """The bytes of a file: as they are, and as they were when last synced."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


class MemoryFile:
    def __init__(self, disk, content, locked=None):
        self._disk = disk
        self._content = content
        self._locked = locked

    def read(self, position, count):
        if self._disk.refuses_read:
            raise OSError(errno.EIO, "Input/output error")
        data = bytes(self._content.now[position : position + count])
        self._disk.read_bytes += len(data)
        return data

    def size(self):
        return len(self._content.now)

    def write(self, position, data):
        content = self._content.now
        room = self._disk.room_bytes
        if self._disk.step():
            self._put(position, data[: len(data) // 2])
            raise Crashed
        if room is not None and position + len(data) - len(content) > room:
            self._put(position, data[: max(0, room - (position - len(content)))])
            raise OSError(errno.ENOSPC, "No space left on device")
        self._put(position, data)

    def _put(self, position, data):
        content = self._content.now
        assert position <= len(content), "a write must not leave a gap"
        before = len(content)
        content[position : position + len(data)] = data
        if self._disk.room_bytes is not None:
            self._disk.room_bytes -= len(content) - before

    def truncate(self, size):
        self._disk.crash_or_go()
        if self._disk.refuses_truncate:
            raise OSError(errno.EIO, "Input/output error")
        if self._disk.room_bytes is not None:
            self._disk.room_bytes += max(0, len(self._content.now) - size)
        del self._content.now[size:]

    def sync(self):
        self._disk.crash_or_go()
        if self._disk.refuses_sync:
            raise OSError(errno.EIO, "Input/output error")
        self._content.synced = bytes(self._content.now)

    def close(self):
        self._disk.locked.pop(self._locked, None)


class MemoryFiles:
    """The `Files` of a machine that the test owns."""

    def __init__(self):
        self.files = {}  # path -> Content
        self.synced_names = {}  # the same, as of the last sync of each directory
        self.directories = {"": None}
        self.locked = {}
        self.listed = {}  # how often each directory was
        self.steps = 0
        self.crash_at = None
        self.room_bytes = None
        self.read_bytes = 0
        self.refuses_read = False
        self.refuses_sync = False
        self.refuses_truncate = False
        self.refused = {}  # beginnings of paths that cannot be opened or renamed: errno

    def refuse(self, path):
        for beginning, number in self.refused.items():
            if path.startswith(beginning):
                raise OSError(number, os.strerror(number), path)

    def step(self):
        """Count a step; true when the machine stops in it."""
        self.steps += 1
        return self.crash_at is not None and self.steps >= self.crash_at

    def crash_or_go(self):
        if self.step():
            raise Crashed

    def open(self, path):
        self.refuse(path)
        assert path.rpartition("/")[0] in self.directories, f"{path} is in no directory"
        if path not in self.files:
            self.crash_or_go()
            self.files[path] = Content()
        return MemoryFile(self, self.files[path])

    def names(self, directory):
        self.listed[directory] = self.listed.get(directory, 0) + 1
        paths = [*self.files, *self.directories]
        inside = [path for path in paths if path.rpartition("/")[0] == directory and path]
        return sorted(path.rpartition("/")[2] for path in inside)

    def make_directory(self, path):
        while path not in self.directories:
            self.directories[path] = None
            path = path.rpartition("/")[0]

    def remove_directory(self, path):
        if path not in self.directories:
            raise FileNotFoundError(path)
        self.crash_or_go()
        if self.names(path):
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        del self.directories[path]

    def rename(self, old, new):
        if old not in self.directories and old not in self.files:
            raise FileNotFoundError(old)
        self.refuse(old)
        self.crash_or_go()
        if old in self.directories:
            moved = {new + path[len(old) :]: path for path in self.directories if path == old}
            for name, path in moved.items():
                self.directories[name] = self.directories.pop(path)
            for path in [path for path in self.files if path.startswith(f"{old}/")]:
                self.files[new + path[len(old) :]] = self.files.pop(path)
        else:
            self.files[new] = self.files.pop(old)

    def unlink(self, path):
        if path in self.files:
            self.crash_or_go()
            content = self.files.pop(path)
            if self.room_bytes is not None:
                self.room_bytes += len(content.now)

    def sync_directory(self, path):
        self.crash_or_go()
        inside = [name for name in {**self.files, **self.synced_names} if _parent(name) == path]
        for name in inside:
            if name in self.files:
                self.synced_names[name] = self.files[name]
            else:
                self.synced_names.pop(name)

    def lock(self, path):
        if path in self.locked:
            raise BlockingIOError(path)
        self.locked[path] = None
        self.files.setdefault(path, Content())
        return MemoryFile(self, self.files[path], locked=path)

    def after_crash(self):
        """The disk as the next process finds it."""
        return self._survivor(self.files, lambda content: bytes(content.now))

    def after_power_loss(self, kept=0.0):
        """What was synced, and of each file's unsynced rest the given part."""

        def rest(content):
            extra = content.now[len(content.synced) :]
            if content.now[: len(content.synced)] != content.synced:
                return content.synced  # it was cut back and written anew since
            return content.synced + extra[: int(len(extra) * kept)]

        return self._survivor(self.synced_names, rest)

    def _survivor(self, names, content_of):
        disk = MemoryFiles()
        disk.directories = dict(self.directories)
        for path, content in names.items():
            data = content_of(content)
            disk.files[path] = disk.synced_names[path] = Content(bytearray(data), data)
        return disk


def _parent(path):
    return path.rpartition("/")[0]
