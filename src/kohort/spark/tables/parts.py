# SPDX-License-Identifier: Apache-2.0
"""Parts of tables: directories of Parquet files. Each file counts with all of its rows, so that
whoever has the list of files (see `delta_log_writer`) has the rows.
"""

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from kohort.pipeline.format.manifest import Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import Table
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine import small_runs
from kohort.spark.tables import spark_writer
from kohort.spark.tables.driver_write import here

_ROW_GROUP = 1 << 20


def write_part(
    writer: Writer,
    frame: DataFrame,
    where: str,
    *,
    is_open: bool = False,
    few: bool = False,
) -> Part:
    """Write a frame into new files. If its rows are `few`, this process may write them."""
    name = f"{where}/{writer.new_name('')}"
    path = writer.directory / name
    if few and small_runs.are_open():
        return Part(path=name, rows=here(path, frame), is_open=is_open)
    written = spark_writer.write(frame, path)
    rows = rows_of(path) if written is None else written
    return Part(path=name, rows=rows, is_open=is_open)


def rows_of(path: Folder) -> int:
    """How many rows the Parquet files of a directory hold, as their footers tell."""
    return sum(parquet.footer(file).num_rows for file in parquet.files_of(path))


def is_whole(directory: Folder, part: Part) -> bool:
    """Whether the files of a part have as many rows as they should."""
    if isinstance(directory, ObjectPath):  # a file there is whole or not at all
        return (directory / part.path).is_whole()
    try:
        there = rows_of(directory / part.path)
    except (OSError, pa.ArrowInvalid):
        return False
    return there == part.rows if part.partitions is None else there >= part.rows


def without(
    writer: Writer, table: Table, parts: Iterable[Part], partitions: Collection[int]
) -> tuple[Part, ...]:
    """The parts with the rows of all other partitions of the log: what stays of a part that has
    both is rewritten.
    """
    if not partitions:
        return tuple(parts)
    kept = []
    for part in parts:
        there = partitions_of(writer.directory, part)
        if there.isdisjoint(partitions):
            kept.append(part)
        elif there - {*partitions}:
            rows = parquet.folder_dataset(writer.directory / part.path, table.arrow)
            kept.append(_rest(writer, part, rows, pc.field("partition").isin([*partitions])))
    return tuple(kept)


def partitions_of(directory: Folder, part: Part) -> set[int]:
    """The partitions of the log that a part has rows of."""
    found: set[int] = set()
    for batch in parquet.folder_dataset(directory / part.path).to_batches(columns=["partition"]):
        found.update(batch.column("partition").unique().to_pylist())
    return found


def _rest(writer: Writer, part: Part, rows: ds.Dataset, gone: pc.Expression) -> Part:
    """A part with the other rows of this one; memory has some of them at a time."""
    name = f"{part.path.rpartition('/')[0]}/{writer.new_name('')}"
    count = 0
    with parquet.ParquetFileWriter(writer.directory / name / "part-0.parquet", rows.schema) as file:
        for batch in rows.to_batches(filter=~gone):
            if batch.num_rows:
                file.write(pa.Table.from_batches([batch]), _ROW_GROUP)
                count += batch.num_rows
    return Part(path=name, rows=count, is_open=part.is_open)


def columns_of(table: Table) -> str:
    """The columns of a table as text."""
    return ", ".join(f"{field.name} {field.type}" for field in table.arrow)
