# SPDX-License-Identifier: Apache-2.0
"""Who writes a place of tables: one at a time, and all tables are flipped at once."""

import contextlib
import itertools
import secrets
import time
from types import TracebackType
from typing import Self

import msgspec

from kohort.pipeline.format.delta_log_writer import DeltaLogs
from kohort.pipeline.format.manifest import Basis, Manifest, RetiredFiles, TablesError, decode
from kohort.pipeline.sources.log_position import Identity
from kohort.pipeline.stores import layout
from kohort.pipeline.stores.failures import ConflictError, HeldError
from kohort.pipeline.stores.places import Folder, place_of
from kohort.pipeline.stores.store import Store, Tag, store_of

GRACE_MS = 15 * 60 * 1000
MOST_NOTES = 1000


class BusyError(TablesError):
    """Somebody else is writing the tables."""


class Writer:
    """The only writer of a directory of tables, for as long as the block lasts."""

    def __init__(
        self, directory: str | Folder, *, locked: bool = True, acts_for: str | None = None
    ) -> None:
        """Make the directory if need be, lock it, and remove what crashed writers left behind.

        `locked=False` is for a process that acts for the holder of the lock, and `acts_for` tells
        which `holder` that is: where another has begun to write since, it may not. Raises
        TablesError: somebody else writes, or the directory cannot be written.
        """
        self.directory = place_of(directory)
        self._store: Store = store_of(self.directory)
        self._logs = DeltaLogs(self.directory, self._store)
        self._closed = False
        self._token = secrets.token_hex(4)
        self._names = itertools.count(1)  # two threads never get the same
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            was_left = self._store.hold() if locked else False
            if acts_for is not None:
                self._store.check_held(acts_for)
            self.manifest, self._tag = self._read()
            self._found = self.manifest.number
            if was_left:
                self._fence()
            self._logs.follow(self.manifest)  # a writer may have died before it did
            if locked:
                self._remove_orphans()
        except HeldError as error:
            self.close()
            raise BusyError(
                f"{directory} is being written by {error}: wait for its end, or write into another "
                "directory"
            ) from None
        except OSError as error:
            self.close()
            raise TablesError(f"{directory} cannot be written: {_why(error)}") from error
        except BaseException:  # also Ctrl-C: a process that goes on would hold it for good
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def holder(self) -> str | None:
        """What a process that acts for this one has to name."""
        return self._store.holder()

    @property
    def is_changed(self) -> bool:
        """Whether the tables may no longer be those that this writer found: it has flipped them, or
        a process that acts for it.
        """
        try:
            return self._read()[0].number != self._found
        except TablesError:
            return True

    def close(self) -> None:
        """Let others write."""
        self._closed = True
        self._store.release()

    def new_name(self, what: str) -> str:
        """A name that no earlier attempt has used: its tasks may still be writing somewhere."""
        return layout.name(what, self.manifest.number + 1, self._token, next(self._names))

    def discard(self, path: str) -> None:
        """Remove files that this writer has written and will not name."""
        with contextlib.suppress(OSError):  # the next writer does it
            self._store.remove([path])

    def publish(self, manifest: Manifest, basis: Basis | None = None) -> None:
        """Flip every table at once. Whatever the new manifest names is made durable first."""
        if self._closed:
            raise TablesError(f"{self.directory} is not written any more: its writer has ended")
        there, tag = self._read()
        if there.number != self.manifest.number or tag != self._tag:
            # A lock ends with its process, its tasks may not.
            raise TablesError(
                f"{self.directory} was written by somebody else meanwhile: manifest "
                f"{there.number} is there, expected {self.manifest.number}"
            )
        now_ms = time.time_ns() // 1_000_000
        known, paths = set(self.manifest.paths()), set(manifest.paths())
        self._store.settle([path for path in manifest.paths() if path not in known], paths)
        retired = (
            *(left for left in self.manifest.retired if left.path not in paths),
            *(RetiredFiles(path, now_ms) for path in sorted(known - paths)),
        )
        kept = tuple(left for left in retired if left.since_ms > now_ms - GRACE_MS)
        following = manifest.with_(
            number=self.manifest.number + 1,
            written_ms=now_ms,
            notes=manifest.notes[-MOST_NOTES:],
            noted=manifest.noted + len(manifest.notes) - len(self.manifest.notes),
            retired=kept,
            files=self._store.files([*sorted(paths), *(left.path for left in kept)]),
            basis=basis,
        )
        self._flip(following)
        self._follow(following)
        with contextlib.suppress(OSError):  # the tables are flipped, and the next run removes them
            self._store.remove(left.path for left in set(retired) - set(kept))

    def _flip(self, following: Manifest) -> None:
        data = msgspec.json.format(msgspec.json.encode(following), indent=1)
        try:
            self._tag = self._store.swap(data, self._tag)
        except ConflictError as error:
            raise TablesError(
                f"{self.directory} was written by somebody else meanwhile, and is as that one left "
                f"it: {error.strerror}"
            ) from error
        except OSError as error:
            raise TablesError(f"{self.directory} cannot be written: {error.strerror}") from error
        self.manifest = following

    def _follow(self, following: Manifest) -> None:
        """Bring the Delta logs up to what was flipped, before they name a file that is removed."""
        try:
            self._logs.follow(following)
        except OSError as error:
            raise TablesError(
                f"{self.directory} is up to date, but not for readers of Delta, whose logs cannot "
                f"be written: {_why(error)}; the next run tries it again"
            ) from error

    def _read(self) -> tuple[Manifest, Tag]:
        """The manifest that is there, and its tag."""
        try:
            data, tag = self._store.read()
        except OSError as error:
            raise TablesError(f"{self.directory} cannot be read: {error.strerror}") from error
        return (Manifest() if data is None else decode(self.directory, data)), tag

    def _fence(self) -> None:
        """Change the manifest, so that a writer that was only silent can no longer flip: its files
        are about to be removed.
        """
        self._flip(self.manifest.with_(fence=self._token))

    def _remove_orphans(self) -> None:
        """Remove what no manifest names: a crashed writer left it."""
        named = {*self.manifest.paths(), *(left.path for left in self.manifest.retired)}
        self._store.clean(named)


def _why(error: OSError) -> str:
    """The reason, and of which file, where that is known."""
    why = error.strerror or str(error)
    return f"{error.filename}: {why}" if error.filename and error.strerror else why


def claim(writer: Writer, out: str | Folder, identity: Identity) -> None:
    """Say whose the tables are. Raises TablesError when they are somebody else's."""
    before = writer.manifest.identity
    if not before.matches(identity):
        raise TablesError(_differs(out, before, identity))
    known = (new or old for old, new in zip(before, identity, strict=True))
    writer.manifest = writer.manifest.with_(identity=Identity(*known))


def _differs(out: str | Folder, before: Identity, now: Identity) -> str:
    if before.cluster_id and now.cluster_id and before.cluster_id != now.cluster_id:
        what = f"of cluster {before.cluster_id}, and this log is of cluster {now.cluster_id}"
    else:
        what = (
            f"of a log with topic id {before.topic_id}, and this one was created anew with "
            f"{now.topic_id}"
        )
    return f"{out} has the tables {what}: write into another directory"
