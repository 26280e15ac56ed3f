# SPDX-License-Identifier: Apache-2.0
"""A disk in memory that fills up, refuses, decays, and crashes at any of its steps.

After a crash of the process everything written is still there. After a loss of power only what was
synced is promised: of a file its bytes, of a directory the names in it. Of the rest any part may be
there: pages of a file in any order, names one without the other. A step is whatever changes the
disk.

Faults concern one path of many: `refused`, `immovable` and `faults` name what refuses, and how.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from random import Random
from typing import TypeVar

from kohort.storage.memory_files import Content, Directory, MemoryFile, MemoryFiles

PAGE_BYTES = 4096


class MachineCrash(BaseException):
    """The machine has stopped: nobody may catch it and go on."""


Names = Mapping[str, Content | Directory]
Node = TypeVar("Node", Content, Directory)


class SimulatedFile(MemoryFile):
    """An open file of such a disk."""

    _disk: "SimulatedFiles"

    def read(self, position: int, count: int) -> bytes:
        self._disk.before("read", self._path)
        if self._disk.refuses_read:
            raise self._disk.refusal(errno.EIO, self._path)
        data = super().read(position, count)
        self._disk.read_bytes += len(data)
        return data

    def write(self, position: int, data: bytes) -> None:
        self._disk.before("write", self._path)
        content = self._content.now
        room = self._disk.room_bytes
        if self._disk.step():
            self._put(position, data[: len(data) // 2])
            raise MachineCrash
        if room is not None and position + len(data) - len(content) > room:
            self._put(position, data[: max(0, room - (position - len(content)))])
            raise self._disk.refusal(errno.ENOSPC, self._path)
        self._put(position, data)

    def _put(self, position: int, data: bytes) -> None:
        content = self._content.now
        assert position <= len(content), "a write must not leave a gap"
        before = len(content)
        content[position : position + len(data)] = data
        if self._disk.room_bytes is not None:
            self._disk.room_bytes -= len(content) - before

    def truncate(self, size: int) -> None:
        self._disk.before("truncate", self._path)
        self._disk.crash_or_go()
        if self._disk.refuses_truncate:
            raise self._disk.refusal(errno.EIO, self._path)
        if self._disk.room_bytes is not None:
            self._disk.room_bytes += max(0, len(self._content.now) - size)
        del self._content.now[size:]

    def sync(self) -> None:
        self._disk.before("sync", self._path)
        self._disk.crash_or_go()
        if self._disk.refuses_sync:
            raise self._disk.refusal(errno.EIO, self._path)
        self._disk.spends_sync()
        content = self._content
        before, content.synced = content.synced, bytes(content.now)
        content.replaced += not content.synced.startswith(before)


class SimulatedFiles(MemoryFiles):
    """The `Files` of a machine that a test or the simulator owns."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: dict[str, int] = {}  # how often each directory was
        self.steps = 0
        self.crash_at: int | None = None
        self.room_bytes: int | None = None
        self.read_bytes = 0
        self.refuses_read = False
        self.refuses_sync = False
        self.refuses_truncate = False
        self.refused: dict[
            str, int
        ] = {}  # beginnings of paths that cannot be opened or renamed: errno
        self.immovable: dict[
            str, int
        ] = {}  # paths that cannot be renamed: errno, as of a mount point
        self.faults: dict[
            tuple[str, str], int
        ] = {}  # an operation and the beginning of a path: errno
        self.told_refusal: Callable[[], None] = _nobody
        self.directory_synced: Callable[[], None] = _nobody
        self.spends_sync: Callable[[], None] = _nobody

    @property
    def files(self) -> dict[str, Content]:
        """Every file by its path."""
        return dict(_walk(self.root, "", Content))

    @property
    def directories(self) -> dict[str, Directory]:
        return {"": self.root, **dict(_walk(self.root, "", Directory))}

    def flip(self, path: str, position: int, bit: int = 0) -> None:
        """Let a bit that lies on the disk be another one."""
        content = self._at(path)
        assert isinstance(content, Content)
        content.now[position] ^= 1 << bit
        if position < len(content.synced):
            synced = bytearray(content.synced)
            synced[position] ^= 1 << bit
            content.synced = bytes(synced)

    def opened(self, content: Content, path: str, lock: str | None = None) -> SimulatedFile:
        return SimulatedFile(self, content, path, lock)

    def before(self, operation: str, path: str) -> None:
        for (refused, beginning), number in self.faults.items():
            # A directory is synced by itself: what is below it is another one's.
            exact = operation == "sync_directory"
            if refused == operation and (
                path == beginning if exact else path.startswith(beginning)
            ):
                raise self.refusal(number, path)
        if operation in ("open", "rename"):
            for beginning, number in self.refused.items():
                if path.startswith(beginning):
                    raise self.refusal(number, path)
        if operation == "rename" and path in self.immovable:
            raise self.refusal(self.immovable[path], path)
        if operation == "names":
            self.listed[path] = self.listed.get(path, 0) + 1

    def change(self, operation: str, path: str) -> None:
        del path
        if operation != "lock":  # it is in memory alone
            self.crash_or_go()

    def refusal(self, number: int, path: str) -> OSError:
        """The error of an operation that a fault refuses; `told_refusal` hears of it."""
        self.told_refusal()
        return OSError(number, os.strerror(number), path)

    def step(self) -> bool:
        """Count a step; true when the machine stops in it."""
        self.steps += 1
        return self.crash_at is not None and self.steps >= self.crash_at

    def crash_or_go(self) -> None:
        if self.step():
            raise MachineCrash

    def unlink(self, path: str) -> None:
        content = self._at(path)
        super().unlink(path)
        if isinstance(content, Content) and self.room_bytes is not None:
            self.room_bytes += len(content.now)

    def sync_directory(self, path: str) -> None:
        self.before("sync_directory", path)
        self.crash_or_go()
        directory = self._directory(path)
        directory.synced = dict(directory.now)
        self.spends_sync()
        self.directory_synced()

    def after_crash(self) -> "SimulatedFiles":
        """The disk as the next process finds it: all that was written, synced or not. What refuses
        on it still does.
        """
        return self._with(deepcopy(self.root))

    def after_power_loss(
        self, kept: float = 0.0, *, random: Random | None = None, page_bytes: int = PAGE_BYTES
    ) -> "SimulatedFiles":
        """What was synced, and of each file's unsynced rest the given part, from its begin.

        With `random` each page that was not synced is there or not for itself, and so is each
        name.
        """

        def rest(content: Content) -> bytes:
            if random is not None:
                return _some_pages(content, random, page_bytes)
            extra = content.now[len(content.synced) :]
            if content.now[: len(content.synced)] != content.synced:
                return content.synced  # it was cut back and written anew since
            return content.synced + bytes(extra[: int(len(extra) * kept)])

        def names(directory: Directory) -> Names:
            if random is None:
                return directory.synced
            return _some_names(directory, random)

        return self._survivor(names, rest)

    def _survivor(
        self, names_of: Callable[[Directory], Names], content_of: Callable[[Content], bytes]
    ) -> "SimulatedFiles":
        def file(node: Content) -> Content:
            data = content_of(node)
            return Content(bytearray(data), bytes(data))

        def folder(node: Directory) -> Directory:
            inside = {
                name: file(child) if isinstance(child, Content) else folder(child)
                for name, child in names_of(node).items()
            }
            return Directory(inside, dict(inside))

        return self._with(folder(self.root))

    def _with(self, root: Directory) -> "SimulatedFiles":
        disk = SimulatedFiles()
        disk.root = root
        disk.faults.update(self.faults)
        disk.refused.update(self.refused)
        disk.immovable.update(self.immovable)
        disk.room_bytes = self.room_bytes
        disk.told_refusal = self.told_refusal
        disk.directory_synced = self.directory_synced
        disk.spends_sync = self.spends_sync
        return disk


def _nobody() -> None:
    """Whoever does not ask is told nothing."""


def _some_pages(content: Content, random: Random, page_bytes: int) -> bytes:
    """The synced bytes, with the pages that have changed since where chance wants them."""
    old, new = content.synced, bytes(content.now)
    if old == new:
        return old
    result = bytearray(old if len(new) >= len(old) or random.random() < 0.5 else old[: len(new)])
    for at in range(0, len(new), page_bytes):
        page = new[at : at + page_bytes]
        if page != old[at : at + page_bytes] and random.random() < 0.6:
            if len(result) < at:
                result += bytes(at - len(result))
            result[at : at + len(page)] = page
    return bytes(result)


def _some_names(directory: Directory, random: Random) -> Names:
    """A rename is two names: the new one may be there without the old one having gone, as on no
    file system that keeps a journal, but a file is never there under neither of them.
    """
    names = dict(directory.synced)
    changed = {
        name: node for name, node in directory.now.items() if directory.synced.get(name) is not node
    }
    gone = [name for name in directory.synced if name not in directory.now]
    arrived = set()
    for name, node in changed.items():
        if random.random() < 0.5:
            names[name] = node
            arrived.add(id(node))
    moved = {id(node) for node in changed.values()}
    for name in gone:
        node = directory.synced[name]
        may_go = id(node) not in moved or id(node) in arrived
        if may_go and random.random() < 0.5:
            del names[name]
    return names


def _walk(directory: Directory, path: str, kind: type[Node]) -> Iterator[tuple[str, Node]]:
    for name, node in directory.now.items():
        if isinstance(node, kind):
            yield f"{path}/{name}", node
        if isinstance(node, Directory):
            yield from _walk(node, f"{path}/{name}", kind)
