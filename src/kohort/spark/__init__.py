"""The pipeline over the group log: sources of raw rows, typed tables, and what they tell.

It needs the extra `kohort[spark]` and Java 17 or newer. `kohort.spark.jobs` writes tables, and what
is here reads them, also while they are being written:

    lag = kohort.spark.read("tables", "lag")
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kohort.errors import KohortError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kohort.spark.schemas import Table


NEEDED = ("pyspark", "pyarrow", "numpy", "pandas")


def require() -> None:
    """Raises KohortError, which says what to do, where Spark is not installed. Imports nothing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise KohortError(f"{missing[0]} is not installed: pip install 'kohort[spark]'")


def read(directory: str | Path, name: str, spark: "SparkSession | None" = None) -> "DataFrame":
    """A table out of a directory that `kohort pipeline run` writes, as it is now.

    Without a session the active one is taken, or one is started. Raises KohortError: there are no
    tables, or none of that name.
    """
    require()
    from kohort.spark import store  # noqa: PLC0415  (what is not used is not imported)
    from kohort.spark.session import active_session  # noqa: PLC0415

    return store.read(directory, name, spark or active_session())


def tables(directory: str | Path) -> "dict[str, Table]":
    """The tables that a directory holds: names, columns, and what they mean. Raises KohortError."""
    require()
    from kohort.spark import store  # noqa: PLC0415

    return store.tables(directory)


__all__ = ["read", "require", "tables"]
