"""Decoded rows that are few, written as Spark writes them and without it: a folder for each kind,
and in it the order of the log.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from kohort.spark.schemas import DECODED

_BY_KIND = ds.partitioning(pa.schema([DECODED.arrow.field("kind")]), flavor="hive")
_ORDER = [(name, "ascending") for name in ("kind", "partition", "offset")]


def write(directory: Path, rows: pa.Table) -> None:
    """Write DECODED rows into a new directory."""
    directory.mkdir(parents=True)
    ds.write_dataset(
        rows.select(DECODED.names).sort_by(_ORDER),
        directory,
        format="parquet",
        file_options=ds.ParquetFileFormat().make_write_options(write_page_checksum=True),
        partitioning=_BY_KIND,
        basename_template="part-{i}.parquet",
        use_threads=False,  # else their order is lost
    )


def read(directory: Path, *columns: str) -> pa.Table:
    """Some columns of what was written there."""
    files = ds.dataset(directory, DECODED.arrow, format="parquet", partitioning=_BY_KIND)
    return files.to_table(list(columns))


def frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """DECODED rows as Spark has them. It loses what stands behind an empty chunk (4.3)."""
    return spark.createDataFrame(rows.combine_chunks(), DECODED.spark)
