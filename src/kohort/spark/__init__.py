# SPDX-License-Identifier: Apache-2.0
"""The pipeline over the group log: sources of raw rows, typed tables, and what they tell.

`kohort.spark.jobs` writes tables, which needs the extra `kohort[spark]` and Java 17 or newer. What
is here reads them, also while they are being written:

    lag = kohort.spark.read("tables", "lag")

Without Spark, tables are shown, drawn and given samples with the extra `kohort[tables]` alone.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kohort.errors import KohortError, how_to_install

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kohort.pipeline.schemas import Table

NEEDED = {
    "spark": ("pyspark", "pyarrow", "numpy", "pandas", "altair", "vl_convert"),
    "tables": ("pyarrow", "altair", "vl_convert"),
    "iceberg": ("pyarrow", "pyiceberg", "sqlalchemy"),
}
"""Extra -> the modules that come with it."""


def require(extra: str = "spark") -> None:
    """Raises KohortError, which names the extra, where a library of it is not installed. Imports
    nothing.
    """
    missing = [name for name in NEEDED[extra] if find_spec(name) is None]
    if missing:
        raise KohortError(f"{missing[0]} is not installed: {how_to_install(extra)}")


def read(
    directory: str | Path | Iterable[str | Path], name: str, spark: "SparkSession | None" = None
) -> "DataFrame":
    """A table out of a directory that `kohort pipeline run` writes, as it is now; out of several,
    one for each cluster, the rows of all. The column `cluster` tells them apart.

    Without a session the active one is taken, or one is started. Raises KohortError: there are no
    tables, or none of that name.
    """
    require()
    from kohort.spark.engine.session import active_session  # noqa: PLC0415
    from kohort.spark.tables import spark_reader  # noqa: PLC0415  (what is not used is not imported)

    return spark_reader.read(directory, name, spark or active_session())


def register(spark: "SparkSession") -> None:
    """Let a session know the formats `kohort.log`, `.topic`, `.groups`, `.offsets` and `.tables`,
    and hand filters down to the last, which is a setting of the session.
    """
    require()
    from kohort.spark.sources import registry  # noqa: PLC0415
    from kohort.spark.tables.table_source import PUSHDOWN, KohortTables  # noqa: PLC0415

    registry.register(spark)
    spark.dataSource.register(KohortTables)
    for name, value in PUSHDOWN.items():
        spark.conf.set(name, value)


def views(
    spark: "SparkSession", directory: str | Path | Iterable[str | Path], prefix: str = ""
) -> list[str]:
    """Make a temporary view of each table of a directory, or of several as `read` does, all of this
    moment: called again, of that one. Returns the names of the views, which begin with `prefix`.
    Raises KohortError.
    """
    require()
    from kohort.spark.tables import spark_reader  # noqa: PLC0415

    frames = spark_reader.read_all(directory, spark)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(prefix + name)
    return [prefix + name for name in frames]


def list_tables(directory: str | Path) -> "dict[str, Table]":
    """The tables that a directory holds: names, columns, and what they mean. Raises KohortError."""
    require("tables")
    from kohort.pipeline.format import catalog  # noqa: PLC0415

    return catalog.tables(directory)


__all__ = ["list_tables", "read", "register", "require", "views"]
