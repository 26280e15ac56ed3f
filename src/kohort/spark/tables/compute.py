"""Computing gold into new files: whole tables, or the rows of the log partitions with new rows.

A group lives in one partition of the log, so where nothing was added nothing can change, unless a
measure depends on the moment. Those are marked `whole`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kohort.spark.gold import MEASURES, Context, Measure
from kohort.spark.gold.completeness import with_completeness
from kohort.spark.gold.replayed import with_histories
from kohort.spark.schemas import END_OFFSETS, Table
from kohort.spark.tables import delta, spark_reader
from kohort.spark.tables.code import code
from kohort.spark.tables.manifest import GOLD, Gold, Manifest, Part, Writer
from kohort.spark.tables.silver import views


def compute(
    spark: SparkSession,
    writer: Writer,
    manifest: Manifest,
    touched: Iterable[int],
    context: Context,
    doing: Callable[[str], None],
) -> dict[str, Gold]:
    """Every table of gold over the rows of `manifest`, `touched` being the log partitions whose
    rows are not those that gold was last computed from. The files are new; the old ones stay.
    """
    changed = tuple(sorted(touched))
    frames: dict[str, DataFrame] = dict(views(spark_reader.rows(spark, writer.directory, manifest)))
    frames[END_OFFSETS.name] = spark_reader.end_offsets(spark, writer.directory, manifest)
    frames |= with_completeness(frames)
    doing("histories of groups")
    frames |= with_histories(frames, context)
    done: dict[str, Gold] = {}
    for measure in MEASURES:
        table = measure.table
        doing(table.name)
        before = _reusable(measure, manifest, writer.directory)
        done[table.name] = _one(spark, writer, frames, measure, before, changed, context)
        after = manifest.with_(gold=done)
        frames[table.name] = spark_reader.gold(spark, writer.directory, after, table)
    return done


def _reusable(measure: Measure, manifest: Manifest, directory: Path) -> Gold | None:
    """What was computed earlier, where some of it may still be right: by the same code, into files
    that are there.
    """
    table = measure.table
    before = manifest.gold.get(table.name)
    if before is None or measure.whole or "partition" not in table.names:
        return None
    same = before.columns == _columns(table) and manifest.code == code()
    return before if same and all(_is_whole(directory, one) for one in before.parts) else None


def _is_whole(directory: Path, part: Part) -> bool:
    """Whether the files of a part have as many rows as they should. Delta knows by itself."""
    if part.version is not None:
        return True
    try:
        there = rows_of(directory / part.path)
    except (OSError, pa.ArrowInvalid):
        return False
    return there == part.rows if part.partitions is None else there >= part.rows


def _one(
    spark: SparkSession,
    writer: Writer,
    frames: Mapping[str, DataFrame],
    measure: Measure,
    before: Gold | None,
    changed: tuple[int, ...],
    context: Context,
) -> Gold:
    if before is not None and not changed:
        return before
    table = measure.table
    inputs = frames if before is None else spark_reader.in_partitions(frames, changed)
    computed = measure.compute(inputs, context)
    only = None if before is None else changed
    if writer.manifest.format == "delta":
        last = before.parts[0] if before is not None else None
        part = delta.write_part(spark, writer, computed, f"{GOLD}/{table.name}", only, last)
        return Gold(columns=_columns(table), parts=(part,))
    new = write_part(writer, computed, f"{GOLD}/{table.name}", only)
    kept = () if before is None else _without(before.parts, changed, writer.directory)
    return Gold(columns=_columns(table), parts=(*kept, new))


def _without(
    parts: Iterable[Part], partitions: tuple[int, ...], directory: Path
) -> tuple[Part, ...]:
    """The parts with the rows of other partitions only."""
    kept = []
    for part in parts:
        counts = _counts(directory / part.path)
        there = counts if part.partitions is None else part.partitions
        left = tuple(one for one in sorted(there) if one not in partitions)
        if left:
            rows = sum(counts[one] for one in left)
            kept.append(Part(path=part.path, rows=rows, partitions=left))
    return tuple(kept)


def _counts(path: Path) -> Counter[int]:
    """Partition of the log -> how many rows of it the files have."""
    counts: Counter[int] = Counter()
    for batch in ds.dataset(path, format="parquet").to_batches(columns=["partition"]):
        for pair in batch.column("partition").value_counts().to_pylist():
            counts[pair["values"]] += pair["counts"]
    return counts


def write_part(
    writer: Writer, frame: DataFrame, where: str, partitions: tuple[int, ...] | None
) -> Part:
    """Write a frame into new files."""
    name = f"{where}/{writer.new_name('')}"
    path = writer.directory / name
    frame.write.mode("overwrite").parquet(str(path))
    return Part(path=name, rows=rows_of(path), partitions=partitions)


def rows_of(path: Path) -> int:
    """How many rows the Parquet files of a directory hold, as their footers tell."""
    return sum(pq.read_metadata(file).num_rows for file in sorted(path.glob("*.parquet")))


def _columns(table: Table) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in table.arrow)
