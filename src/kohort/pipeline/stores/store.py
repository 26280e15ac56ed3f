# SPDX-License-Identifier: Apache-2.0
"""What a writer of tables needs of the place where they are kept; two places have it."""

from collections.abc import Iterable
from typing import Protocol

from kohort.pipeline.stores.local_store import LocalStore
from kohort.pipeline.stores.object_path import Files, ObjectPath
from kohort.pipeline.stores.object_store import ObjectStore
from kohort.pipeline.stores.places import Folder

Tag = str | None
"""What tells one manifest from the next; None for that there is none."""


class Store(Protocol):
    """A place of tables. Everything raises OSError; paths are relative to it."""

    def hold(self) -> bool:
        """Be the one that writes, until `release`. Whether a writer before left without a word; on
        a disk nobody can. Raises HeldError.
        """

    def holder(self) -> str | None:
        """What tells the one that writes, or has done so last, from others; None for nobody."""

    def check_held(self, holder: str) -> None:
        """Raises HeldError where another has begun to write since that one did."""

    def release(self) -> None:
        """Let others write."""

    def read(self) -> tuple[bytes | None, Tag]:
        """The manifest; None where there is none."""

    def swap(self, data: bytes, tag: Tag) -> Tag:
        """Put a manifest in the place of the one with this tag, durably, in one step. Raises
        ConflictError where another is there.
        """

    def settle(self, fresh: Iterable[str], paths: Iterable[str]) -> None:
        """Make durable what is in these folders, of which `fresh` are new."""

    def files(self, paths: Iterable[str]) -> Files:
        """The files of folders, where a manifest has to name them."""

    def clean(self, named: Iterable[str]) -> None:
        """Remove every folder of rows that a writer has made but these."""

    def remove(self, paths: Iterable[str]) -> None:
        """Remove folders that nobody needs."""

    def names(self, folder: str) -> list[str]:
        """The names of all files right in a folder; none where there is no such folder."""

    def load(self, path: str) -> bytes:
        """A file as a whole."""

    def create(self, path: str, data: bytes) -> None:
        """A new file, durably, in one step. Raises ConflictError where there is one of that name.
        `data` is to be unlike what anybody else writes there.
        """

    def replace(self, path: str, data: bytes) -> None:
        """The same in the place of what is there."""

    def drop(self, files: Iterable[str]) -> None:
        """Remove files that nobody needs."""

    def file_digest(self, paths: Iterable[str]) -> str | None:
        """A digest of how the files of folders look; None where one of them is missing."""


def store_of(directory: Folder) -> Store:
    """The store that has a directory."""
    if isinstance(directory, ObjectPath):
        return ObjectStore(directory)
    return LocalStore(directory)
