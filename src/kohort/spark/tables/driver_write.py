# SPDX-License-Identifier: Apache-2.0
"""Few rows, written as Spark writes them and without it.

Decoded rows get a folder for each kind, and keep the order of the log in it.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.schemas import DECODED
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine.frames import struct_of

_BY_KIND = ds.partitioning(pa.schema([DECODED.arrow.field("kind")]), flavor="hive")
_ORDER = [(name, "ascending") for name in ("kind", "partition", "offset")]


def write(directory: Folder, rows: pa.Table) -> None:
    """Write DECODED rows into a new directory."""
    ordered = rows.select(DECODED.names).sort_by(_ORDER)
    if not isinstance(directory, Path):
        for kind in ordered["kind"].unique().to_pylist():
            of_kind = ordered.filter(pc.equal(ordered["kind"], kind)).drop_columns("kind")
            parquet.write(of_kind, directory / f"kind={kind}" / "part-0.parquet")
        return
    directory.mkdir(parents=True)
    ds.write_dataset(
        ordered,
        directory,
        format="parquet",
        file_options=ds.ParquetFileFormat().make_write_options(**parquet.OPTIONS),
        partitioning=_BY_KIND,
        basename_template="part-{i}.parquet",
        use_threads=False,  # else their order is lost
    )


def here(directory: Folder, rows: DataFrame) -> int:
    """Compute rows, and write them into a new directory; answers how many they are. For few rows
    the committers of a job that writes cost more than what it computes.
    """
    table = rows.toArrow()
    directory.mkdir(parents=True)
    parquet.write(table, directory / "part-0.parquet")
    return int(table.num_rows)


def read(directory: Folder, *columns: str) -> pa.Table:
    """Some columns of DECODED rows that `write` has written."""
    there = [*directory.rglob("*.parquet")]
    files = parquet.dataset(there, DECODED.arrow, _BY_KIND)
    return files.to_table(list(columns))


def frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """DECODED rows as Spark has them. It loses what stands behind an empty chunk (4.3)."""
    return spark.createDataFrame(rows.combine_chunks(), struct_of(DECODED))
