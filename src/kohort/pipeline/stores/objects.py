# SPDX-License-Identifier: Apache-2.0
"""What tables need of a place that is no directory: whole objects, ranges, and one atomic step.

An object is put as a whole and never changed, but for those few that are swapped: each writing of
such a one has a tag, and it is replaced only by who has seen the newest. Two kinds of place keep to
this, a bucket (`s3`, `clouds`) and a name node (`hdfs`); all else is built of it.
"""

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from importlib.util import find_spec
from typing import IO, NamedTuple, Protocol

from kohort.errors import KohortError, how_to_install
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError


class Object(NamedTuple):
    """An object that is there. What `now` says and `written_at` are by the clock of the store."""

    data: bytes
    tag: str
    written_at: datetime
    now: Callable[[], datetime]
    """For those who may write beside it, which some stores have to be asked by."""


class ListedObject(NamedTuple):
    """An object as a listing tells it; the tag is another where it was rewritten."""

    key: str
    size: int
    tag: str


def require(library: str, extra: str) -> None:
    """Raises KohortError, which names the extra, where a library is not installed."""
    if find_spec(library) is None:
        raise KohortError(f"{library} is not installed: {how_to_install(extra)}")


class Objects(Protocol):
    """A place of objects; keys have slashes between their parts. Everything raises StoreError. It
    goes to other processes, which find their credentials themselves.
    """

    def __hash__(self) -> int:
        """It is a value."""

    @property
    def conditions(self) -> str:
        """What `swap` rests on, for those whose store does not keep to it."""

    @property
    def no_such_tag(self) -> str:
        """A tag that no object has."""

    def uri(self, key: str) -> str:
        """What people write for it."""

    def read(self, key: str, begin: int = 0, until: int | None = None) -> bytes:
        """An object, or a range of it that is not empty. Raises MissingError."""

    def read_end(self, key: str, count: int) -> tuple[int, bytes]:
        """How large an object is, and its last bytes, `count` of them at most."""

    def put(self, key: str, data: bytes | IO[bytes], content_type: str | None = None) -> None:
        """Write an object as a whole, in the place of what is there."""

    def current(self, key: str) -> Object:
        """An object that is swapped, as it is now. Raises MissingError."""

    def swap(self, key: str, data: bytes, tag: str | None) -> str:
        """Write an object if it is still the one with this tag, None for: if there is none. Returns
        the new tag. Raises ConflictError where it is not.

        `data` is to be unlike anything that was ever written there (see `done_or_refused`).
        """

    def create(self, key: str, data: bytes) -> None:
        """Write an object that is never changed, as a plain file. Raises ConflictError where there
        is one. `data` is to be unlike what anybody else writes there.
        """

    def listed(self, folder: str) -> Iterator[ListedObject]:
        """Every object at any depth of a folder."""

    def delete(self, keys: Iterable[str], inside: str) -> None:
        """Remove objects, whether they are there or not, and folders of this one that have no
        objects any more.
        """


def done_or_refused(objects: Objects, key: str, data: bytes, swap: Callable[[], str]) -> str:
    """The new tag. A request whose answer was lost is sent again, and refused for what it has done
    itself: so a refusal is looked at.
    """
    try:
        return swap()
    except StoreError as error:
        with suppress(StoreError):
            there = objects.current(key)
            if there.data == data:
                return there.tag
        if isinstance(error, MissingError):  # it was to be there
            raise ConflictError("it is gone", objects.uri(key), errno.EEXIST) from error
        raise
