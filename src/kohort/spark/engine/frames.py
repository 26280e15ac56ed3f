# SPDX-License-Identifier: Apache-2.0
"""Tables as Spark has them: their types, frames that have exactly these, and one without rows."""

from functools import cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import AtomicType, DataType, StructType

from kohort.pipeline.schemas import Table


@cache
def struct_of(table: Table) -> StructType:
    """The columns of a table, as Spark has them."""
    return from_arrow_schema(table.arrow)


def conform(table: Table, frame: DataFrame) -> DataFrame:
    """A frame with exactly the columns of a table, in their order, of their types."""
    return frame.select(*(F.col(name).cast(kind).alias(name) for name, kind in _casts(table)))


@cache
def _casts(table: Table) -> list[tuple[str, str | DataType]]:
    """Of each column what it is cast to; as a name where it has one, which PySpark hands on as it
    is. Types it describes in JSON, after it has asked the JVM for the session.
    """
    return [
        (field.name, field.dataType.simpleString())
        if isinstance(field.dataType, AtomicType)
        else (field.name, field.dataType)
        for field in struct_of(table)
    ]


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame that Spark knows to be empty: it plans nothing of what is joined with it.

    Of a list it does not look whether that is empty. It would plan everything, and start a worker
    in Python.
    """
    return spark.createDataFrame(to_arrow_schema(schema, timezone="UTC").empty_table(), schema)
