# SPDX-License-Identifier: Apache-2.0
"""Tables as objects: a flip swaps the manifest in one step, and the manifest names every file."""

from collections.abc import Iterable
from hashlib import blake2b

from kohort.pipeline.stores.failures import HeldError, MissingError, StoreError
from kohort.pipeline.stores.layout import FOLDERS, LEASE, MANIFEST, is_made
from kohort.pipeline.stores.lease import Lease, there
from kohort.pipeline.stores.object_path import Files, ObjectPath
from kohort.pipeline.stores.objects import ListedObject


class ObjectStore:
    """See `store.Store`."""

    def __init__(self, directory: ObjectPath) -> None:
        self._root = directory.root
        self._objects = directory.root.objects
        self._directory = directory
        self._lease: Lease | None = None

    def hold(self) -> bool:
        self._lease = Lease(self._directory / LEASE)
        return self._lease.was_left

    def holder(self) -> str | None:
        found = there(self._directory / LEASE)
        return None if found is None else found.token

    def check_held(self, holder: str) -> None:
        now = there(self._directory / LEASE)
        if now is None or now.token != holder:
            raise HeldError("another process" if now is None else now.describe)

    def release(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def read(self) -> tuple[bytes | None, str | None]:
        try:
            there = self._objects.current(self._root.key(MANIFEST))
        except MissingError:
            return None, None
        return there.data, there.tag

    def swap(self, data: bytes, tag: str | None) -> str | None:
        return self._objects.swap(self._root.key(MANIFEST), data, tag)

    def settle(self, fresh: Iterable[str], paths: Iterable[str]) -> None:
        """A put that is answered is durable."""

    def files(self, paths: Iterable[str]) -> Files:
        found: Files = {}
        for path in paths:
            folder = self._directory / path
            found[path] = {
                str(path)[len(str(folder)) + 1 :]: path.size() for path in folder.rglob("*")
            }
        return found

    def clean(self, named: Iterable[str]) -> None:
        wanted = self._keys(named)
        there = {key for name in FOLDERS for key in self._listed(name)}
        self._root.gone = frozenset(wanted - there)
        begin = len(self._root.key("x")) - 1
        left = {key for key in there - wanted if is_made(key[begin:])}
        self._objects.delete(left, self._root.prefix)

    def remove(self, paths: Iterable[str]) -> None:
        self._objects.delete(self._keys(paths), self._root.prefix)

    def names(self, folder: str) -> list[str]:
        begin = len(self._root.key(f"{folder}/x")) - 1
        names = (listed.key[begin:] for listed in self._objects.listed(self._root.key(folder)))
        return sorted(name for name in names if "/" not in name)

    def load(self, path: str) -> bytes:
        return self._objects.read(self._root.key(path))

    def create(self, path: str, data: bytes) -> None:
        self._objects.create(self._root.key(path), data)

    def replace(self, path: str, data: bytes) -> None:
        self._objects.put(self._root.key(path), data)

    def drop(self, files: Iterable[str]) -> None:
        self._objects.delete([self._root.key(path) for path in files], self._root.prefix)

    def file_digest(self, paths: Iterable[str]) -> str | None:
        try:
            there = {key: one for name in FOLDERS for key, one in self._listed(name).items()}
        except StoreError:
            return None
        digest = blake2b(digest_size=16)
        for key in sorted(self._keys(paths)):
            if key not in there:
                return None
            digest.update(f"{key} {there[key].size} {there[key].tag}\n".encode())
        return digest.hexdigest()

    def _listed(self, folder: str) -> dict[str, ListedObject]:
        return {listed.key: listed for listed in self._objects.listed(self._root.key(folder))}

    def _keys(self, paths: Iterable[str]) -> set[str]:
        return {file.key for path in paths for file in (self._directory / path).rglob("*")}
