# SPDX-License-Identifier: Apache-2.0
"""Writing a frame as files: in a directory Spark writes, on an object store each task does by
Arrow.

So no jar of a store is needed. A task writes files under names of its own and reports them when it
ends. Only the report of the attempt that Spark counts is used: nothing names the files of other
attempts.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from kohort.pipeline.stores import parquet, settings
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder

MOST_FILE_BYTES = 256 << 20
"""A file of this size is ended, and another one begun: each is put with one request."""
GROUP_BYTES = 32 << 20
_WRITTEN_FILES = pa.schema([("file", pa.string()), ("bytes", pa.int64()), ("rows", pa.int64())])


def write(frame: DataFrame, folder: Folder, by: str | None = None) -> int | None:
    """Write the rows of a frame into a new folder, or into a folder below it for each value of the
    column `by`. The rows of a partition must then be in the order of `by`. Returns the number of
    rows, where it is known without reading the files.
    """
    if isinstance(folder, Path):
        output = frame.write.mode("overwrite")
        (output if by is None else output.partitionBy(by)).parquet(str(folder))
        return None
    task = _task(folder, by)
    written = frame.mapInArrow(task, "file string, bytes long, rows long").collect()
    folder.root.know({folder.path: {row["file"]: row["bytes"] for row in written}})
    return sum(int(row["rows"]) for row in written)


def _task(
    folder: ObjectPath, by: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    variables = settings.of_this_process()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settings.adopt(variables)
        context = TaskContext.get()
        stem = f"part-{0 if context is None else context.partitionId():05}-{secrets.token_hex(4)}"
        files = _Files(folder, stem)
        for batch in batches:
            if batch.num_rows:
                for inside, rows in _split(batch, by):
                    files.add(inside, rows)
        files.end()
        yield pa.RecordBatch.from_pylist(files.written, _WRITTEN_FILES)

    return run


def _split(batch: pa.RecordBatch, by: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Folder below, and the rows that belong there."""
    if by is None:
        yield "", batch
        return
    values = batch.column(by)
    for value in values.unique().to_pylist():
        yield f"{by}={value}/", batch.filter(pc.equal(values, value)).drop_columns(by)


class _Files:
    """The files that a task writes, one at a time."""

    def __init__(self, folder: ObjectPath, stem: str) -> None:
        self.written: list[dict[str, object]] = []
        self._folder, self._stem = folder, stem
        self._inside: str | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0

    def add(self, inside: str, batch: pa.RecordBatch) -> None:
        if inside != self._inside:
            self.end()
            self._inside = inside
        self._waiting.append(batch)
        if sum(waiting.nbytes for waiting in self._waiting) >= GROUP_BYTES:
            self._flush()
            if self._file.tell() >= MOST_FILE_BYTES:
                self.end()
                self._inside = inside

    def end(self) -> None:
        """Put the file that is open."""
        if self._waiting:
            self._flush()
        if self._writer is None:
            return
        self._writer.close()
        name = f"{self._inside}{self._stem}-{len(self.written)}.parquet"
        size = self._file.tell()
        self._file.seek(0)
        self._folder.root.objects.put((self._folder / name).key, self._file)
        self._file.close()
        self.written.append({"file": name, "bytes": size, "rows": self._rows})
        self._writer, self._inside, self._rows = None, None, 0

    def _flush(self) -> None:
        rows = pa.Table.from_batches(self._waiting)
        self._waiting = []
        if self._writer is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (`end` closes it)
            # Times are read in UTC, whatever zone the session shows them in.
            self._writer = pq.ParquetWriter(
                self._file, rows.schema, compression="zstd", store_schema=False, **parquet.OPTIONS
            )
        self._writer.write_table(rows)
        self._rows += rows.num_rows
