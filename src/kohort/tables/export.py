# SPDX-License-Identifier: Apache-2.0
"""Whole tables as files for other programs: Parquet, CSV or lines of JSON, a file for each table.

All are of one moment. They are written aside, made durable and then renamed, so that a file of such
a name is always whole.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from kohort.errors import KohortError
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.stores.layout import MANIFEST
from kohort.pipeline.stores.local_store import sync
from kohort.tables.plain import csv_header, csv_lines, jsonl
from kohort.tables.snapshots import Snapshot, Snapshots

Form = Literal["parquet", "csv", "jsonl"]
FORMS: tuple[Form, ...] = get_args(Form)
_AT_ONCE = 4096
"""Rows that are made to text at a time: as objects of Python they are much larger."""


class ExportedTable(NamedTuple):
    """A table that was written."""

    name: str
    rows: int
    path: Path


class ThereError(KohortError):
    """A file or a table of that name is there already."""


def export(
    snapshot: Snapshot | Snapshots,
    to: Path,
    form: Form,
    names: Iterable[str] | None = None,
    *,
    overwrite: bool = False,
) -> list[ExportedTable]:
    """Write tables of a snapshot, by default all, as `<to>/<name>.<form>`; of several, the rows of
    all in one file.

    Raises ThereError without `overwrite`, TablesError for a table that is not there or a directory
    that cannot be written, GoneError. Then the files that were there are as they were.
    """
    wanted = snapshot.names if names is None else [snapshot.table(name).name for name in names]
    paths = {name: to / f"{name}.{form}" for name in dict.fromkeys(wanted)}
    try:
        check_outside(to.resolve())
        there = [path for path in paths.values() if path.exists()]
        if there and not overwrite:
            raise ThereError(f"{there[0]} is there already")
        to.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".kohort-export-", dir=to))
        try:
            return _written(snapshot, paths, form, aside)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except (OSError, RuntimeError) as error:  # the latter for links that lead in a circle
        why = error.strerror if isinstance(error, OSError) else error
        raise TablesError(f"{to} cannot be written: {why or error}") from error


def check_outside(where: Path) -> None:
    """Raises TablesError for a directory of tables, OSError for one that cannot be."""
    if (where / MANIFEST).exists():
        raise TablesError(f"{where} is a directory of tables, expected another one to export to")


def _written(
    snapshot: Snapshot | Snapshots, paths: dict[str, Path], form: Form, aside: Path
) -> list[ExportedTable]:
    found = []
    for name, path in paths.items():
        rows = _WRITERS[form](snapshot.scan(name), aside / path.name)
        sync(aside / path.name)
        found.append(ExportedTable(name, rows, path))
    for path in paths.values():
        (aside / path.name).replace(path)
    if found:
        sync(aside.parent)
    return found


def _parquet(reader: pa.RecordBatchReader, path: Path) -> int:
    rows = 0
    with pq.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _csv(reader: pa.RecordBatchReader, path: Path) -> int:
    return _text(reader, path, csv_header(reader.schema), csv_lines)


def _jsonl(reader: pa.RecordBatchReader, path: Path) -> int:
    return _text(reader, path, "", jsonl)


def _text(
    reader: pa.RecordBatchReader, path: Path, head: str, lines: Callable[[pa.RecordBatch], str]
) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(head)
        for batch in reader:
            for start in range(0, batch.num_rows, _AT_ONCE):
                file.write(lines(batch.slice(start, _AT_ONCE)))
            rows += batch.num_rows
    return rows


_WRITERS: dict[Form, Callable[[pa.RecordBatchReader, Path], int]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
}
