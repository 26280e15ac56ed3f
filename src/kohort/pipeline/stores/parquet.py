# SPDX-License-Identifier: Apache-2.0
"""Parquet files of tables, wherever they are kept: read and written without Spark."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kohort.pipeline.stores.arrow_files import FOOTER_BYTES, ObjectFile, filesystem
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder, is_object, place_of

OPTIONS: dict[str, Any] = {"write_page_checksum": True, "write_batch_size": 64}
"""How every file is written. By the checksums `pipeline verify` finds a bit that has flipped. After
each batch of rows the writer looks whether a page is full: a page of a thousand large rows, as by
default, is more than a reader may have memory for.
"""


def dataset(
    files: Sequence[str | Folder], schema: pa.Schema | None = None, partitioning: Any = None
) -> ds.Dataset:
    """Files as one table; those that are objects are `s3://…` and the like."""
    if not (files and is_object(str(files[0]))):
        names = [str(file) for file in files]
        return ds.dataset(names, schema, format="parquet", partitioning=partitioning)
    there = [path for path in map(place_of, files) if isinstance(path, ObjectPath)]
    return ds.dataset(
        [path.key for path in there],
        schema,
        format="parquet",
        partitioning=partitioning,
        filesystem=filesystem(there[0].root.objects),
    )


def files_of(folder: Folder) -> list[Folder]:
    """The Parquet files right in a folder."""
    return inside(folder, "*.parquet")


def inside(folder: Folder, pattern: str) -> list[Folder]:
    """Files and folders right in a folder, by name."""
    return sorted(folder.glob(pattern), key=str)


def below(folder: Folder, pattern: str) -> list[Folder]:
    """Files and folders at any depth of a folder, by name."""
    return sorted(folder.rglob(pattern), key=str)


def folder_dataset(folder: Folder, schema: pa.Schema | None = None) -> ds.Dataset:
    """The files of a folder as one table."""
    if isinstance(folder, Path):
        return ds.dataset(folder, schema, format="parquet")
    return dataset(files_of(folder), schema)


def read(path: Folder, columns: list[str] | None = None) -> pa.Table:
    """The rows of a file, or of all files of a folder."""
    if isinstance(path, Path):
        return pq.read_table(path, columns=columns)
    there = [path] if path.name.endswith(".parquet") else files_of(path)
    return pa.concat_tables(pq.read_table(_opened(path), columns=columns) for path in there)


def size(file: Folder) -> int:
    """The bytes of a file."""
    return file.stat().st_size if isinstance(file, Path) else file.size()


def footer(file: Folder) -> pq.FileMetaData:
    """What the end of a file tells."""
    return pq.read_metadata(file if isinstance(file, Path) else _opened(file, FOOTER_BYTES))


def opened(file: Folder, **options: Any) -> pq.ParquetFile:
    """A file, to be read by row groups."""
    return pq.ParquetFile(file if isinstance(file, Path) else _opened(file), **options)


def write(rows: pa.Table, file: Folder, **options: Any) -> None:
    """A new file, as a whole."""
    if isinstance(file, Path):
        pq.write_table(rows, file, **OPTIONS, **options)
        return
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **OPTIONS, **options)
    data = sink.getvalue().to_pybytes()
    _put(file, data, len(data))


class ParquetFileWriter:
    """A new file that is written piece by piece, for as long as the block lasts. It is made, and
    its folder, when the first piece comes; on an object store it is there when the block has ended,
    and not at all after an error.
    """

    def __init__(self, file: Folder, schema: pa.Schema, **options: Any) -> None:
        self._file = file
        self._schema = schema
        self._options = options
        self._open = ExitStack()
        self._aside: IO[bytes] | None = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._open:
            if self._writer is None:
                return
            if kind is not None:
                with suppress(Exception):  # the error that ended the block is the one to tell
                    self._writer.close()
                return
            self._writer.close()
            if self._aside is not None:
                assert isinstance(self._file, ObjectPath)
                size = self._aside.tell()
                self._aside.seek(0)
                _put(self._file, self._aside, size)

    def write(self, rows: pa.Table, row_group_size: int) -> None:
        if self._writer is None:
            if isinstance(self._file, Path):
                self._file.parent.mkdir(parents=True, exist_ok=True)
            else:
                self._aside = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            into = self._aside or self._file
            self._writer = pq.ParquetWriter(into, self._schema, **OPTIONS, **self._options)
        self._writer.write_table(rows, row_group_size=row_group_size)


def _put(file: ObjectPath, data: bytes | IO[bytes], size: int) -> None:
    file.root.objects.put(file.key, data)
    folder, _, name = file.path.rpartition("/")
    file.root.know({folder: {name: size}})


def _opened(file: Folder, end_bytes: int | None = None) -> pa.NativeFile:
    assert isinstance(file, ObjectPath)
    return pa.PythonFile(ObjectFile(file.root.objects, file.key, end_bytes), mode="r")
