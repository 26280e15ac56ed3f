# SPDX-License-Identifier: Apache-2.0
"""Delta logs of all tables, which follow the manifest: readers of Delta see the rows that count.

A log changes after the manifest and before any file is removed, so whatever its newest version
names is there. A crash between the two leaves the version before, which is whole as well; whoever
writes next brings the log up to date before all else. Commits are made here and not by delta-rs:
they go where the tables are, by the same client and with the same credentials, WebHDFS included.
"""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa

from kohort.pipeline.format.delta_log import (
    CHECKPOINT_EVERY,
    KEPT_COMMITS,
    LAST_CHECKPOINT,
    LOG,
    Add,
    Commit,
    Metadata,
    State,
    checkpoint,
    commit,
    commit_of,
    schema_text,
    state_of,
)
from kohort.pipeline.format.manifest import Manifest, Part
from kohort.pipeline.schemas import DECODED, END_OFFSETS, GOLD, OBSERVED_HISTORY, Table
from kohort.pipeline.stores import layout, parquet
from kohort.pipeline.stores.failures import StoreError
from kohort.pipeline.stores.layout import END, ROWS
from kohort.pipeline.stores.places import Folder
from kohort.pipeline.stores.store import Store

_COMMIT = re.compile(r"(\d{20})\.json")
_NUMBERED = re.compile(r"(\d{20})\..+")
_AT_ONCE = 8
_NAMED = ("increment", "kind")
_ROWS = pa.schema([*DECODED.arrow, pa.field("increment", pa.string())])


class LoggedTable(NamedTuple):
    """A table as its log is to have it."""

    root: str
    schema: pa.Schema
    folders: tuple[str, ...]
    """Of its files, relative to the root."""
    partitioned_by: tuple[str, ...] = ()
    """Columns that are not in the files but in the names of folders: some readers look there."""


def logged_tables(manifest: Manifest) -> Iterator[LoggedTable]:
    """The tables that have a log. Where only some rows of a file count, the log stays as it is: so
    it is in tables that Kohort 0.1 has written, and after a cut until `ingest.merge_and_expire`.
    """
    if not any(increment.cuts for increment in manifest.increments):
        names = tuple(increment.name for increment in manifest.increments)
        yield LoggedTable(ROWS, _ROWS, names, _NAMED)
    yield from _of_parts(END, END_OFFSETS, manifest.end_offsets)
    for table in GOLD:
        if table.name in manifest.gold:
            root = f"{layout.GOLD}/{table.name}"
            yield from _of_parts(root, table, manifest.gold[table.name].parts)
    for table in OBSERVED_HISTORY if manifest.past.as_of_us is not None else ():
        yield from _of_parts(
            f"{layout.OBSERVED_HISTORY}/{table.name}", table, manifest.past.parts(table.name)
        )


def _of_parts(root: str, table: Table, parts: tuple[Part, ...]) -> Iterator[LoggedTable]:
    if all(part.partitions is None for part in parts):
        folders = tuple(part.path.removeprefix(f"{root}/") for part in parts)
        yield LoggedTable(root, table.arrow, folders)


class DeltaLogs:
    """The logs of the tables in a directory, as this writer has found and left them."""

    def __init__(self, directory: Folder, store: Store) -> None:
        self._directory, self._store = directory, store
        self._states: dict[str, State | None] = {}

    def follow(self, manifest: Manifest) -> None:
        """Commit what has changed. Raises OSError; ConflictError where somebody else has begun to
        write. What this has done is not done again by the next call.
        """
        if not manifest.number:
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(lambda table: self._follow(table, manifest), logged_tables(manifest)):
                pass

    def _follow(self, table: LoggedTable, manifest: Manifest) -> None:
        if table.root not in self._states:
            self._states[table.root] = self._newest(table.root)
        before = self._states[table.root]
        known = _by_folder(before)
        root = self._directory / table.root
        if not all(name in known or (root / name).is_dir() for name in table.folders):
            return  # there is damage, which must not look like a table with fewer rows
        found = (known.get(name) or self._read(table, name) for name in table.folders)
        adds = {add.path: add for adds in found for add in adds}
        columns = schema_text(table.schema)
        first = None if before is None else before.metadata
        if (
            before is not None
            and before.is_ours
            and before.adds.keys() == adds.keys()
            and first is not None
            and first.schema_string == columns
        ):
            return
        now_ms = time.time_ns() // 1_000_000
        metadata = Metadata(
            id=str(uuid4()) if first is None else first.id,
            schema_string=columns,
            partition_columns=table.partitioned_by,
            created_time=now_ms if first is None else first.created_time,
        )
        now = State(0 if before is None else before.version + 1, metadata, adds)
        data = commit(before, now, manifest.number, now_ms)
        self._store.create(f"{table.root}/{LOG}/{now.version:020}.json", data)
        self._states[table.root] = now
        if now.version and now.version % CHECKPOINT_EVERY == 0:
            self._check(table.root, now)

    def _newest(self, root: str) -> State | None:
        """The newest version in a log; None where there is none."""
        found = (_COMMIT.fullmatch(name) for name in self._store.names(f"{root}/{LOG}"))
        versions = sorted((int(name[1]) for name in found if name), reverse=True)
        commits: list[Commit] = []
        for version in versions:
            name = f"{root}/{LOG}/{version:020}.json"
            try:
                commits.append(commit_of(self._store.load(name)))
            except (ValueError, RecursionError) as error:
                why = f"it is no commit of a Delta table ({error})"
                raise self._refused(root, name, why) from error
            if commits[-1].metadata is not None:
                break
        else:
            if versions and versions[0] != len(versions) - 1:
                why = "commits before it are missing, and none that is left is of Kohort"
                raise self._refused(root, name, why)
        return state_of(versions[0], commits) if versions else None

    def _refused(self, root: str, commit: str, why: str) -> StoreError:
        log = self._directory / root / LOG
        advice = f"remove the folder {log}, and the next run writes this log anew"
        return StoreError(f"{why}: {advice}", str(self._directory / commit))

    def _read(self, table: LoggedTable, folder: str) -> Iterator[Add]:
        root = self._directory / table.root
        for file in parquet.below(root / folder, "*.parquet"):
            name = str(file)[len(str(root)) + 1 :]
            pairs = (part.partition("=") for part in name.split("/")[:-1])
            values: dict[str, str | None] = {
                column: value for column, _, value in pairs if column in table.partitioned_by
            }
            yield Add(
                path=quote(name, safe="/="),
                partition_values=values,
                size=parquet.size(file),
                modification_time=_modified_ms(file),
            )

    def _check(self, root: str, state: State) -> None:
        """Write a checkpoint, and remove what is only needed without it."""
        data, pointer = checkpoint(state)
        folder = f"{root}/{LOG}"
        self._store.replace(f"{folder}/{state.version:020}.checkpoint.parquet", data)
        self._store.replace(f"{folder}/{LAST_CHECKPOINT}", pointer)
        found = (_NUMBERED.fullmatch(name) for name in self._store.names(folder))
        old = (name for name in found if name and int(name[1]) < state.version - KEPT_COMMITS)
        self._store.drop([f"{folder}/{name[0]}" for name in old])


def _by_folder(state: State | None) -> dict[str, list[Add]]:
    """The files of a version by the folder right below the table. What is in one never changes, so
    its files need not be looked at again.
    """
    known: dict[str, list[Add]] = {}
    for add in state.adds.values() if state is not None and state.is_ours else ():
        known.setdefault(add.path.partition("/")[0], []).append(add)
    return known


def _modified_ms(file: Folder) -> int:
    """When a file was written; an object is known by its name and size only."""
    if isinstance(file, Path):
        return file.stat().st_mtime_ns // 1_000_000
    return time.time_ns() // 1_000_000
