# SPDX-License-Identifier: Apache-2.0
"""Reading a directory of tables as Spark does: the manifest says which files count.

Bronze and silver are views on one kind of files, decoded rows by kind; gold is files of its own.
A row counts unless its log was cut before it after it was read.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kohort.pipeline.format.catalog import table_of, there
from kohort.pipeline.format.cluster import CLUSTER, check_apart, cluster_of
from kohort.pipeline.format.manifest import Increment, Manifest, Part, TablesError, load
from kohort.pipeline.schemas import DECODED, END_OFFSETS, Table
from kohort.pipeline.stores.layout import ROWS
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder, place_of
from kohort.spark.engine.frames import empty, struct_of
from kohort.spark.gold.lazy_tables import LazyTables
from kohort.spark.tables import object_reader
from kohort.spark.tables.silver import views

INCREMENT = "increment"

_COLUMNS = pa.schema([*DECODED.arrow, pa.field(INCREMENT, pa.string())])
LAYOUT: StructType = from_arrow_schema(_COLUMNS)
"""Decoded rows as they lie in files: the kind and the increment are names of directories."""


def read(
    directory: str | Folder | Iterable[str | Folder], name: str, spark: SparkSession
) -> DataFrame:
    """One table as it is now, of one directory or of several. The frame keeps the state of this
    moment. Raises TablesError.
    """
    opened = _opened(directory)
    tables = [table_of(path, manifest, name) for path, manifest in opened]
    return _of_all(spark, opened, [[table] for table in tables])[tables[0].name]


def read_all(
    directory: str | Folder | Iterable[str | Folder], spark: SparkSession
) -> dict[str, DataFrame]:
    """Every table that there is, all of the same moment. Raises TablesError."""
    opened = _opened(directory)
    return _of_all(spark, opened, [there(manifest).values() for _, manifest in opened])


def _opened(directory: str | Folder | Iterable[str | Folder]) -> list[tuple[Folder, Manifest]]:
    several = [directory] if isinstance(directory, str | Path | ObjectPath) else list(directory)
    places = [place_of(path) for path in several]
    opened = [(place, load(place)) for place in places]
    if not opened:
        raise TablesError("no directory of tables is given, expected one or several")
    if len(opened) != 1:
        check_apart((path, cluster_of(manifest)) for path, manifest in opened)
    return opened


def _of_all(
    spark: SparkSession, opened: list[tuple[Folder, Manifest]], tables: list[Iterable[Table]]
) -> dict[str, DataFrame]:
    """The rows of all directories, each with its cluster."""
    found: dict[str, list[DataFrame]] = {}
    for (path, manifest), wanted in zip(opened, tables, strict=True):
        cluster = F.lit(cluster_of(manifest)).cast("string")
        for name, frame in _frames(spark, path, manifest, wanted).items():
            found.setdefault(name, []).append(frame.withColumn(CLUSTER, cluster))
    return {
        name: reduce(DataFrame.unionByName, frames)
        for name, frames in found.items()
        if len(frames) == len(opened)
    }


def _frames(
    spark: SparkSession, directory: Folder, manifest: Manifest, tables: Iterable[Table]
) -> dict[str, DataFrame]:
    looks: Mapping[str, DataFrame] = {}
    found = {}
    for table in tables:
        if table.layer == "gold":
            found[table.name] = gold(spark, directory, manifest, table)
        elif table.layer == "past":
            of_history = manifest.past.parts(table.name)
            found[table.name] = parts(spark, directory, table, of_history)
        elif table is END_OFFSETS:
            found[table.name] = end_offsets(spark, directory, manifest)
        else:
            looks = looks or views(rows(spark, directory, manifest))
            found[table.name] = looks[table.name]
    return found


def rows(
    spark: SparkSession,
    directory: Folder,
    manifest: Manifest,
    increments: Iterable[Increment] | None = None,
) -> DataFrame:
    """Decoded rows that count, of all increments or of these."""
    chosen = list(manifest.increments if increments is None else increments)
    if not chosen:
        frame = empty(spark, LAYOUT)
    elif isinstance(directory, ObjectPath):
        frame = object_reader.rows(
            spark, directory, [increment.name for increment in chosen], _COLUMNS
        )
    else:
        places = [_literal(directory / ROWS / increment.name) for increment in chosen]
        base = str(directory / ROWS)
        frame = spark.read.schema(LAYOUT).option("basePath", base).parquet(*places)
    cut = [_is_cut(increment) for increment in chosen if increment.cuts]
    if cut:
        frame = frame.where(~reduce(Column.__or__, cut))
    return frame.select(*DECODED.names)


def end_offsets(spark: SparkSession, directory: Folder, manifest: Manifest) -> DataFrame:
    """All samples of the ends of user topics."""
    return parts(spark, directory, END_OFFSETS, manifest.end_offsets)


def gold(spark: SparkSession, directory: Folder, manifest: Manifest, table: Table) -> DataFrame:
    """A table of gold."""
    return parts(spark, directory, table, manifest.gold[table.name].parts)


def parts(
    spark: SparkSession, directory: Folder, table: Table, chosen: Iterable[Part]
) -> DataFrame:
    """The rows of a table that is made of parts."""
    frames = []
    by_partitions: dict[tuple[int, ...] | None, list[str]] = {}
    for part in chosen:
        by_partitions.setdefault(part.partitions, []).append(part.path)
    for partitions, places in by_partitions.items():
        if isinstance(directory, ObjectPath):
            frame = object_reader.parts(spark, directory, places, table.arrow)
        else:
            found = [_literal(directory / place) for place in places]
            frame = spark.read.schema(struct_of(table)).parquet(*found)
        frames.append(_only(frame, partitions))
    if not frames:
        return empty(spark, struct_of(table))
    return reduce(DataFrame.unionByName, frames)


def _literal(path: Path) -> str:
    """A path for Spark to read, which takes some characters for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path))


def in_partitions(frames: Mapping[str, DataFrame], partitions: Iterable[int]) -> LazyTables:
    """The rows of some partitions of the log, of the tables that have such a column."""
    chosen = tuple(partitions)

    def here(name: str) -> DataFrame:
        frame = frames[name]
        return _only(frame, chosen) if "partition" in frame.columns else frame

    return LazyTables({name: partial(here, name) for name in frames})


def _only(frame: DataFrame, partitions: tuple[int, ...] | None) -> DataFrame:
    if partitions is None:
        return frame
    return frame.where(F.col("partition").isin(list(partitions)))


def _is_cut(increment: Increment) -> Column:
    beyond = [
        (F.col("partition") == partition) & (F.col("offset") >= offset)
        for partition, offset in increment.cuts.items()
    ]
    return (F.col(INCREMENT) == increment.name.partition("=")[2]) & reduce(Column.__or__, beyond)
