# SPDX-License-Identifier: Apache-2.0
"""Rows that arrive after later ones have been read: files of Parquet arrive in any order.

A log grows at its end only, so a position says what was read of it. With files that is not so: rows
that lie before the position are compared with the rows that are there already.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.format.manifest import Manifest
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.log_position import Note
from kohort.spark.sources.source import Source
from kohort.spark.tables import spark_reader

_PLACE = ["partition", "offset"]


def late_rows(
    spark: SparkSession, writer: Writer, log: Source
) -> tuple[DataFrame | None, tuple[Note, ...]]:
    """The rows that lie before the positions and were never added, and what to say of them.

    Where history was dropped nobody knows what was there, so nothing is added to it; and nothing
    that an earlier run was told to leave out.
    """
    manifest = writer.manifest
    if not manifest.positions:
        return None, ()

    def known() -> DataFrame:
        return spark_reader.rows(spark, writer.directory, manifest).select(*_PLACE)

    rows = log.late_rows(spark, manifest.positions, known, manifest.source_files)
    if rows is None:
        return None, ()
    rows = rows.where(_open(manifest))
    found = rows.groupBy("partition").agg(F.count("*").alias("rows"), F.min("offset").alias("at"))
    notes = tuple(
        Note(
            row["partition"],
            row["at"],
            f"{row['rows']} records of partition {row['partition']}, from offset {row['at']} on, "
            "came after later ones had been read, and were read now",
        )
        for row in sorted(found.collect(), key=lambda row: row["partition"])
    )
    return (rows if notes else None), notes


def _open(manifest: Manifest) -> Column:
    """The condition that a row may be added."""
    closed = [
        (F.col("partition") == index) & (F.col("offset") < end)
        for increment in manifest.increments
        if increment.compacted
        for index, (_, end) in increment.ranges.items()
    ] + [
        (F.col("partition") == index) & (F.col("offset") < begin)
        for index, begin in manifest.begins.items()
    ]
    return ~reduce(Column.__or__, closed) if closed else F.lit(True)
