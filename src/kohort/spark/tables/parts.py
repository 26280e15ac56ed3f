"""Parts of tables: directories of Parquet files, whose rows count as the manifest says."""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from kohort.spark.schemas import Table
from kohort.spark.tables.few_rows import here
from kohort.spark.tables.manifest import Part, Writer


def write_part(
    writer: Writer,
    frame: DataFrame,
    where: str,
    partitions: tuple[int, ...] | None,
    *,
    is_open: bool = False,
    few: bool = False,
) -> Part:
    """Write a frame into new files; of `few` rows, as this process does."""
    name = f"{where}/{writer.new_name('')}"
    path = writer.directory / name
    if few:
        return Part(path=name, rows=here(path, frame), partitions=partitions, is_open=is_open)
    frame.write.mode("overwrite").parquet(str(path))
    return Part(path=name, rows=rows_of(path), partitions=partitions, is_open=is_open)


def rows_of(path: Path) -> int:
    """How many rows the Parquet files of a directory hold, as their footers tell."""
    return sum(pq.read_metadata(file).num_rows for file in sorted(path.glob("*.parquet")))


def is_whole(directory: Path, part: Part) -> bool:
    """Whether the files of a part have as many rows as they should. Delta knows by itself."""
    if part.version is not None:
        return True
    try:
        there = rows_of(directory / part.path)
    except (OSError, pa.ArrowInvalid):
        return False
    return there == part.rows if part.partitions is None else there >= part.rows


def without(
    parts: Iterable[Part], partitions: Collection[int], directory: Path
) -> tuple[Part, ...]:
    """The parts with the rows of other partitions only."""
    if not partitions:
        return tuple(parts)
    kept = []
    for part in parts:
        counts = _counts(directory / part.path)
        there = counts if part.partitions is None else part.partitions
        left = tuple(one for one in sorted(there) if one not in partitions)
        if left:
            rows = sum(counts[one] for one in left)
            kept.append(Part(path=part.path, rows=rows, partitions=left, is_open=part.is_open))
    return tuple(kept)


def _counts(path: Path) -> Counter[int]:
    """Partition of the log -> how many rows of it the files have."""
    counts: Counter[int] = Counter()
    for batch in ds.dataset(path, format="parquet").to_batches(columns=["partition"]):
        for pair in batch.column("partition").value_counts().to_pylist():
            counts[pair["values"]] += pair["counts"]
    return counts


def columns_of(table: Table) -> str:
    """The columns of a table as text."""
    return ", ".join(f"{field.name} {field.type}" for field in table.arrow)
