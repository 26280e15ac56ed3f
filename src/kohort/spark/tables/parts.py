"""Parts of tables: directories of Parquet files, whose rows count as the manifest says."""

from collections import Counter
from collections.abc import Collection, Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from kohort.spark.engine import shortcuts
from kohort.spark.schemas import Table
from kohort.spark.stores import parquet
from kohort.spark.stores.object_path import ObjectPath
from kohort.spark.stores.places import Folder
from kohort.spark.tables import spark_writer
from kohort.spark.tables.few_rows import here
from kohort.spark.tables.manifest import Part
from kohort.spark.tables.writer import Writer


def write_part(
    writer: Writer,
    frame: DataFrame,
    where: str,
    partitions: tuple[int, ...] | None,
    *,
    is_open: bool = False,
    few: bool = False,
) -> Part:
    """Write a frame into new files. If its rows are `few`, this process may write them."""
    name = f"{where}/{writer.new_name('')}"
    path = writer.directory / name
    if few and shortcuts.are_open():
        return Part(path=name, rows=here(path, frame), partitions=partitions, is_open=is_open)
    told = spark_writer.write(frame, path)
    rows = rows_of(path) if told is None else told
    return Part(path=name, rows=rows, partitions=partitions, is_open=is_open)


def rows_of(path: Folder) -> int:
    """How many rows the Parquet files of a directory hold, as their footers tell."""
    return sum(parquet.footer(file).num_rows for file in parquet.files_of(path))


def is_whole(directory: Folder, part: Part) -> bool:
    """Whether the files of a part have as many rows as they should. Delta checks its own."""
    if part.version is not None:
        return True
    if isinstance(directory, ObjectPath):  # a file there is whole or not at all
        return (directory / part.path).is_whole()
    try:
        there = rows_of(directory / part.path)
    except (OSError, pa.ArrowInvalid):
        return False
    return there == part.rows if part.partitions is None else there >= part.rows


def without(
    parts: Iterable[Part], partitions: Collection[int], directory: Folder
) -> tuple[Part, ...]:
    """The parts with the rows of all other partitions."""
    if not partitions:
        return tuple(parts)
    kept = []
    for part in parts:
        counts = _counts(directory / part.path)
        there = counts if part.partitions is None else part.partitions
        left = tuple(index for index in sorted(there) if index not in partitions)
        if left:
            rows = sum(counts[index] for index in left)
            kept.append(Part(path=part.path, rows=rows, partitions=left, is_open=part.is_open))
    return tuple(kept)


def _counts(path: Folder) -> Counter[int]:
    """Partition of the log -> how many rows of it the files have."""
    counts: Counter[int] = Counter()
    for batch in parquet.folder_dataset(path).to_batches(columns=["partition"]):
        for pair in batch.column("partition").value_counts().to_pylist():
            counts[pair["values"]] += pair["counts"]
    return counts


def columns_of(table: Table) -> str:
    """The columns of a table as text."""
    return ", ".join(f"{field.name} {field.type}" for field in table.arrow)
