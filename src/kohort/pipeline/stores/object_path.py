# SPDX-License-Identifier: Apache-2.0
"""A path among objects, so far as tables need one: it looks like `pathlib.Path`, and lists nothing.

Which files a folder has the manifest tells, or who has written them: names are used once only, so
what was ever known of a folder stays true. A file that nobody names is not there, even where a task
that was given up has written it in the end.
"""

import io
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import IO

from kohort.pipeline.stores.objects import Objects

Files = dict[str, dict[str, int]]
"""Folder, relative to the root -> the names of its files, relative to it -> their bytes."""


class Root:
    """The prefix that all of it is below, and what is known of the files there."""

    def __init__(self, objects: Objects, prefix: str) -> None:
        self.objects = objects
        self.prefix = prefix
        self.files: Files = {}
        self.gone: frozenset[str] = frozenset()
        """Keys of files that were named and not there: somebody else has removed them."""

    def key(self, path: str) -> str:
        """The key of a path that is relative to here."""
        return "/".join(part for part in (self.prefix, path) if part)

    def know(self, files: Files) -> None:
        """Files that are there, besides those that are known. Another thread may be looking."""
        for folder, those in files.items():
            self.files[folder] = {**self.files.get(folder, {}), **those}


class ObjectPath:
    """A file or folder of an object store."""

    def __init__(self, root: Root, path: str = "") -> None:
        self.root = root
        self.path = path

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self.root, f"{self.path}/{name}" if self.path else name)

    def __str__(self) -> str:
        return self.root.objects.uri(self.key).removesuffix("/")

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: "ObjectPath") -> bool:
        return str(self) < str(other)

    def __reduce__(self) -> tuple[object, ...]:
        """Whoever gets it reads the manifest himself."""
        return _again, (self.root.objects, self.root.prefix, self.path)

    @property
    def key(self) -> str:
        return self.root.key(self.path)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_dir(self) -> bool:
        """Whether it is known, and be it without a file."""
        return self.path in self.root.files or any(True for _ in self._below())

    def is_whole(self) -> bool:
        """Whether it is known, and no file of it was missing when the writer looked."""
        return self.is_dir() and not any(path.key in self.root.gone for path in self.rglob("*"))

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """A folder is there as soon as a file is."""

    def glob(self, pattern: str) -> "Iterator[ObjectPath]":
        """Known files and folders right in here."""
        names = {name.partition("/")[0] for name in self._below()}
        return (self / name for name in sorted(names) if fnmatchcase(name, pattern))

    def rglob(self, pattern: str) -> "Iterator[ObjectPath]":
        """Known files at any depth."""
        found = sorted(set(self._below()))  # as it was written, and as a manifest names it
        return (self / name for name in found if fnmatchcase(name.rpartition("/")[2], pattern))

    def _below(self) -> Iterator[str]:
        """Known files below, relative to here. A folder that is known as a whole comes first."""
        for folder, names in list(self.root.files.items()):
            inside = f"{self.path}/" if self.path else ""
            if folder == self.path:
                yield from names
            elif folder.startswith(inside):
                yield from (f"{folder[len(inside) :]}/{name}" for name in names)
            elif self.path.startswith(f"{folder}/"):
                rest = f"{self.path[len(folder) + 1 :]}/"
                yield from (name[len(rest) :] for name in names if name.startswith(rest))

    def size(self) -> int:
        """The bytes of a known file."""
        for folder, names in list(self.root.files.items()):
            name = self.path[len(folder) + 1 :]
            if self.path.startswith(f"{folder}/") and name in names:
                return names[name]
        raise KeyError(str(self))

    def read_bytes(self) -> bytes:
        """Raises MissingError, StoreError."""
        return self.root.objects.read(self.key)

    def write_bytes(self, data: bytes, content_type: str) -> None:
        """Put it in the place of what is there. Raises StoreError."""
        self.root.objects.put(self.key, data, content_type)

    def open(self, _mode: str = "rb") -> IO[bytes]:
        return io.BytesIO(self.read_bytes())


def _again(objects: Objects, prefix: str, path: str) -> ObjectPath:
    return ObjectPath(Root(objects, prefix), path)
