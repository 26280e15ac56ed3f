# SPDX-License-Identifier: Apache-2.0
"""Tables on HDFS, by WebHDFS: files are written aside and renamed, which the name node does in one
step or not at all.

A file that is swapped is a folder. In it lie what was written, under the tag of that writing, and
an empty file whose name says which tag counts:

    manifest.json/000013-0a1b2c3d   manifest.json/current-000013-0a1b2c3d

A swap writes the next one and renames the empty file. Of all that have seen the same tag one can do
so, because tags are never used twice and nothing else makes such a file: who comes later finds
nothing to rename. The first swap renames a whole folder to where there is none, and the folder
stays for as long as there are tables.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import IO

from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError
from kohort.pipeline.stores.name_node import TRIES, NameNode, Status
from kohort.pipeline.stores.objects import ListedObject, Object, done_or_refused

_COUNTS = "current-"


@dataclass(frozen=True)
class Hdfs:
    """See `objects.Objects`."""

    node: NameNode

    conditions = "renames that are one step"
    no_such_tag = "000000-00000000"

    def uri(self, key: str) -> str:
        return self.node.uri(key)

    def read(self, key: str, begin: int = 0, until: int | None = None) -> bytes:
        return self.node.read(key, begin, None if until is None else until - begin)

    def read_end(self, key: str, count: int) -> tuple[int, bytes]:
        size = self.node.status(key).length
        return size, self.read(key, max(0, size - count)) if size else b""

    def put(self, key: str, data: bytes | IO[bytes], content_type: str | None = None) -> None:
        """A try that was given up and is late writes what nobody knows."""
        del content_type  # HDFS keeps none
        aside = self.node.write(f"{key}.", data)
        try:
            self.node.replace(aside, key)
        except MissingError:  # the answer to an earlier try was lost, or somebody removes folders
            self.node.status(key)

    def current(self, key: str) -> Object:
        for _ in range(TRIES):
            there = self.node.listing(key)
            tag = self._tag(key, there.entries)
            counting = (entry for entry in there.entries if entry.path_suffix == tag)
            written = [entry.modification_time for entry in counting]
            with suppress(MissingError):  # it has just been swapped
                data = self.node.read(f"{key}/{tag}")
                return _object(data, tag, max(written), there.now)
        raise StoreError("it is written again and again", self.uri(key))

    def swap(self, key: str, data: bytes, tag: str | None) -> str:
        def follow() -> str:
            return self._begin(key, data) if tag is None else self._follow(key, data, tag)

        following = done_or_refused(self, key, data, follow)
        with suppress(StoreError):  # the next swap does it
            self._tidy(key, following)
        return following

    def create(self, key: str, data: bytes) -> None:
        """A rename comes to nothing where something is; whose that is, its bytes tell."""
        aside = self.node.write(f"{key}.", data)
        if self._moved(aside, key) and self.read(key) == data:
            return
        self.node.delete(aside)
        raise self._conflict(key)

    def listed(self, folder: str) -> Iterator[ListedObject]:
        try:
            there = self.node.listing(folder).entries
        except MissingError:
            return
        for entry in there:
            path = f"{folder}/{entry.path_suffix}"
            if entry.is_file:
                yield ListedObject(path, entry.length, f"{entry.file_id}-{entry.modification_time}")
            else:
                yield from self.listed(path)

    def delete(self, keys: Iterable[str], inside: str) -> None:
        folders = set()
        for key in sorted(keys):
            self.node.delete(key)
            folders.add(_folder(key))
        for folder in sorted(folders, reverse=True):  # what is in a folder comes after it
            at = folder
            while at != inside and at.startswith(inside) and self._removed(at):
                at = _folder(at)

    def _removed(self, folder: str) -> bool:
        """Whether a folder was empty, and is gone."""
        try:
            self.node.delete(folder)
        except StoreError as error:
            if error.errno == errno.ENOTEMPTY:
                return False
            raise
        return True

    def _follow(self, key: str, data: bytes, tag: str) -> str:
        """A swap. Raises MissingError: who was quicker has removed what this wrote."""
        aside = self.node.write(f"{key}/{_number(tag) + 1:06}-", data)
        following = _name(aside)
        if not self._moved(f"{key}/{_COUNTS}{tag}", f"{key}/{_COUNTS}{following}"):
            self.delete([aside], _folder(key))
            raise self._conflict(key)
        return following

    def _begin(self, key: str, data: bytes) -> str:
        """The first swap. Raises MissingError as well."""
        if self._is_there(key):
            raise self._conflict(key)
        folder = f"{key}.{token_hex(4)}"
        tag = _name(self.node.write(f"{folder}/000001-", data))
        counts = f"{_COUNTS}{tag}"
        self._moved(self.node.write(f"{folder}/empty-", b""), f"{folder}/{counts}")
        if not self._moved(folder, key, sign=f"{key}/{counts}"):
            for left in (folder, f"{key}/{_name(folder)}"):  # it may have moved into the other
                self.node.delete(left, recursive=True)
            raise self._conflict(key)
        with suppress(StoreError):
            for entry in self.node.listing(_folder(key)).entries:
                if entry.path_suffix.startswith(f"{_name(key)}."):  # whoever made it comes too late
                    self.node.delete(f"{_folder(key)}/{entry.path_suffix}", recursive=True)
        return tag

    def _moved(self, path: str, to: str, sign: str | None = None) -> bool:
        """Whether something has come there, be it by a try whose answer was lost. With a `sign`
        that file tells it alone.
        """
        try:
            done = self.node.rename(path, to) and sign is None
        except StoreError:
            if not self._is_there(sign or to):
                raise
            return True
        return done or self._is_there(sign or to)

    def _is_there(self, path: str) -> bool:
        try:
            self.node.status(path)
        except MissingError:
            return False
        return True

    def _tidy(self, key: str, tag: str) -> None:
        """Remove what can count no more: it was written to follow a tag that is gone."""
        for entry in self.node.listing(key).entries:
            name = entry.path_suffix
            follows = name.partition("-")[0].isdigit() and _number(name) > _number(tag)
            if name != tag and not name.startswith(_COUNTS) and not follows:
                self.node.delete(f"{key}/{name}", recursive=True)

    def _tag(self, key: str, there: list[Status]) -> str:
        """The tag that counts."""
        for entry in there:
            if entry.path_suffix.startswith(_COUNTS):
                return entry.path_suffix.removeprefix(_COUNTS)
        text = (
            "it is a file, expected a folder: tables that were copied from elsewhere are not read"
            if [entry.path_suffix for entry in there] == [""]
            else f"it is a folder without a file {_COUNTS}…, so that nothing in it counts"
        )
        raise StoreError(text, self.uri(key))

    def _conflict(self, key: str) -> ConflictError:
        return ConflictError("it was written meanwhile", self.uri(key), errno.EEXIST)


def _object(data: bytes, tag: str, written_ms: int, now: datetime) -> Object:
    return Object(data, tag, datetime.fromtimestamp(written_ms / 1000, UTC), lambda: now)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _number(tag: str) -> int:
    return int(tag.partition("-")[0])
