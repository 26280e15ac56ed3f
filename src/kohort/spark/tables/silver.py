# SPDX-License-Identifier: Apache-2.0
"""From decoded rows to the tables of bronze and silver: each table is a view of the same rows."""

from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import DECODED, KINDS, RECORDS_TABLE, SILVER, Table
from kohort.spark.engine.frames import conform
from kohort.spark.gold.lazy_tables import LazyTables


def look(decoded: DataFrame, table: Table) -> DataFrame:
    """One table of bronze or silver out of decoded rows (see `schemas.rows`)."""
    if table is RECORDS_TABLE:
        return conform(table, decoded)
    rows = decoded.where(F.col("kind") == table.name)
    if table.name in KINDS.values() and table.name in decoded.columns:
        there = set(decoded.columns) - {table.name}
        rows = rows.select(
            *(
                F.col(name)
                if name in there and name not in _fields(decoded, table.name)
                else F.col(f"{table.name}.{name}").alias(name)
                for name in table.names
            )
        )
    elif "topic_id" in table.names:
        rows = rows.withColumn("topic_id", topic_id_text(F.col("topic_id")))
    return conform(table, rows)


def views(decoded: DataFrame) -> LazyTables:
    """Every table of bronze and silver, by name, and the rows themselves. A caller that needs
    records of many kinds reads the rows once.
    """
    return views_of(lambda: decoded)


def views_of(make: Callable[[], DataFrame]) -> LazyTables:
    """The same of rows that are made when somebody asks."""
    decoded = LazyTables({DECODED.name: make})

    def seen(table: Table) -> DataFrame:
        return look(decoded[DECODED.name], table)

    return decoded | LazyTables(
        {table.name: partial(seen, table) for table in (RECORDS_TABLE, *SILVER)}
    )


def topic_id_text(topic_id: Column) -> Column:
    """16 bytes as the 22 characters in which ids of topics are written."""
    return F.translate(F.base64(topic_id), "+/=", "-_")


def _fields(decoded: DataFrame, name: str) -> list[str]:
    return decoded.schema[name].dataType.fieldNames()  # type: ignore[attr-defined,no-any-return]
