# SPDX-License-Identifier: Apache-2.0
"""The lines of brokers' log files, as parts beside the rows: they outlive the files, and are
matched again whenever histories of groups are replayed. Needs no Spark.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.format.manifest import Manifest, Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas.server_log import SERVER_LOG
from kohort.pipeline.sources.server_log import LogFile, files_of, read
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import SERVER_LOGS
from kohort.pipeline.stores.places import Folder

_KEY = [name for name in SERVER_LOG.names if name != "file"]
"""What identifies a line: a file that was rotated has another name."""


class ServerLog(NamedTuple):
    """What there was in a file."""

    path: Path
    lines: int
    fresh: int
    """Lines that no earlier file had."""


class ServerLogResult(NamedTuple):
    """What there was in some files."""

    parts: tuple[Part, ...]
    """The new lines; nothing, or one part."""
    files: tuple[ServerLog, ...]


def keep(writer: Writer, given: Sequence[str | Path]) -> ServerLogResult:
    """Read files, and write what is new in them into a part that nobody knows yet. Raises
    ServerLogError.
    """
    paths = files_of(given)
    if not paths:
        return ServerLogResult((), ())
    known = set(_keys(writer.directory, writer.manifest.server_log))
    files, rows = [], []
    for path in paths:
        found = read(path)
        fresh = [row for row in _rows(found) if row[:-1] not in known]
        fresh = list(dict.fromkeys(fresh))
        known.update(row[:-1] for row in fresh)
        rows += fresh
        files.append(ServerLog(path, len(found.lines), len(fresh)))
    return ServerLogResult((_write(writer, rows),) if rows else (), tuple(files))


def partitions_with(
    directory: Folder, parts: Iterable[Part], known: Iterable[str], states: Iterable[Part]
) -> set[int]:
    """The partitions of the log whose groups have states, and are named in parts that are not
    `known`.
    """
    fresh = [part for part in parts if part.path not in {*known}]
    groups = {str(row[0]) for row in _keys(directory, fresh)}
    if not groups:
        return set()
    wanted = pa.array(sorted(groups), pa.string())
    found: set[int] = set()
    for part in states:
        files = parquet.folder_dataset(directory / part.path)
        where = pc.field("group_id").isin(wanted)
        for batch in files.to_batches(columns=["partition"], filter=where):
            found |= {*batch.column("partition").unique().to_pylist()}
    return found


def paths_of(manifest: Manifest) -> tuple[str, ...]:
    """The parts that a manifest has."""
    return tuple(part.path for part in manifest.server_log)


def _rows(found: LogFile) -> Iterator[tuple[object, ...]]:
    name = os.fsencode(found.path.name).decode(errors="replace")
    return ((*line, name) for line in found.lines)


def _keys(directory: Folder, parts: Iterable[Part]) -> Iterator[tuple[object, ...]]:
    for part in parts:
        rows: Mapping[str, list[object]] = parquet.read(directory / part.path, _KEY).to_pydict()
        yield from zip(*(rows[name] for name in _KEY), strict=True)


def _write(writer: Writer, rows: list[tuple[object, ...]]) -> Part:
    name = f"{SERVER_LOGS}/{writer.new_name('')}"
    path = writer.directory / name
    path.mkdir(parents=True)
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(columns, SERVER_LOG.arrow, strict=True)
        ],
        schema=SERVER_LOG.arrow,
    )
    file = path / "lines.parquet"
    parquet.write(table, file, compression="zstd")
    return Part(path=name, rows=len(rows))
